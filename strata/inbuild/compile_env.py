"""Compile Python files so that the same source gives the same bytes.

    PYTHONHASHSEED=0 python -s -S compile_env.py JOBS < PATHS.json

PATHS.json is a list of packages, each a list of paths.  Writes unchecked
hash-based .pyc files (PEP 552): they stay valid when modification times change,
and are not compared with the source at import.

What `marshal` writes depends on reference counts (an object that is referred
to once is written without a reference flag), hence on all that the process did
before.  So files are compiled in children forked from a parent that does
nothing but fork, and a child always gets the same files of one package, in the
same order: it starts from the same memory and goes the same way.  A child per
file would do too, at twice the time, as each must grow its memory afresh.

Prints `{"compiled": [[source, pyc], …], "invalid": [[source, reason], …]}`.
A file that is no valid Python is listed; any other failure ends the program
with 1.
"""

from __future__ import annotations

import fcntl
import gc
import json
import os
import py_compile
import sys
from importlib.util import cache_from_source

BATCH = 32  # files for one child: more gains nothing, fewer cost memory growth


def main() -> int:
    """Compile the files that stdin names; return the exit code."""
    jobs = max(1, int(sys.argv[1]))
    packages = json.load(sys.stdin)
    gc.disable()  # a collection would only copy the parent's pages
    outcomes = os.memfd_create("outcomes")
    fcntl.fcntl(outcomes, fcntl.F_SETFL, os.O_APPEND)  # else children overwrite each other
    running = 0
    failed = False
    for paths in packages:
        for start in range(0, len(paths), BATCH):
            if running == jobs:
                failed |= os.wait()[1] != 0
                running -= 1
            if os.fork() == 0:
                _child(paths[start : start + BATCH], outcomes)
            running += 1
    for _ in range(running):
        failed |= os.wait()[1] != 0
    os.lseek(outcomes, 0, os.SEEK_SET)
    with os.fdopen(outcomes, "rb") as file:
        reasons = dict(json.loads(line) for line in file)
    return _report([path for paths in packages for path in paths], reasons, failed=failed)


def _child(paths: list[str], outcomes: int) -> None:
    """Compile the files, write a line for each, and end; never returns."""
    code = 1
    try:
        for path in paths:
            os.write(outcomes, json.dumps([path, _compile(path)]).encode() + b"\n")
        code = 0
    except Exception as failure:  # noqa: BLE001 - told, and the whole program fails
        os.write(2, f"{path}: {failure!r}\n".encode())
    finally:
        os._exit(code)


def _compile(path: str) -> str | None:
    """Compile one file; return why it is no valid Python, if it isn't."""
    try:
        py_compile.compile(
            path,
            doraise=True,
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
    except py_compile.PyCompileError as failure:
        return " ".join(str(failure.exc_value).split())[:200]
    return None


def _report(paths: list[str], reasons: dict[str, str | None], *, failed: bool) -> int:
    missing = [path for path in paths if path not in reasons]
    if failed or missing:
        print(f"{len(missing)} files were not compiled: {missing[:5]}", file=sys.stderr)
        return 1
    outcome = {
        "compiled": [[path, cache_from_source(path)] for path in paths if reasons[path] is None],
        "invalid": [[path, reasons[path]] for path in paths if reasons[path] is not None],
    }
    print(json.dumps(outcome))
    return 0


if __name__ == "__main__":
    sys.exit(main())
