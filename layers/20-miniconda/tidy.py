"""Make an installed Miniconda alike in every build, and without the installer's leavings.

    /opt/conda/bin/python -I -B tidy.py PREFIX COMPILE_ENV

Runs on the prefix's own Python.  Removes the package cache and the installer's
configuration, gives conda's history the build's epoch (SOURCE_DATE_EPOCH), and
compiles all modules anew with `strata/inbuild/compile_env.py`.  A program that
fails raises `CalledProcessError`, which ends the build.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

STAMP = re.compile(r"^==> \d{4}-\d\d-\d\d \d\d:\d\d:\d\d <==$", re.MULTILINE)


def main(prefix: Path, compile_env: Path) -> None:
    """Tidy the prefix."""
    for leftover in (prefix / "pkgs", prefix / "condarc.d"):
        if leftover.exists():
            shutil.rmtree(leftover)
    meta = prefix / "conda-meta"
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"])))
    history = meta / "history"
    history.write_text(STAMP.sub(f"==> {when} <==", history.read_text("utf-8")), "utf-8")
    packages = [_modules(prefix, record) for record in sorted(meta.glob("*.json"))]
    jobs = len(os.sched_getaffinity(0))
    # As finish_env.py does it: nothing from outside may decide what the compiler has in memory.
    subprocess.run(
        [sys.executable, "-s", "-S", "-B", "-W", "ignore", str(compile_env), str(jobs)],
        input=json.dumps(packages),
        stdout=subprocess.DEVNULL,  # the list of what was compiled
        text=True,
        env={"LC_ALL": "C.UTF-8", "PATH": os.defpath, "PYTHONHASHSEED": "0"},
        check=True,
    )


def _modules(prefix: Path, record: Path) -> list[str]:
    files = json.loads(record.read_text("utf-8"))["files"]
    return sorted(
        str(prefix / path)
        for path in files
        if path.startswith("lib/python") and path.endswith(".py")
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
