"""Running other programs: what is shown, what is kept, and how failures read."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from strata.errors import BuildError, HostError
from strata.run import GRACE, run


def shell(script: str, **options: object) -> str:
    """Run a shell script as a part of strata would."""
    return run(
        ["sh", "-c", script],
        error=BuildError,
        where="here",
        fix="there",
        **options,  # type: ignore[arg-type]
    )


def test_returns_what_the_program_wrote_to_stdout() -> None:
    """Stdout is returned, stderr is not."""
    assert shell("echo out; echo err >&2") == "out\n"


def test_echoes_the_command_as_a_shell_would_take_it(capfd: pytest.CaptureFixture[str]) -> None:
    """A command is shown before it runs, unless it is to be quiet."""
    shell("true")
    shell("exit", quiet=True)
    assert capfd.readouterr().err == "+ sh -c true\n"


def test_a_failure_has_place_command_code_output_and_fix() -> None:
    """A program that fails raises the caller's error, with all that it wrote."""
    with pytest.raises(BuildError) as failure:
        shell("echo out; echo err >&2; exit 7")
    (problem,) = failure.value.problems
    assert (problem.where, problem.fix) == ("here", "there")
    assert problem.what == (
        "`sh -c 'echo out; echo err >&2; exit 7'` ended with 7\n    | out\n    | err"
    )


def test_a_long_output_is_cut_to_its_last_lines() -> None:
    """Of a long output, the last 20 lines are told."""
    with pytest.raises(BuildError) as failure:
        shell("seq 100; exit 1")
    assert [line.strip() for line in str(failure.value).splitlines()[1:-1]] == [
        f"| {number}" for number in range(81, 101)
    ]


def test_a_killed_program_is_said_to_be_killed() -> None:
    """Death by a signal is a failure, and the signal is named."""
    with pytest.raises(BuildError, match="was killed by signal 9"):
        shell("kill -9 $$")


@pytest.mark.parametrize("is_logged", [False, True])
def test_a_program_that_takes_too_long_is_a_failure(tmp_path: Path, is_logged: bool) -> None:  # noqa: FBT001 - a parameter
    """The time limit holds with a log and without one."""
    start = time.monotonic()
    with pytest.raises(BuildError, match="did not end within 0 s"):
        run(
            ["sleep", "30"],
            error=BuildError,
            where="here",
            fix="there",
            timeout=0.2,
            log=tmp_path / "log" if is_logged else None,
        )
    assert time.monotonic() - start < 5


def test_a_missing_program_is_the_hosts_fault() -> None:
    """A program that is not there is named, with the exit code of an unfit host."""
    with pytest.raises(HostError, match="no program 'no-such-program'"):
        run(["no-such-program"], error=BuildError, where="here", fix="there")


def test_a_file_that_is_no_program_is_the_hosts_fault(tmp_path: Path) -> None:
    """A program that may not be executed is named, and is no traceback."""
    file = tmp_path / "program"
    file.write_text("")
    with pytest.raises(HostError, match=f"'{file}' may not be executed"):
        run([str(file)], error=BuildError, where="here", fix="there")


def test_a_program_reads_an_empty_stdin_or_the_one_it_is_given(tmp_path: Path) -> None:
    """Nobody waits for our terminal, nor takes what is meant for us."""
    ours = tmp_path / "stdin"
    ours.write_text("ours")
    kept = os.dup(0)
    with ours.open() as file:
        os.dup2(file.fileno(), 0)
    try:
        assert shell("cat") == ""
        assert shell("cat", log=tmp_path / "log") == ""
        assert (tmp_path / "log").read_text() == ""
        assert shell("cat", stdin="words") == "words"
    finally:
        os.dup2(kept, 0)
        os.close(kept)


def test_the_environment_is_added_to_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable of ours stays, one that is given comes in addition."""
    monkeypatch.setenv("OURS", "ours")
    assert shell('echo "$OURS $GIVEN"', env={"GIVEN": "given"}) == "ours given\n"


def test_a_log_has_every_line_and_is_named_in_the_failure(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """With a log, lines go there and to stderr as they come, and a failure names the file."""
    log = tmp_path / "logs" / "build.log"
    with pytest.raises(BuildError) as failure:
        shell("seq 30; echo err >&2; exit 3", log=log, quiet=True)
    written = log.read_text()
    assert written == "".join(f"{n}\n" for n in range(1, 31)) + "err\n"
    assert capfd.readouterr().err == written
    assert f"full log: {log}" in str(failure.value)
    assert "ended with 3" in str(failure.value)


def test_bytes_that_are_no_text_are_no_failure(tmp_path: Path) -> None:
    """Output that is not UTF-8 is kept readable, in any locale."""
    log = tmp_path / "log"
    shell(r"printf 'a\377b\n'", log=log)
    assert log.read_text(encoding="utf-8") == "a\ufffdb\n"
    assert shell(r"printf 'a\377b\n'") == "a\ufffdb\n"


INTERRUPTED = """
import sys
from pathlib import Path
from strata.errors import BuildError
from strata.run import run
argv = ["sh", "-c", "echo $$; exec sleep 60"]
run(argv, error=BuildError, where="", fix="", log=Path(sys.argv[1]), quiet=True)
"""


def test_an_interrupt_that_reaches_us_alone_ends_the_program(tmp_path: Path) -> None:
    """A build does not go on behind the back of who interrupted it."""
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(tmp_path / "log")],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    with process:
        child = int(process.stderr.readline()) if process.stderr else 0
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
    assert time.monotonic() - start < GRACE / 2
    assert process.returncode != 0
    assert child
    assert not Path(f"/proc/{child}").exists()


DRAWS = """
import os, sys
print("size", *os.get_terminal_size(2), file=sys.stderr)
sys.stdout.write("one\\rtwo\\n")
sys.exit(3)
"""


def test_a_program_that_draws_is_shown_and_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has a terminal of the size of ours, which shows all that the log has but moves."""
    log = tmp_path / "logs" / "drawn.log"
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (50, 99))
    with open(slave, "w", encoding="utf-8") as terminal:  # noqa: PTH123 - a descriptor
        monkeypatch.setattr(sys, "stderr", terminal)
        with pytest.raises(BuildError) as failure:
            run(
                [sys.executable, "-c", DRAWS],
                error=BuildError,
                where="here",
                fix="draw",
                log=log,
                show=True,
            )
        shown = os.read(master, 1 << 16).decode()
        monkeypatch.undo()
    os.close(master)
    assert log.read_text() == "size 99 50\ntwo\n"
    assert "size 99 50\r\none\rtwo\r\n" in shown
    problem = str(failure.value)
    assert "ended with 3" in problem
    assert f"full log: {log}" in problem
    assert "| two" not in problem  # it has just been seen
