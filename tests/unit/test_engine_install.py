"""How an engine is installed and started; nothing here touches the machine."""

from __future__ import annotations

import grp
import os
import pwd
import shlex
import shutil
import sys
from typing import TYPE_CHECKING

import pytest

from strata.engine import install, membership
from strata.engine.connect import Engine
from strata.engine.packages import PIN_FILE, SOURCES_FILE, Machine
from strata.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Sequence

BARE = Machine(
    os_id="debian",
    os_version="12",
    has=frozenset({"iptables"}),
    mirror="http://mirror.test/debian/",
    keyring="/k.gpg",
    has_daemon_file=True,
)
SUDO = ("sudo", "-n")
MISSING = "containerd, docker-buildx, docker-cli, docker.io, runc"
PACKAGES = MISSING.replace(",", "").split()
CLOSED = PermissionError(13, "Permission denied")


class Recorded:
    """A bare Debian 12 whose commands are written down, not run.

    `knocks` are what is met at the engine's socket, one after the other.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *knocks: OSError | None) -> None:
        """Take the place of all that would act."""
        self.done: list[str] = []
        self.became: list[str] = []
        self.knocks = list(knocks)
        monkeypatch.setattr(install, "read_machine", lambda _: BARE)
        monkeypatch.setattr("strata.apt.superuser", lambda: SUDO)
        monkeypatch.setattr(install, "knock", lambda _: self.knocks.pop(0))
        monkeypatch.setattr(install, "start_system_engine", self.start)
        for module in (install, membership):
            monkeypatch.setattr(module, "run", self.run)
        monkeypatch.setattr(os, "execvp", self.execute)

    def run(self, argv: Sequence[str], *, stdin: str | None = None, **_: object) -> str:
        """Write down a command; it must be root's."""
        assert tuple(argv[:2]) == SUDO
        assert (stdin is not None) == (argv[2] == "tee")
        self.done.append(" ".join(argv[2:]))
        return ""

    def start(self, engine: Engine, prefix: tuple[str, ...]) -> None:
        """Write down the start of the engine."""
        assert prefix == SUDO
        self.done.append(f"start {engine.host}")

    def execute(self, file: str, argv: list[str]) -> None:
        """End where another program would take our place."""
        assert file == argv[0]
        self.became = argv
        raise SystemExit


def test_without_root_nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends with 8, and names the packages and every way out."""
    machine = Recorded(monkeypatch)
    monkeypatch.setattr("strata.apt.superuser", lambda: None)
    with pytest.raises(HostError) as failed:
        install.install_engine()
    assert failed.value.exit_code == 8
    (problem,) = failed.value.problems
    assert f"without root we may not install {MISSING}" in problem.what
    assert problem.fix.startswith("run ./inv once as root; or set DOCKER_HOST; or install Docker")
    assert machine.done == []


def test_the_pin_comes_before_the_source_and_both_before_apt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a bare Debian 12, by sudo; then the engine is started."""
    machine = Recorded(monkeypatch, FileNotFoundError(), None)
    engine = install.install_engine()
    assert engine == Engine(host="unix:///var/run/docker.sock", origin="installed")
    apt_get = "env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=120 -q -y"
    assert machine.done == [
        f"mkdir -p {PIN_FILE.parent}",
        f"tee {PIN_FILE}",
        f"mkdir -p {SOURCES_FILE.parent}",
        f"tee {SOURCES_FILE}",
        f"{apt_get} update",
        f"{apt_get} install --no-install-recommends {' '.join(PACKAGES)}",
        "start unix:///var/run/docker.sock",
    ]


def test_an_engine_that_its_package_has_started_is_not_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As with systemd."""
    machine = Recorded(monkeypatch, None, None)
    install.install_engine()
    assert "--no-install-recommends" in machine.done[-1]


def test_a_user_goes_on_as_a_member_of_dockers_group(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Who may use sudo joins the group, is told what that means, and the same command runs on."""
    machine = Recorded(monkeypatch, CLOSED, CLOSED)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: _Entry("ada", 1007))
    monkeypatch.setattr(grp, "getgrgid", {1007: _Entry("staff", 0)}.__getitem__)
    monkeypatch.setattr(shutil, "which", "/usr/bin/{}".format)
    monkeypatch.setattr(sys, "executable", "/v/python")
    monkeypatch.setattr(sys, "orig_argv", ["python", "-m", "strata", "build", "--from", "a b"])
    with pytest.raises(SystemExit):
        install.install_engine()
    assert machine.done[-1] == "usermod -aG docker ada"
    assert "members rule this machine as root does" in capsys.readouterr().err
    *outer, text = machine.became
    *inner, command = shlex.split(text)
    assert (outer, inner) == (["sg", "docker", "-c"], ["exec", "sg", "staff", "-c"])
    assert shlex.split(command) == ["exec", "/v/python", "-m", "strata", "build", "--from", "a b"]


def test_without_sg_a_new_login_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing can make a running shell's user a member then: exit 8 with what to do."""
    Recorded(monkeypatch, CLOSED, CLOSED)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(HostError, match="it is installed and runs") as failed:
        install.install_engine()
    assert failed.value.problems[0].fix == "log in again, and run this again"


class _Entry:
    def __init__(self, name: str, gid: int) -> None:
        self.pw_name = self.gr_name = name
        self.pw_gid = gid
