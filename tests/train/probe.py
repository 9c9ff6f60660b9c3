"""Runs a program beside it and tells which of its processes are left afterwards.

Handed to the tested Python as `-c`, in a container or not: it knows only the
standard library.  Arguments: the number of a signal to send to the program once
all its processes run (0: none), how many processes those are, and the command.
The last line of stderr is `left: ` and a JSON list of command lines.
"""

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

MARK = "STRATA_TEST_MARK"
PATIENCE = 50.0
GRACE = 5.0


def marked(mark: bytes) -> list[str]:
    """Return the command lines of all processes that inherited the mark, ours excluded."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            if folder.name.isdecimal() and mark in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_text().replace("\0", " ").strip())
        except OSError:  # it has just ended, or belongs to someone else
            continue
    return found


def main() -> int:
    """Return the program's exit code, as a shell gives it."""
    number, processes, *argv = sys.argv[1:]
    name = uuid.uuid4().hex
    mark = f"{MARK}={name}".encode()
    program = subprocess.Popen(argv, env={**os.environ, MARK: name})
    if int(number) > 0:
        deadline = time.monotonic() + PATIENCE
        while len(marked(mark)) < int(processes):
            if time.monotonic() > deadline or program.poll() is not None:
                print("the processes to wait for did not come up", file=sys.stderr)
                break
            time.sleep(0.1)
        program.send_signal(int(number))
    code = program.wait()
    if code < 0:  # it could not end them itself: the kernel does, a moment later
        deadline = time.monotonic() + GRACE
        while marked(mark) and time.monotonic() < deadline:
            time.sleep(0.1)
    print(f"left: {json.dumps(marked(mark))}", file=sys.stderr)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main())
