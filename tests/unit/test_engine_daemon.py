"""Starting, recognising and ending programs that outlive us."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from strata.engine.daemon import (
    command_line,
    end,
    is_running,
    last_lines,
    read_pid,
    start_detached,
    wait_until,
)
from strata.errors import HostError


def test_a_detached_program_is_known_and_ends(tmp_path: Path) -> None:
    """It runs in a session of its own under the pid that was written, until it is ended."""
    pid_file = tmp_path / "pid"
    start_detached(("sleep", "300"), pid_file=pid_file, log=tmp_path / "log")
    pid = read_pid(pid_file)
    try:
        assert command_line(pid) == ("sleep", "300")
        assert os.getsid(pid) != os.getsid(0)
        assert is_running(pid, "sleep", "300")
    finally:
        end([pid], patience=5)
    assert not is_running(pid, "sleep")


def test_a_pid_of_somebody_else_is_not_ours() -> None:
    """A recycled pid, or none, is never taken for the engine."""
    assert not is_running(os.getpid(), "dockerd")
    assert not is_running(0, "dockerd")
    us = Path(command_line(os.getpid())[0]).name
    assert is_running(os.getpid(), us)
    assert not is_running(os.getpid(), us, "--no-such-argument")


def test_a_program_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    """Asking comes first, but nothing outlives its patience."""
    pid_file, log = tmp_path / "pid", tmp_path / "log"
    stubborn = "trap '' TERM; echo ready; while :; do sleep 0.05; done"
    start_detached(("sh", "-c", stubborn), pid_file=pid_file, log=log)
    while "ready" not in log.read_text():
        time.sleep(0.01)
    pid = read_pid(pid_file)
    end([pid], patience=0.3)
    assert command_line(pid) == ()


def test_a_program_that_dies_while_starting_shows_its_last_lines(tmp_path: Path) -> None:
    """The error has what the program said, and where all of it is."""
    pid_file, log = tmp_path / "pid", tmp_path / "log"
    start_detached(("sh", "-c", "echo no cgroups here; exit 1"), pid_file=pid_file, log=log)
    with pytest.raises(HostError, match="no cgroups here") as error:
        wait_until(lambda: False, name="sh", pid_file=pid_file, log=log)
    assert str(log) in error.value.problems[0].fix


def test_a_program_that_does_not_exist_is_a_failed_start(tmp_path: Path) -> None:
    """A missing program is seen in its log, not waited for."""
    pid_file, log = tmp_path / "pid", tmp_path / "log"
    start_detached(("no-such-daemon",), pid_file=pid_file, log=log)
    with pytest.raises(HostError, match="not found"):
        wait_until(lambda: False, name="no-such-daemon", pid_file=pid_file, log=log)


def test_a_log_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    """An error about a program that never wrote is still an error, not a traceback."""
    assert last_lines(tmp_path / "log") == ""
