"""strata-doctor: what keeps training from working well here, and how to fix it.

    strata-doctor           a table for people
    strata-doctor --json    one JSON document on stdout (docs/doctor.md)

Exit codes: 0 nothing severe found, 2 bad arguments, 8 not fit.
This package and `ddp.cores` beside it need Python 3.9, nothing else; what
PyTorch and NVML could tell is unknown without them.
"""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    # Python has put this folder first on its path; its parent holds the packages.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from doctor.main import main

    sys.exit(main(sys.argv[1:]))
