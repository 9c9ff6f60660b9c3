"""`python -m trainer`, and `torchrun -m trainer`."""

import os
import sys

from trainer.main import main

code = main(sys.argv[1:])
sys.stdout.flush()
sys.stderr.flush()
# Not sys.exit: a thread of gloo's may outlive its group, and end the interpreter's
# own end in SIGABRT (seen with torch 2.13 on a loaded machine).
os._exit(code)
