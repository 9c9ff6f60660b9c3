"""The whole test suite: sets up what it needs, builds what it tests, and runs pytest."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

from strata import apt
from strata.engine import ensure_engine
from strata.engine.install import install_programs
from strata.engine.packages import COMPOSE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strata.workspace import Workspace

# Debian's package by the program that the tests run.
PROGRAMS = {
    "chromium": "chromium",
    "docker-registry": "docker-registry",
    "git": "git",
    "ip": "iproute2",
    "rsync": "rsync",
    "ssh": "openssh-client",
}
# In this order: what is quick and pure first, so that it fails first.
FOLDERS = ("tests/unit", "tests/golden", "tests/packages", "tests/lint", "tests/train", "tests/e2e")


def install_clients() -> None:
    """Install the clients and servers that the tests use and this machine lacks.

    Raises `HostError` with the command to run by hand where we may not.
    """
    missing = [package for program, package in PROGRAMS.items() if not shutil.which(program)]
    if missing:
        apt.install(tuple(missing), why="the test suite")
    install_programs((COMPOSE,))


def run_tests(workspace: Workspace, arguments: Sequence[str]) -> int:
    """Run pytest on the suite, with the engine's address in its environment.

    `arguments` go to pytest in place of the suite's folders.  Returns pytest's
    exit code.
    """
    install_clients()
    engine, _ = ensure_engine(workspace)
    argv = [sys.executable, "-m", "pytest", *(arguments or FOLDERS)]
    sys.stdout.flush()
    # A shell's background job ignores SIGINT, and so would all that the tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    return subprocess.run(
        argv,
        cwd=workspace.root,
        env={**os.environ, **engine.env, "PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        check=False,
    ).returncode
