"""Programs that go on when we end: starting them, knowing them again, ending them."""

from __future__ import annotations

import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from strata.errors import HostError
from strata.run import LAST_LINES, run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

STARTING = 60
STEP = 0.1
# A user's PATH often leaves out the folders of the system's own programs.
SYSTEM_PATH = {"PATH": f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"}
# $1 and $2 are where the pid and the log go; the program replaces the shell,
# so that the pid is its own and nothing of ours stays open in it.
DETACH = 'echo $$ >"$1"; log=$2; shift 2; exec "$@" >"$log" 2>&1 </dev/null'


def start_detached(
    argv: tuple[str, ...], *, pid_file: Path, log: Path, prefix: tuple[str, ...] = ()
) -> None:
    """Start a program in a session of its own, its output in `log`, its pid in `pid_file`.

    `prefix` makes root run it (see `strata.apt.superuser`).
    """
    detached = ["setsid", "--fork", "sh", "-c", DETACH, "sh", str(pid_file), str(log), *argv]
    run(
        [*prefix, *detached],
        error=HostError,
        where=argv[0],
        fix=f"see {log}",
        env=SYSTEM_PATH,
        quiet=True,
    )


def wait_until(is_ready: Callable[[], bool], *, name: str, pid_file: Path, log: Path) -> float:
    """Wait until a started program is ready; return how many seconds that took.

    Raises `HostError` with its last lines when it ends, or is not ready in a
    minute.
    """
    began = time.monotonic()
    while not is_ready():
        waited = time.monotonic() - began
        is_gone = not command_line(read_pid(pid_file))
        if is_gone or waited > STARTING:
            how = "ended while starting" if is_gone else f"was not ready after {waited:.0f} s"
            raise HostError.at(name, f"it {how}{last_lines(log)}", f"the whole log: {log}")
        time.sleep(STEP)
    return time.monotonic() - began


def last_lines(log: Path) -> str:
    """Return the end of a log, indented as our errors show it."""
    if not log.exists():
        return ""
    lines = log.read_text(errors="replace").splitlines()[-LAST_LINES:]
    return "".join(f"\n    | {line}" for line in lines)


def read_pid(file: Path) -> int:
    """Return the pid in a file, 0 where there is none."""
    with suppress(OSError, ValueError):
        return int(file.read_text())
    return 0


def command_line(pid: int) -> tuple[str, ...]:
    """Return the argv of a process, empty where there is none (a zombie has none)."""
    if pid <= 0:
        return ()
    try:
        return tuple(Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")[:-1])
    except (FileNotFoundError, ProcessLookupError):
        return ()


def is_running(pid: int, name: str, argument: str = "") -> bool:
    """Tell whether that process is alive, is that program, and has that argument."""
    argv = command_line(pid)
    return bool(argv) and Path(argv[0]).name == name and (not argument or argument in argv)


def end(pids: Iterable[int], *, patience: float) -> None:
    """End processes: ask with SIGTERM, wait `patience` seconds, then SIGKILL.

    Raises `HostError` when one is still there 10 s after that.
    """
    left = set(pids)
    for order, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, 10.0)):
        for pid in left:
            with suppress(ProcessLookupError):
                os.kill(pid, order)
        deadline = time.monotonic() + seconds
        while left and time.monotonic() < deadline:
            left = {pid for pid in left if command_line(pid)}
            time.sleep(STEP if left else 0)
        if not left:
            return
    raise HostError.at(
        "engine", f"processes {sorted(left)} do not end", "look at them: ps -fp, dmesg | tail"
    )


def say(text: str) -> None:
    """Tell the user what takes time."""
    print(text, file=sys.stderr, flush=True)
