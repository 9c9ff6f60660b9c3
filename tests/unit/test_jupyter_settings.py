"""What variables and secrets say about the image's Jupyter server."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "layers/40-jupyter/rootfs/opt/strata/jupyter"
ARGON2 = "argon2:$argon2id$v=19$m=10240,t=10,p=8$c2FsdHNhbHQ$aGFzaGhhc2g"


@pytest.fixture
def jupyter(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Return the image's module."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # the folder is the layer's
    monkeypatch.delitem(sys.modules, "strata_jupyter", raising=False)
    return __import__("strata_jupyter")


def nothing(_: str) -> None:
    """Find no file."""


def test_nothing_given(jupyter: ModuleType) -> None:
    """Without a variable the server has port 8888, the base URL /, and a random token."""
    found = jupyter.decide({}, nothing)
    assert (found.ip, found.port, found.base_url) == ("0.0.0.0", 8888, "/")
    assert (found.token, found.password_hash, found.public_url) == ("", "", "")


@pytest.mark.parametrize("name", ["JUPYTER_TOKEN", "JUPYTER_PORT", "JUPYTER_BASE_URL"])
def test_empty_is_not_given(jupyter: ModuleType, name: str) -> None:
    """An empty variable is one that wasn't given: the token is a random one (case J4)."""
    assert jupyter.decide({name: ""}, nothing) == jupyter.decide({}, nothing)


def test_token_is_kept(jupyter: ModuleType) -> None:
    """A token's quotes and inner spaces are its own, in a variable and in a file."""
    given = 'it\'s "my"  token'
    assert jupyter.decide({"JUPYTER_TOKEN": given}, nothing).token == given
    files = {"/a": f"{given}\r\n"}
    assert jupyter.decide({"JUPYTER_TOKEN_FILE": "/a"}, files.get).token == given


@pytest.mark.parametrize("given", [" abc", "abc ", " "])
def test_outer_spaces(jupyter: ModuleType, given: str) -> None:
    """A token with outer spaces, with which Jupyter lets nobody in, is refused."""
    with pytest.raises(jupyter.SettingError, match="begins or ends with a space; fix: leave the"):
        jupyter.decide({"JUPYTER_TOKEN": given}, nothing)


def test_port_of_a_kubernetes_service(jupyter: ModuleType) -> None:
    """What Kubernetes puts into JUPYTER_PORT for a Service called jupyter is not our port."""
    given = {"JUPYTER_PORT": "tcp://10.96.7.1:8888"}
    assert jupyter.decide(given, nothing).port == 8888


def test_mounted_secrets(jupyter: ModuleType) -> None:
    """Secrets in /run/secrets are found by their name; a variable comes before them."""
    files = {"/run/secrets/jupyter_token": "one\n", "/run/secrets/jupyter_password_hash": ARGON2}
    found = jupyter.decide({}, files.get)
    assert (found.token, found.password_hash) == ("one", ARGON2)
    given = "two"
    assert jupyter.decide({"JUPYTER_TOKEN": given}, files.get).token == given


@pytest.mark.parametrize(
    "given", [ARGON2, "sha1:0123456789ab:" + "0" * 40, "sha256:ab:" + "0" * 64]
)
def test_password_hash(jupyter: ModuleType, given: str) -> None:
    """Each kind of hash that Jupyter checks is taken as it is."""
    assert jupyter.decide({"JUPYTER_PASSWORD_HASH": given}, nothing).password_hash == given


@pytest.mark.parametrize(
    ("given", "expected"),
    [("/", "/"), ("ada", "/ada/"), ("/lab/x", "/lab/x/"), ("//lab/x//", "/lab/x/")],
)
def test_base_url(jupyter: ModuleType, given: str, expected: str) -> None:
    """A base URL begins and ends with one slash, whatever was written."""
    assert jupyter.decide({"JUPYTER_BASE_URL": given}, nothing).base_url == expected


def test_public_url(jupyter: ModuleType) -> None:
    """The origin of the public address is its scheme and host, with a port if it has one."""
    given = {"JUPYTER_PUBLIC_URL": "https://gpu.example.org:8443/ada/"}
    assert jupyter.decide(given, nothing).origin == "https://gpu.example.org:8443"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"JUPYTER_PORT": "80a"}, "JUPYTER_PORT is no port: 80a; fix: a number from 1 to 65535"),
        ({"JUPYTER_PORT": "65536"}, "JUPYTER_PORT is no port: 65536; "),
        ({"JUPYTER_PORT": "0"}, "JUPYTER_PORT is no port: 0; "),
        ({"JUPYTER_BASE_URL": "/a b/"}, "JUPYTER_BASE_URL is no path: /a b/; fix: such as"),
        ({"JUPYTER_PUBLIC_URL": "gpu.example.org"}, "JUPYTER_PUBLIC_URL is no address: gpu."),
        ({"JUPYTER_TOKEN": "a\nb"}, "JUPYTER_TOKEN has a line break or a control character; "),
        ({"JUPYTER_PASSWORD_HASH": "secret"}, "JUPYTER_PASSWORD_HASH is no hash of Jupyter's"),
        ({"JUPYTER_PASSWORD_HASH": "argon2:=19=10240"}, "JUPYTER_PASSWORD_HASH is no hash of"),
        ({"JUPYTER_TOKEN": "a", "JUPYTER_TOKEN_FILE": "/b"}, "JUPYTER_TOKEN and JUPYTER_TOKEN_FI"),
        ({"JUPYTER_TOKEN_FILE": "/b"}, "JUPYTER_TOKEN_FILE: there is no /b; fix: mount it"),
        ({"JUPYTER_TOKEN_FILE": "/empty"}, "/empty is empty; fix: write the secret into it"),
    ],
)
def test_what_cannot_be_right(jupyter: ModuleType, given: dict[str, str], text: str) -> None:
    """A slip is an error that names the setting and what to write, and never a secret."""
    with pytest.raises(jupyter.SettingError) as caught:
        jupyter.decide(given, {"/empty": " \n"}.get)
    assert str(caught.value).startswith(text)
    assert "secret;" not in str(caught.value)


def test_settle(jupyter: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Secrets are taken out of the environment, and are still there the second time."""
    monkeypatch.setenv("JUPYTER_TOKEN", "mine")
    monkeypatch.setenv("JUPYTER_PASSWORD_HASH", ARGON2)
    monkeypatch.setenv("JUPYTER_PORT", "9999")
    assert [jupyter.settle().token, jupyter.settle().token] == ["mine", "mine"]
    assert {name for name in os.environ if name.startswith("JUPYTER_")} == {"JUPYTER_PORT"}


def test_settle_ends(
    jupyter: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A setting that can't be right ends the server with 78, which is EX_CONFIG."""
    monkeypatch.setenv("JUPYTER_PORT", "x")
    with pytest.raises(SystemExit) as caught:
        jupyter.settle()
    assert caught.value.code == 78
    assert capsys.readouterr().err == (
        "jupyter: JUPYTER_PORT is no port: x; fix: a number from 1 to 65535\n"
    )


def test_unreadable_file(jupyter: ModuleType) -> None:
    """A folder in the secret's place is named with the reason."""
    with pytest.raises(
        jupyter.SettingError, match=r"^/etc cannot be read by uid \d+ \(.*directory"
    ):
        jupyter.decide({"JUPYTER_TOKEN_FILE": "/etc"}, jupyter._read)
