"""The layers' tests run in a container of an image: `./inv check` starts it and names it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from testinfra.host import Host

from tests.layers.shell import ContainerShell

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parent
DOOR = "docker://"


def _has_container(config: pytest.Config) -> bool:
    return (config.getoption("hosts") or "").startswith(DOOR)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave these tests out where there is no container: they would test this machine."""
    inside = collection_path.is_relative_to(FOLDER) and collection_path.suffix == ".py"
    return True if inside and not _has_container(config) else None


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say that they were left out, and who runs them."""
    if not _has_container(config):
        terminalreporter.write_line(
            "tests/layers: run by ./inv check in a container of each image, not here"
        )


@dataclass(frozen=True)
class Account:
    """The image's user, as its build named it: /etc/strata/account."""

    name: str
    uid: int
    home: str


class Layer:
    """A container of the image, as the tests speak to it: as the image's own user."""

    def __init__(self, host: Host) -> None:
        """Take testinfra's host, which is a container."""
        self.host = host

    def out(self, command: str) -> str:
        """Run a shell command that must end with 0 and complain of nothing; return its stdout."""
        done = self.host.run(command)
        assert (done.rc, done.stderr) == (0, ""), f"{command}\n{done.stdout}{done.stderr}"
        return str(done.stdout).rstrip("\n")

    @property
    def account(self) -> Account:
        """The user that the image was built with; its group has the same name and number."""
        name, _, uid, _, _, home, _ = self.out("cat /etc/strata/account").split(":")
        return Account(name, int(uid), home)

    def lines(self, command: str) -> list[str]:
        """Return the lines that such a command prints."""
        return self.out(command).splitlines()

    def python(self, program: str) -> str:
        """Run a program with the image's Python; return what it printed."""
        done = self.host.run("python -W error -c %s", program)
        assert (done.rc, done.stderr) == (0, ""), f"{program}\n{done.stdout}{done.stderr}"
        return str(done.stdout).rstrip("\n")

    def find(self, expression: str, top: str = "/") -> list[str]:
        """Return what `find` finds below `top` on the image's own file system.

        What the user can't read (as /root) is left out.
        """
        tests = expression if "-printf" in expression else rf"\( {expression} \) -print"
        return self.lines(f"find {top} -xdev ! -readable -prune -o {tests}")


@pytest.fixture(scope="session")
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    """Return testinfra's host: the container, through one shell for all commands."""
    with ContainerShell(request.config.getoption("hosts").removeprefix(DOOR)) as shell:
        yield Host(shell)


@pytest.fixture(scope="session")
def layer(host: Host) -> Layer:
    """Return the container under test."""
    return Layer(host)
