#!/usr/bin/env python3
"""ddp-check: prove that data-parallel training works here, on GPUs or on CPU cores.

    ddp-check                   two gloo ranks on a CPU, or one NCCL rank a GPU
    ddp-check --nproc 4 --json  four ranks, one JSON document on stdout
    ddp-check --require-gpu     fail where there is no GPU

Exit codes: 0 every phase passed, 2 bad arguments, 6 failed, 130 or 143 interrupted.
This file and the package beside it need Python 3.9 and PyTorch 2.3, nothing else.
"""

from __future__ import annotations

import sys

from ddp.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
