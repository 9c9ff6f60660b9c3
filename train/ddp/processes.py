"""Starting the launcher, watching the clock, and leaving no process behind."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

from ddp.nodes import ONE_HOST

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddp.nodes import Nodes

# linux/prctl.h
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36

TRAIN = Path(__file__).resolve().parent.parent
ENDING_TIME = 10.0


@dataclass(frozen=True)
class Ending:
    """How the launcher ended.

    `code` is its exit code, None when its time was up, `ended_at` seconds of
    the monotonic clock, and `left` the processes that the kernel could not end.
    """

    code: int | None
    ended_at: float
    left: tuple[int, ...]


def module_argv(module: str, *words: str) -> list[str]:
    """Return the command for a module of this package, in this very interpreter.

    The process ends when this one does.  It must be started with `TRAIN` as its
    working directory, so that this package is found before anything that
    PYTHONPATH names.
    """
    return [sys.executable, "-m", "ddp.start", str(os.getpid()), module, *words]


def supervise(
    argv: Sequence[str],
    timeout: float,
    started: float,
    *,
    output: IO[str] | None = None,
    env: Mapping[str, str] | None = None,
    nodes: Nodes = ONE_HOST,
) -> Ending:
    """Run the launcher until `timeout` seconds after `started` at most.

    Its output, and that of all ranks, goes to `output`, or to our stderr where
    there is none; `env` None means our environment.  When this returns or
    raises, the processes that it started have been ended.

    The launcher's process number modulo that of the `nodes` is our node's:
    torch's agents know each other by address and process number, and both may
    be the same in containers that share a host's network.
    """
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    while True:
        launcher = subprocess.Popen(
            argv,
            cwd=TRAIN,
            stdin=subprocess.DEVNULL,
            stdout=output or sys.stderr,
            stderr=output,
            start_new_session=True,
            env=env,
        )
        if launcher.pid % nodes.count == nodes.rank:
            break
        launcher.kill()
        launcher.wait()
    code: int | None = None
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = launcher.wait(max(0.0, started + timeout - time.monotonic()))
        ended_at = time.monotonic()
    finally:
        launcher.kill()
        left = _end_descendants()
    return Ending(code, ended_at, left)


def die_with(parent: int) -> None:
    """Have the kernel kill this process when `parent` ends, whatever the reason."""
    _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it ended before we asked
        os.kill(os.getpid(), signal.SIGKILL)


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, ctypes.c_ulong(value), 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")


def _end_descendants() -> tuple[int, ...]:
    """Kill all processes below us; return those that are still there."""
    # As their subreaper we become the parent of every orphan below us, so
    # killing our children until there are none reaches all generations.
    deadline = time.monotonic() + ENDING_TIME
    while time.monotonic() < deadline:
        for child in _children(os.getpid()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            ended, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ()
        if ended == 0:
            time.sleep(0.01)
    return tuple(_children(os.getpid()))


def _children(parent: int) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdecimal():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                # The name, in brackets, may hold anything: count from its end.
                words = (folder / "stat").read_text().rpartition(")")[2].split()
                if int(words[1]) == parent:
                    found.append(int(folder.name))
    return found
