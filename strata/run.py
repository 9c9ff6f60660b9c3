"""The one place that runs other programs."""

from __future__ import annotations

import errno
import os
import pty
import shlex
import subprocess
import sys
import termios
import threading
import tty
from collections import deque
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from strata.errors import HostError, StrataError
from strata.terminal import Screen

if TYPE_CHECKING:
    import io
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

LAST_LINES = 20
CHUNK = 1 << 16  # bytes
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
    stderr as plain lines, and the file is named when the program fails.  With
    both it draws on a terminal of its own, which ours repeats, and the log gets
    the text that is left of it; stderr must be a terminal.
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
            run_with_log = _run_drawn if show else _run_logged
            if failed := run_with_log(argv, environment, cwd, timeout, log):
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


def _run_drawn(
    argv: list[str],
    environment: Mapping[str, str],
    cwd: Path | None,
    timeout: float | None,
    log: Path,
) -> str | None:
    """Run on a terminal that ours repeats; return what went wrong, if anything."""
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    screen = Screen()
    master, slave = pty.openpty()
    with open(master, "rb", buffering=0) as ours, open(slave, "wb", buffering=0) as its:  # noqa: PTH123 - of descriptors
        tty.setraw(slave)  # our own terminal does what is to be done to newlines
        termios.tcsetwinsize(slave, termios.tcgetwinsize(sys.stderr))
        with (
            subprocess.Popen(
                argv,
                env=environment,
                cwd=cwd,
                stdin=subprocess.DEVNULL,
                stdout=its,
                stderr=its,
            ) as process,
            _ending(process, timeout) as late,
        ):
            its.close()
            try:
                for chunk in _read_terminal(ours):
                    sys.stderr.buffer.write(chunk)
                    sys.stderr.flush()
                    screen.write(chunk)
                    termios.tcsetwinsize(ours, termios.tcgetwinsize(sys.stderr))
            finally:
                log.write_text(screen.text(), encoding="utf-8")
    if late.is_set():
        raise subprocess.TimeoutExpired(argv, timeout or 0)
    # Its last lines have just been seen.
    return _failure(argv, process.returncode, [], log) if process.returncode else None


def _read_terminal(master: io.FileIO) -> Iterator[bytes]:
    """Yield what is written to a terminal until nobody has it open any more."""
    while True:
        try:
            chunk = master.read(CHUNK)
        except OSError as error:
            if error.errno != errno.EIO:  # so Linux tells that the other end is closed
                raise
            return
        if not chunk:
            return
        yield chunk


@contextmanager
def _ending(process: subprocess.Popen[Any], timeout: float | None) -> Iterator[threading.Event]:
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
