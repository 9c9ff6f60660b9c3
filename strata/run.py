"""The one place that runs other programs."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import threading
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from strata.errors import HostError, StrataError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

LAST_LINES = 20
GRACE = 10.0  # seconds that an interrupted program gets to end by itself


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
    it does not exist or may not be executed.
    """
    argv = [str(word) for word in argv]
    if not quiet:
        echo(argv)
    environment = {**os.environ, **(env or {})}
    feed = {"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}
    try:
        if log is not None:
            if failed := _run_logged(argv, environment, cwd, timeout, log):
                raise error.at(where, failed, fix)
            return ""
        done = subprocess.run(
            argv,
            env=environment,
            cwd=cwd,
            timeout=timeout,
            encoding="utf-8",
            errors="replace",
            capture_output=not show,
            check=False,
            **feed,
        )
    except FileNotFoundError as missing:
        raise HostError.at(
            where, f"there is no program {missing.filename!r} on this machine", fix
        ) from None
    except PermissionError as denied:
        raise HostError.at(where, f"{denied.filename!r} may not be executed", fix) from None
    except subprocess.TimeoutExpired as late:
        raise error.at(
            where, f"`{shlex.join(argv)}` did not end within {late.timeout:.0f} s", fix
        ) from None
    if done.returncode != 0:
        output = "" if show else f"{done.stdout}{done.stderr}"
        raise error.at(where, _failure(argv, done.returncode, output.splitlines(), None), fix)
    return done.stdout or ""


def become(argv: Sequence[str], *, where: str, fix: str, env: Mapping[str, str]) -> NoReturn:
    """Replace this process by a program, which gets our terminal, signals and exit code.

    `env` is added to our environment.  Raises `HostError` when the program does
    not exist or may not be executed.
    """
    echo(argv)
    sys.stdout.flush()
    try:
        os.execvpe(argv[0], list(argv), {**os.environ, **env})  # noqa: S606 - an argv list
    except OSError as error:
        raise HostError.at(where, f"{argv[0]!r}: {error.strerror}", fix) from None


def _run_logged(
    argv: list[str],
    environment: Mapping[str, str],
    cwd: Path | None,
    timeout: float | None,
    log: Path,
) -> str | None:
    """Run with every line in the log and on stderr; return what went wrong, if anything."""
    log.parent.mkdir(parents=True, exist_ok=True)
    last: deque[str] = deque(maxlen=LAST_LINES)
    with (
        log.open("w", encoding="utf-8", buffering=1) as sink,  # each line, should we be killed
        subprocess.Popen(
            argv,
            env=environment,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        ) as process,
        _ending(process, timeout) as late,
    ):
        for line in process.stdout or ():
            sink.write(line)
            print(line, end="", file=sys.stderr, flush=True)
            last.append(line.rstrip("\n"))
    if late.is_set():
        raise subprocess.TimeoutExpired(argv, timeout or 0)
    return _failure(argv, process.returncode, list(last), log) if process.returncode else None


@contextmanager
def _ending(process: subprocess.Popen[str], timeout: float | None) -> Iterator[threading.Event]:
    """End a program that runs longer than `timeout`, setting the event, or longer than we do."""
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(timeout or threading.TIMEOUT_MAX, end)
    timer.daemon = True
    timer.start()
    try:
        yield late
    except BaseException:
        # An interrupt may have reached us alone: nothing goes on behind our back.
        process.terminate()
        try:
            process.wait(GRACE)
        except subprocess.TimeoutExpired:
            process.kill()
        raise
    finally:
        timer.cancel()


def _failure(argv: list[str], code: int, output: list[str], log: Path | None) -> str:
    ended = f"was killed by signal {-code}" if code < 0 else f"ended with {code}"
    tail = "".join(f"\n    | {line}" for line in output[-LAST_LINES:])
    full = f"\n    full log: {log}" if log else ""
    return f"`{shlex.join(argv)}` {ended}{tail}{full}"
