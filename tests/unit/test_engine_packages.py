"""What would be installed on which machine."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strata.apt import IndexTarget
from strata.engine.packages import (
    COMPOSE,
    DAEMON_FILE,
    PACKAGES,
    PIN_FILE,
    PRIVATE_PACKAGES,
    SOURCES_FILE,
    Action,
    Command,
    Machine,
    WriteFile,
    debian_mirror,
    plan_install,
    plan_settings,
    signed_by,
)
from strata.errors import HostError

if TYPE_CHECKING:
    from pathlib import Path

ALL = tuple(PACKAGES)
MIRROR = "http://mirror.test/debian/"


def machine(os_id: str, version: str, *has: str) -> Machine:
    """Return a machine of that release with those programs."""
    return Machine(
        os_id=os_id, os_version=version, has=frozenset(has), mirror=MIRROR, keyring="/k.gpg"
    )


def installed(actions: tuple[Action, ...]) -> tuple[str, ...]:
    """Return the packages that the last action installs."""
    last = actions[-1]
    assert isinstance(last, Command)
    return last.argv[last.argv.index("--no-install-recommends") + 1 :]


def test_debian_12_takes_docker_and_nothing_else_from_debian_13() -> None:
    """The pin comes before the source, lets four packages in and holds all others back."""
    pin, source, update, _install = plan_install(machine("debian", "12"), ALL)
    assert pin == WriteFile(
        path=PIN_FILE,
        text=(
            "Package: *\nPin: release n=trixie\nPin-Priority: 1\n\n"
            "Package: docker.io docker-cli docker-buildx docker-compose containerd\n"
            "Pin: release n=trixie\nPin-Priority: 500\n"
        ),
    )
    assert source == WriteFile(
        path=SOURCES_FILE,
        text=(
            "Types: deb\nURIs: http://mirror.test/debian/\nSuites: trixie\n"
            "Components: main\nSigned-By: /k.gpg\n"
        ),
    )
    assert isinstance(update, Command)
    assert update.argv[-1] == "update"


def test_debian_12_installs_what_an_engine_needs() -> None:
    """Six packages bring engine, client, buildx, containerd, runc and iptables."""
    assert installed(plan_install(machine("debian", "12"), ALL)) == (
        "containerd",
        "docker-buildx",
        "docker-cli",
        "docker.io",
        "iptables",
        "runc",
    )


@pytest.mark.parametrize("version", ["13", "14", ""])
def test_newer_debian_uses_its_own_packages(version: str) -> None:
    """From Debian 13 on (testing has no number) no pin and no source is written."""
    actions = plan_install(machine("debian", version), ALL)
    assert all(isinstance(action, Command) for action in actions)
    assert "docker-cli" in installed(actions)


def test_ubuntu_has_the_client_in_docker_io() -> None:
    """Ubuntu knows no docker-cli, so it is not asked for."""
    packages = installed(plan_install(machine("ubuntu", "24.04"), ALL))
    assert packages == ("containerd", "docker-buildx", "docker.io", "iptables", "runc")


def test_compose_comes_from_where_docker_does() -> None:
    """Debian 12's own is of another kind, and Ubuntu's package has another name."""
    on_debian = plan_install(machine("debian", "12", *ALL), (COMPOSE,))
    assert [action.path for action in on_debian if isinstance(action, WriteFile)] == [
        PIN_FILE,
        SOURCES_FILE,
    ]
    assert installed(on_debian) == ("docker-compose",)
    on_ubuntu = plan_install(machine("ubuntu", "24.04", *ALL), (COMPOSE,))
    assert installed(on_ubuntu) == ("docker-compose-v2",)


def test_nothing_is_installed_twice() -> None:
    """A machine that has everything gets no action at all, on any system."""
    for system, version in (("debian", "12"), ("ubuntu", "24.04"), ("fedora", "42")):
        assert plan_install(machine(system, version, *ALL), ALL) == ()


def test_only_what_is_missing_is_installed() -> None:
    """With Docker there, a private engine's one more program needs no pin."""
    actions = plan_install(machine("debian", "12", *ALL), tuple(PRIVATE_PACKAGES))
    assert installed(actions) == ("iproute2",)
    assert all(isinstance(action, Command) for action in actions)


@pytest.mark.parametrize(
    ("system", "version"), [("fedora", "42"), ("debian", "11"), ("ubuntu", "18.04"), ("", "")]
)
def test_unknown_systems_get_an_error_with_a_way_out(system: str, version: str) -> None:
    """Where we don't know the packages we install none, and say what a person may do."""
    with pytest.raises(HostError, match="only on Debian") as error:
        plan_install(machine(system, version), ALL)
    assert error.value.exit_code == 8
    assert "https://docs.docker.com/engine/install/" in error.value.problems[0].fix


def test_only_an_unused_engine_gets_settings() -> None:
    """The containerd store is switched on for an engine without images and settings only."""
    (write,) = plan_settings(machine("debian", "12"))
    assert write == WriteFile(
        path=DAEMON_FILE, text='{\n  "features": {\n    "containerd-snapshotter": true\n  }\n}\n'
    )
    assert plan_settings(machine("debian", "12", "dockerd")) == (write,)
    used = Machine(os_id="debian", os_version="12", has=frozenset(), has_images=True)
    assert plan_settings(used) == ()
    owned = Machine(os_id="debian", os_version="12", has=frozenset(), has_daemon_file=True)
    assert plan_settings(owned) == ()


def target(uri: str, codename: str, component: str, source: Path) -> IndexTarget:
    """Return an index target whose source is the first of a file."""
    return IndexTarget(
        uri=uri, suite=codename, codename=codename, component=component, source=f"{source}:1"
    )


def test_the_mirror_is_the_machines_own(tmp_path: Path) -> None:
    """The first http(s) source of the release's main part is the mirror, its keyring is kept."""
    file = tmp_path / "a.list"
    file.write_text("deb [signed-by=/keys/a.gpg] https://b.test/debian bookworm main\n")
    targets = (
        target("file:///mnt/cd/", "bookworm", "main", file),
        target("https://s.test/debian-security/", "bookworm-security", "main", file),
        target("https://b.test/debian/", "bookworm", "main", file),
    )
    assert debian_mirror(targets, "bookworm") == ("https://b.test/debian/", "/keys/a.gpg")
    with pytest.raises(HostError, match="no http"):
        debian_mirror(targets[:2], "bookworm")


def test_the_keyring_is_read_from_either_format(tmp_path: Path) -> None:
    """Stanzas are counted in .sources files, lines in .list files, inline keys kept whole."""
    sources = tmp_path / "d.sources"
    sources.write_text(
        "# ours\nTypes: deb\nURIs: http://a.test\nSigned-By: /keys/one.gpg\n\n"
        "# comment\n\n"
        "Types: deb\nURIs: http://b.test\nSigned-By:\n -----BEGIN\n .\n abc\nSuites: x\n\n"
        "Types: deb\nURIs: http://c.test\n"
    )
    assert signed_by(f"{sources}:1") == "/keys/one.gpg"
    assert signed_by(f"{sources}:2") == "\n -----BEGIN\n .\n abc"
    assert signed_by(f"{sources}:3") == ""
    lines = tmp_path / "d.list"
    lines.write_text(
        "deb http://a.test x main\ndeb [arch=amd64 signed-by=/k.gpg] http://b.test x\n"
    )
    assert [signed_by(f"{lines}:{number}") for number in (1, 2)] == ["", "/k.gpg"]
