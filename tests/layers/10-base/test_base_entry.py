"""What a container starts with: bin/entry settles home and name, and becomes the command."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.layers.conftest import Layer

ENTRY = "/opt/strata/bin/entry"
# Names that the script uses itself, and what a shell would drop or change.
GIVEN = {
    "name": "n",
    "home": "a b",
    "uid": "x",
    "folder": "é",
    "a.b": "1",
    "NL": 'a\n$b"c',
    "EMPTY": "",
}


def test_environment_passes(layer: Layer) -> None:
    """Every variable reaches the command byte for byte, whatever its name is."""
    words = " ".join(shlex.quote(f"{name}={value}") for name, value in GIVEN.items())
    pairs = layer.out(f"env {words} {ENTRY} env -0").split("\0")
    said = dict(pair.split("=", 1) for pair in pairs if pair)
    assert {name: said.get(name) for name in GIVEN} == GIVEN
    assert said["HOME"] == layer.account.home


@pytest.mark.parametrize("home", ["/", "/nowhere", "/usr"])
def test_home_can_be_written(layer: Layer, home: str) -> None:
    """A home that is not there or closed is replaced by the account's own."""
    assert layer.out(f"HOME={home} {ENTRY} sh -c 'echo $HOME'") == layer.account.home


def test_given_home_stays(layer: Layer) -> None:
    """A home that can be written to is left as it is given."""
    assert layer.out(f"HOME=/tmp {ENTRY} sh -c 'echo $HOME'") == "/tmp"  # noqa: S108


def test_exit_codes(layer: Layer) -> None:
    """The command's exit code is the entry's; what isn't there is 127, as in a shell."""
    assert layer.host.run(f"{ENTRY} sh -c 'exit 41'").rc == 41
    done = layer.host.run(f"{ENTRY} no-such-program")
    assert done.rc == 127
    assert "no-such-program: not found" in done.stderr


def test_known_user_leaves_no_file(layer: Layer) -> None:
    """The image's own user needs no list of accounts beside /etc/passwd."""
    named = f"{layer.account.uid}({layer.account.name})"
    assert layer.out(f"{ENTRY} id") == f"uid={named} gid={named} groups={named}"
    assert not layer.host.file("/tmp/.strata").exists  # noqa: S108


def test_accounts_are_closed(layer: Layer) -> None:
    """The lists of accounts are root's, and nobody else may write to them."""
    said = layer.lines("stat --format '%a %U %n' /etc/passwd /etc/group /etc/strata/account")
    assert said == [f"644 root /etc/{name}" for name in ("passwd", "group", "strata/account")]


def test_system_programs(layer: Layer) -> None:
    """No program of the system takes a library from the environment's folder."""
    script = """
    for program in ssh ssh-keygen curl apt-get git rsync getent /usr/sbin/sshd; do
      found=$(PATH=/usr/sbin:/usr/bin:/sbin:/bin command -v "$program") || continue
      echo "$found"; ldd "$found" | grep /opt/ || true
    done
    """
    found = layer.lines(script)
    assert {"/usr/bin/ssh", "/usr/bin/curl", "/usr/bin/apt-get"} <= set(found)
    assert [line for line in found if "/opt/" in line] == []
    assert layer.out("echo ${LD_LIBRARY_PATH-unset} ${LD_PRELOAD-unset}") == "unset unset"
