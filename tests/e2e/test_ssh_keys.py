"""The keys of SSH: those of the host, and those that are let in."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from tests.e2e.sshclient import FOO, KEYS, PORT, Client, Key, fingerprints, make_key, wait_for_ssh

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.boxes import Boxes


def test_host_keys_differ_and_stay(boxes: Boxes, key: Key) -> None:
    """Each container has its own host keys and keeps them over a restart (case S4)."""
    given = ("--volume", f"{key.file}.pub:{KEYS}:ro")
    one, two = boxes.start("remote", *PORT, *given), boxes.start("remote", *PORT, *given)
    first, second = (fingerprints(wait_for_ssh(box)) for box in (one, two))
    assert len(first) == len(second) == 2
    assert first.isdisjoint(second)
    assert one.docker("restart", one.name).code == 0
    assert fingerprints(wait_for_ssh(one)) == first


def test_identity_in_a_volume(boxes: Boxes, key: Key, tmp_path: Path) -> None:
    """A container made anew with the same volume is the same host (case S4)."""
    tmp_path.chmod(0o700)
    os.chown(tmp_path, 1000, 1000)
    given = (
        *("--volume", f"{key.file}.pub:{KEYS}:ro"),
        *("--volume", f"{tmp_path}:/ssh", "--env", "STRATA_SSH_DIR=/ssh"),
    )
    seen = []
    for _ in range(2):
        box = boxes.start("remote", *PORT, *given)
        port = wait_for_ssh(box)
        seen.append(fingerprints(port))
        assert Client(port, key).run("true").code == 0
        box.stop()
    assert seen[0] == seen[1]


def test_several_keys(boxes: Boxes, tmp_path: Path) -> None:
    """Three keys with CRLF, options and no last newline all count; a fourth, broken, is named."""
    one, two, three, four = (make_key(tmp_path, name) for name in ("one", "two", "three", "four"))
    near = f'from="10.0.0.0/8,127.0.0.1,172.16.0.0/12,192.168.0.0/16" {two.public}'
    far = f'from="203.0.113.0/24" {four.public}'
    broken = "ssh-ed25519 AAAAnotakey broken@example"
    file = tmp_path / "keys"
    lines = (one.public, near, broken, far, three.public)
    file.write_bytes("\r\n".join(lines).encode())
    file.chmod(0o644)
    box = boxes.start("remote", *PORT, "--volume", f"{file}:{KEYS}:ro")
    for _ in range(2):
        client = Client(wait_for_ssh(box), one)
        codes = [client.with_key(key).run("true").code for key in (one, two, three, four)]
        assert codes == [0, 0, 0, 255]
        kept = box.run("sh", "-c", "ssh-keygen -lf ~/.strata-ssh/authorized_keys").out
        assert len(kept.splitlines()) == 4
        assert box.docker("restart", box.name).code == 0
    assert f"ssh: left out, not a public key: {broken[:40]}" in box.logs


def test_keys_of_a_variable_and_secrets(boxes: Boxes, tmp_path: Path) -> None:
    """Keys in STRATA_AUTHORIZED_KEYS and in a folder of secrets open the door too, with options.

    Agent forwarding is off until a mounted file asks for it; the server takes no library from
    LD_LIBRARY_PATH, which its sessions have.
    """
    one, two, three = (make_key(tmp_path, name) for name in ("one", "two", "three"))
    secrets, asked = tmp_path / "secrets", tmp_path / "asked"
    for folder in (secrets, asked):
        folder.mkdir()
    forced = 'command="echo $FOO; echo $SSH_ORIGINAL_COMMAND"'
    (secrets / "team").write_text(f"{forced} {three.public}")
    (asked / "agent.conf").write_text("AllowAgentForwarding yes\n")
    decoys = tmp_path / "decoys"
    decoys.mkdir()
    for library in ("libcrypto.so.3", "libcrypto.so.1.1"):
        (decoys / library).write_text("no library")
    for folder in (tmp_path, secrets, asked, decoys):
        folder.chmod(0o755)
    box = boxes.start(
        "remote",
        *PORT,
        *("--env", f"STRATA_AUTHORIZED_KEYS={one.public}\n{two.public}", "--env", f"FOO={FOO}"),
        *("--volume", f"{secrets}:/run/secrets/authorized_keys:ro"),
        *("--volume", f"{asked}:/etc/strata/sshd_config.d:ro"),
        *("--volume", f"{decoys}:/decoys:ro", "--env", "LD_LIBRARY_PATH=/decoys"),
    )
    client = Client(wait_for_ssh(box), one)
    assert [client.with_key(key).run("true").code for key in (one, two)] == [0, 0]
    assert client.run('echo "${STRATA_AUTHORIZED_KEYS-unset}"').out == "unset"
    assert client.with_key(three).run("rm", "-rf", "x").out == f"{FOO}\nrm -rf x"
    assert client.run("echo $LD_LIBRARY_PATH").out == "/decoys"
    assert client.run("/usr/sbin/sshd -V 2>&1").code == 127  # the decoys would break it
    show = "unset LD_LIBRARY_PATH; /usr/sbin/sshd -T -f ~/.strata-ssh/sshd_config"
    settings = box.run("sh", "-c", show).out
    assert {"allowagentforwarding yes", "x11forwarding no"} <= set(settings.splitlines())


@pytest.mark.parametrize("name", ["remote", "dev"])
def test_no_key(boxes: Boxes, name: str) -> None:
    """Without a key the container ends with 78 and says what to give it."""
    done = boxes.once(name)
    assert done.code == 78
    assert "ssh: no public key to let in; fix: docker run -v " in done.err


def test_unreadable_keys(boxes: Boxes, key: Key, tmp_path: Path) -> None:
    """A file of keys that the user can't read is named, with the fix."""
    closed = tmp_path / "closed"
    shutil.copy(f"{key.file}.pub", closed)
    closed.chmod(0o600)
    done = boxes.once("remote", "--volume", f"{closed}:{KEYS}:ro")
    assert done.code == 78
    assert f"ssh: {KEYS} cannot be read by 1000; fix: chmod a+r on the host" in done.err
