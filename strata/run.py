"""The one place that runs other programs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections import deque
from typing import TYPE_CHECKING

from strata.errors import HostError, StrataError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

LAST_LINES = 20


def echo(argv: Sequence[str]) -> None:
    """Print the command that is about to run, as a shell would take it."""
    print(f"+ {shlex.join(argv)}", file=sys.stderr, flush=True)


def run(
    argv: Sequence[str],
    *,
    error: type[StrataError],
    where: str,
    fix: str,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    timeout: float | None = None,
    log: Path | None = None,
    show: bool = False,
    quiet: bool = False,
    stdin: str | None = None,
) -> str:
    """Run a program to its end and return what it wrote to stdout.

    Its output is hidden until it fails, unless `show` hands our own stdout and
    stderr to it (for programs that draw their progress; nothing is returned
    then).  With `log`, stdout and stderr go to that file line by line and to
    stderr as plain lines, and the file is named when the program fails.
    `env` is added to our environment, `timeout` is in seconds, and without
    `stdin` the program reads an empty one.

    Raises `error` when the program fails or runs out of time, `HostError` when
    it does not exist.
    """
    argv = [str(word) for word in argv]
    if not quiet:
        echo(argv)
    environment = {**os.environ, **(env or {})}
    feed = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
    try:
        if log is not None:
            if failed := _run_logged(argv, environment, cwd, log):
                raise error.at(where, failed, fix)
            return ""
        done = subprocess.run(
            argv,
            env=environment,
            cwd=cwd,
            timeout=timeout,
            text=True,
            errors="replace",
            capture_output=not show,
            check=False,
            **feed,
        )
    except FileNotFoundError as missing:
        raise HostError.at(
            where, f"there is no program {missing.filename!r} on this machine", fix
        ) from None
    except subprocess.TimeoutExpired as late:
        raise error.at(
            where, f"`{shlex.join(argv)}` did not end within {late.timeout:.0f} s", fix
        ) from None
    if done.returncode != 0:
        output = "" if show else f"{done.stdout}{done.stderr}"
        raise error.at(where, _failure(argv, done.returncode, output.splitlines(), None), fix)
    return done.stdout or ""


def _run_logged(
    argv: list[str], environment: Mapping[str, str], cwd: Path | None, log: Path
) -> str | None:
    """Run with every line in the log and on stderr; return what went wrong, if anything."""
    log.parent.mkdir(parents=True, exist_ok=True)
    last: deque[str] = deque(maxlen=LAST_LINES)
    with (
        log.open("w") as sink,
        subprocess.Popen(
            argv,
            env=environment,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        for line in process.stdout or ():
            sink.write(line)
            print(line, end="", file=sys.stderr, flush=True)
            last.append(line.rstrip("\n"))
    return _failure(argv, process.returncode, list(last), log) if process.returncode else None


def _failure(argv: list[str], code: int, output: list[str], log: Path | None) -> str:
    ended = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
    tail = "".join(f"\n    | {line}" for line in output[-LAST_LINES:])
    full = f"\n    full log: {log}" if log else ""
    return f"`{shlex.join(argv)}` {ended}{tail}{full}"
