"""Starts a module of this package in a process that ends with its parent.

    python -m ddp.start PARENT MODULE WORD...

It comes before the module's own imports: those of torch take seconds, in which
the parent may end.
"""

import runpy
import sys

from ddp.processes import die_with

if __name__ == "__main__":
    parent, module = sys.argv[1:3]
    del sys.argv[1:3]
    die_with(int(parent))
    runpy.run_module(module, run_name="__main__", alter_sys=True)
