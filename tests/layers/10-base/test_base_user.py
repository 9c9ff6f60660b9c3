"""Who the image runs as, and what that user may do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.layers.conftest import Layer


@dataclass(frozen=True)
class Entry:
    """One place of the image: f or d, permission bits, owner, path."""

    kind: str
    mode: int
    owner: str
    path: str


@pytest.fixture(scope="module")
def odd(layer: Layer) -> list[Entry]:
    """Return what changes its user, is open to everybody, or is the user's outside its home."""
    account = layer.account
    listed = layer.find(
        rf"! -type l ! -path '{account.home}*' ! -path '/tmp/*'"
        rf" \( -perm /6000 -o -perm -0002 -o -user {account.name} \) -printf '%y %m %u %p\n'"
    )
    words = (line.split(" ", 3) for line in listed)
    return [Entry(kind, int(mode, 8), owner, path) for kind, mode, owner, path in words]


def test_user_is_the_builds(layer: Layer) -> None:
    """The image runs as the user of its build, with a group of the same number, in no other."""
    named = f"{layer.account.uid}({layer.account.name})"
    assert layer.out("id") == f"uid={named} gid={named} groups={named}"
    assert layer.account.uid > 0


def test_uid_is_unique(layer: Layer) -> None:
    """No second user and no second group has the user's number."""
    name, uid = layer.account.name, layer.account.uid
    for file in ("passwd", "group"):
        assert layer.lines(f"awk -F: '$3 == {uid} {{ print $1 }}' /etc/{file}") == [name]


def test_account(layer: Layer) -> None:
    """The account's home and shell are the environment's (50-ssh's shell comes to it by itself)."""
    name = layer.account.name
    home, shell = layer.out(f"getent passwd {name}").split(":")[5:]
    assert (home, shell in {"/bin/bash", "/opt/strata/bin/session"}) == (f"/home/{name}", True)
    assert layer.out(f"getent passwd {name}") == layer.out("cat /etc/strata/account")
    assert layer.out('echo "$HOME $SHELL"') == f"{home} /bin/bash"


def test_home_is_owned(layer: Layer) -> None:
    """All of the home is the user's, and work is where one starts."""
    name, home = layer.account.name, layer.account.home
    assert layer.find(f"! -user {name} -o ! -group {name}", home) == []
    assert layer.out("pwd") == f"{home}/work"
    modes = layer.lines(f"stat --format '%U:%G %a' {home} {home}/work")
    assert modes == [f"{name}:{name} 755"] * 2


def test_nothing_else_is_owned(layer: Layer, odd: list[Entry]) -> None:
    """Outside its home and the temporary folders the user owns nothing but conda's cache."""
    owned = [entry.path for entry in odd if entry.owner == layer.account.name]
    assert [path for path in owned if path != "/opt/conda/pkgs"] == []


def test_no_password(layer: Layer) -> None:
    """The user has no sudo, and may not even read the file with the passwords."""
    assert layer.host.run("command -v sudo").rc != 0
    assert "Permission denied" in layer.host.run("cat /etc/shadow").stderr


def test_no_setuid_program(odd: list[Entry]) -> None:
    """No program in the image changes who one is."""
    assert [entry.path for entry in odd if entry.kind == "f" and entry.mode & 0o6000] == []


def test_open_places(odd: list[Entry]) -> None:
    """Everybody may write to /tmp and /var/tmp, which are sticky, and nowhere else.

    Why /var/tmp stays as the base has it: decision 0008.
    """
    places = [(entry.path, oct(entry.mode)) for entry in odd if entry.mode & 0o002]
    assert sorted(places) == [("/tmp", "0o1777"), ("/var/tmp", "0o1777")]  # noqa: S108


@pytest.mark.parametrize("folder", ["/", "/etc", "/opt", "/opt/strata", "/usr/local/bin"])
def test_system_is_closed(layer: Layer, folder: str) -> None:
    """The user can't write where programs and settings are."""
    assert layer.host.run("test -w %s", folder).rc == 1


def test_init(layer: Layer) -> None:
    """PID 1 is tini, started with what the container runs."""
    assert layer.out("readlink /proc/1/exe") == "/usr/bin/tini"
    assert layer.out("tr '\\0' ' ' </proc/1/cmdline").startswith(
        "/usr/bin/tini -- /opt/strata/bin/entry "
    )
