"""Public keys: found in a file or in ~/.ssh, never a private one, each once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import strata.start.keys
from strata.errors import DefinitionError, HostError
from strata.start.keys import Keys, agent_keys, find_keys, key_lines, read_key, same_keys

if TYPE_CHECKING:
    from pathlib import Path

ADA = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG4oyzAfh+wigKvfBRE7jD79nvNuOFd9itbpRZhw3kcF ada@host"
BOB = (
    "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBAoBAgMEBQYHCAkKCwwND"
    "g8QERITFBUWFxgZGhscHR4fICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8= bob"
)
LIMITED = f'from="10.0.0.0/8,127.0.0.1" {ADA}'
PRIVATE = "-----BEGIN OPENSSH PRIVATE KEY-----\nnot for others\n"


@pytest.fixture(autouse=True)
def no_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave this machine's own agent alone."""
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)


def test_lines_that_are_keys_are_kept() -> None:
    """Any line ending, options and comments; neither empty lines nor what is no key."""
    text = f"# {BOB}\r\n\r\n{ADA}\r\nssh-ed25519 broken\nssh-rsa AAAAC3Nz x\n  {BOB}"
    assert key_lines(text) == (ADA, BOB)
    assert key_lines(LIMITED) == (LIMITED,)


def test_each_key_is_kept_once() -> None:
    """The same key with another comment, or other options, is the same key."""
    assert key_lines(f"{ADA}\n{ADA} again\n{LIMITED}") == (ADA,)


def test_a_keys_type_is_the_blobs() -> None:
    """A line whose first word is another type than its blob says is no key."""
    assert key_lines(ADA.replace("ssh-ed25519", "ssh-rsa")) == ()


def test_keys_of_the_home_are_found(tmp_path: Path) -> None:
    """All public keys of ~/.ssh are let in, and nothing else of it."""
    folder = tmp_path / ".ssh"
    folder.mkdir()
    (folder / "id_ed25519").write_text(PRIVATE)
    (folder / "id_ed25519.pub").write_text(f"{ADA}\n")
    (folder / "work.pub").write_text(BOB)
    (folder / "known_hosts").write_text(f"host {LIMITED}\n")
    found = find_keys("", tmp_path, tmp_path)
    assert found == Keys(lines=(ADA, BOB), identities=(folder / "id_ed25519",))


def test_without_any_key_the_way_to_one_is_told(tmp_path: Path) -> None:
    """Both places are named, and how to make a key."""
    with pytest.raises(DefinitionError) as caught:
        find_keys("", tmp_path, tmp_path)
    assert str(caught.value) == (
        f"error: public key: there is none in {tmp_path}/.ssh/*.pub, nor in ssh-agent (none runs)\n"
        "  fix: ssh-keygen -t ed25519 makes one; or name yours: --key FILE.pub"
    )


def test_a_named_key_is_the_only_one(tmp_path: Path) -> None:
    """`--key FILE.pub`, relative to the current folder, with the private key beside it."""
    (tmp_path / "mine.pub").write_text(f"{ADA}\n")
    found = find_keys("mine.pub", tmp_path, tmp_path)
    assert found == Keys(lines=(ADA,), is_named=True)
    (tmp_path / "mine").write_text(PRIVATE)
    found = find_keys("mine.pub", tmp_path, tmp_path)
    assert found == Keys(lines=(ADA,), identities=(tmp_path / "mine",), is_named=True)


def test_a_private_key_stays_here(tmp_path: Path) -> None:
    """Its public half is taken from beside it; where that is missing, it is an error."""
    mine = tmp_path / "mine"
    mine.write_text(PRIVATE)
    with pytest.raises(DefinitionError, match=r"No such file or directory: .*mine\.pub") as caught:
        read_key(mine)
    assert "not for others" not in str(caught.value)
    (tmp_path / "mine.pub").write_text(ADA)
    assert read_key(mine) == Keys(lines=(ADA,), identities=(mine,), is_named=True)


def test_a_file_without_keys_is_an_error(tmp_path: Path) -> None:
    """It is named."""
    file = tmp_path / "list.txt"
    file.write_text("nothing\n")
    with pytest.raises(DefinitionError, match=r"list\.txt: it holds no public key"):
        read_key(file)


def test_the_agent_is_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What ssh-add lists comes first; what is in both places counts once."""
    monkeypatch.setenv("SSH_AUTH_SOCK", "/agent")
    monkeypatch.setattr(strata.start.keys, "run", lambda *_, **__: f"{BOB}\n")
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "a.pub").write_text(f"{ADA}\n{BOB} too\n")
    assert find_keys("", tmp_path, tmp_path).lines == (BOB, ADA)


def test_an_agent_that_fails_gives_its_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason is kept for whoever has no other key."""

    def fail(*_: object, **__: object) -> str:
        raise HostError.at("ssh-agent", "ended with 2", "start it")

    monkeypatch.setattr(strata.start.keys, "run", fail)
    assert agent_keys({"SSH_AUTH_SOCK": "/agent"}) == ("", "ended with 2")
    assert agent_keys({}) == ("", "none runs")


def test_keys_in_common_are_seen() -> None:
    """One is enough, whatever its comment."""
    assert same_keys([ADA, BOB], [LIMITED])
    assert not same_keys([ADA], [BOB])
    assert not same_keys([], [ADA])
