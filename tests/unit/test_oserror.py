"""What the system refuses ends as a failure of the host, with the file and a way out."""

from __future__ import annotations

import errno
import os
import re
import sys
from typing import TYPE_CHECKING, cast

import pytest

from strata.oserror import host_error
from strata.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import SmallProject


def test_a_build_folder_that_is_a_file_is_told(project: SmallProject) -> None:
    """A task that can't write into it ends with 8 and the file's name, without a traceback."""
    project.write("build", "in the way\n")
    done = project.inv("engine", "start", env={"STRATA_ENGINE": "private"})
    assert done.returncode == 8
    assert "Traceback" not in done.stderr
    assert f"error: {project.root}/build: File exists\n" in done.stderr
    assert f"fix: look at what is there: ls -ld {project.root}/build\n" in done.stderr


def test_what_root_does_for_a_user_fails_in_the_same_words(project: SmallProject) -> None:
    """The program that sudo starts has no traceback either."""
    project.write("build", "in the way\n")
    argv = [sys.executable, "-m", "strata.engine.elevate", "start", str(project.root)]
    done = project.run(argv)
    assert done.returncode == 8
    assert done.stderr.startswith(f"error: {project.root}/build: File exists\n")


@pytest.mark.parametrize(
    ("code", "fix"),
    [
        (errno.EACCES, 'ls -ld {folder}; if it should be yours: sudo chown -R "$USER" {folder}'),
        (errno.EPERM, 'ls -ld {folder}; if it should be yours: sudo chown -R "$USER" {folder}'),
        (errno.ENOSPC, "./inv clean empties the cache; STRATA_CACHE=/larger/disk moves it"),
        (errno.EROFS, "that disk is read-only"),
        (errno.ENOTDIR, "look at what is there: ls -ld {folder}"),
    ],
)
def test_each_refusal_has_its_way_out(tmp_path: Path, code: int, fix: str) -> None:
    """The place is the file, and the fix names the folder that is there."""
    file = tmp_path / "missing" / "file"
    failed = host_error(OSError(code, os.strerror(code), str(file)))
    assert failed.exit_code == 8
    (problem,) = failed.problems
    assert (problem.where, problem.what) == (str(file), os.strerror(code))
    assert fix.format(folder=tmp_path) in problem.fix


def test_both_files_of_a_move_are_named() -> None:
    """What is moved, and to where."""
    error = OSError(errno.EXDEV, "Invalid cross-device link", "/a", None, "/b")
    assert host_error(error).problems[0].where == "/a -> /b"


def test_a_refusal_without_a_file_names_our_line() -> None:
    """A write to a full disk names no file: then it is told where in strata that was."""

    class Full:
        def resolve(self) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space") as met:
        Workspace.of(cast("Path", Full()))
    (problem,) = host_error(met.value).problems
    assert re.fullmatch(r"strata/workspace.py:\d+", problem.where)
    assert problem.what == "No space left on device"
    assert problem.fix.startswith("make room there")


def test_a_refusal_of_nothing_known_still_says_something() -> None:
    """An OSError without number, file or text is named by its kind."""
    (problem,) = host_error(TimeoutError()).problems
    assert (problem.where, problem.what) == ("TimeoutError", "TimeoutError")
