"""Working in the images over SSH, with OpenSSH's own client: sessions and who gets one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.boxes import call
from tests.e2e.sshclient import FOO, KEYS, PORT, Client, Key, make_key, wait_for_ssh

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.boxes import Box, Boxes

IMPORT = "python -c 'import torch; print(torch.__version__)'"


def test_torch_over_ssh(door: tuple[Box, Client]) -> None:
    """Torch imports over `ssh host python`, and is the one that exec finds."""
    box, client = door
    done = client.run(IMPORT)
    assert (done.code, done.err) == (0, "")
    assert done.out == box.run("sh", "-c", IMPORT).out


def test_one_shot_says_nothing(door: tuple[Box, Client]) -> None:
    """`ssh host true` writes not a single byte (case S8)."""
    done = door[1].run("true")
    assert (done.code, done.stdout, done.stderr) == (0, b"", b"")


def test_exit_code_passes(door: tuple[Box, Client]) -> None:
    """The command's exit code is ssh's."""
    assert door[1].run("exit 37").code == 37


def test_variables_are_identical(door: tuple[Box, Client]) -> None:
    """A variable given to `docker run` is the same bytes in a command and in a login (case S1)."""
    _, client = door
    for done in (client.run('printf %s "$FOO"'), client.login('printf %s "$FOO"\n')):
        assert (done.code, done.stdout) == (0, FOO.encode()), done.err


def test_environment_is_the_same(door: tuple[Box, Client]) -> None:
    """PATH, CONDA_PREFIX, LANG and NCCL's settings are those of exec, in a command and a login."""
    box, client = door
    script = 'printf "%s\\n" "$PATH" "$CONDA_PREFIX" "$LANG" "$NCCL_DEBUG" "$SHELL"'
    inside = box.run("sh", "-c", script).out
    assert client.run(script).out == inside
    assert client.login(f"{script}\n").out == inside
    assert inside.splitlines()[1:4] == ["/opt/env", "C.UTF-8", "INFO"]


def test_session_is_the_users(door: tuple[Box, Client]) -> None:
    """HOME and USER are the user's, and Jupyter's token isn't told to SSH sessions."""
    script = 'echo "$HOME $USER $(id -un) ${JUPYTER_TOKEN-unset}"'
    assert door[1].run(script).out == "/home/dev dev dev unset"


def test_password_is_refused(door: tuple[Box, Client]) -> None:
    """No password is ever asked for: the server offers keys as the one way in."""
    _, client = door
    argv = ("ssh", *client.options, "-o", "PubkeyAuthentication=no")
    done = call(*argv, "-p", str(client.port), client.target, "true")
    assert done.code == 255
    assert done.err.strip().endswith("Permission denied (publickey).")


def test_root_is_refused(door: tuple[Box, Client]) -> None:
    """Nobody logs in as root, not even with the right key."""
    _, client = door
    done = Client(client.port, client.key, "root").run("true")
    assert done.code == 255
    assert "Permission denied (publickey)" in done.err


def test_other_key_is_refused(door: tuple[Box, Client], tmp_path: Path) -> None:
    """A key that wasn't given opens nothing."""
    done = door[1].with_key(make_key(tmp_path, "eve")).run("true")
    assert done.code == 255
    assert "Permission denied (publickey)" in done.err


def test_foreign_locale(door: tuple[Box, Client]) -> None:
    """A client that sends its German locale gets no warning, and Python prints é (case I12)."""
    _, client = door
    program = "python -c 'print(\"\\u00e9\")'; perl -e 1; bash -lc true"
    argv = ("ssh", *client.options, "-o", "SendEnv=LANG LC_*", "-p", str(client.port))
    done = call(*argv, client.target, program, env={"LANG": "de_DE.UTF-8", "LC_ALL": "de_DE.UTF-8"})
    assert (done.code, done.stdout.decode(), done.err) == (0, "é\n", "")


@pytest.mark.parametrize("door", ["remote"], indirect=True)
def test_old_clients(door: tuple[Box, Client]) -> None:
    """A client that knows no Ed25519 host key gets RSA, with SHA-2; SHA-1 is not offered."""
    _, client = door
    known = ("-o", "UserKnownHostsFile=/dev/null", "-o", "HostKeyAlgorithms=rsa-sha2-512")
    argv = ("ssh", *known, *client.options, "-p", str(client.port), client.target, "true")
    assert call(*argv).code == 0
    sha1 = ("-o", "LogLevel=INFO", "-o", "KexAlgorithms=diffie-hellman-group14-sha1")
    weak = call("ssh", *sha1, *argv[1:])
    assert weak.code == 255
    assert "no matching key exchange method found" in weak.err


@pytest.mark.parametrize("door", ["remote"], indirect=True)
def test_sessions_start_in_the_work_folder(door: tuple[Box, Client], tmp_path: Path) -> None:
    """A session, and sftp, start where `docker run` does, with its umask."""
    _, client = door
    assert client.run("pwd; umask").out.split() == ["/home/dev/work", "0022"]
    (tmp_path / "batch").write_text("pwd\n")
    sftp = ("sftp", *client.options, "-P", str(client.port))
    done = call(*sftp, "-b", str(tmp_path / "batch"), client.target)
    assert done.out.splitlines()[-1] == "Remote working directory: /home/dev/work"


@pytest.mark.parametrize("door", ["remote"], indirect=True)
def test_log(door: tuple[Box, Client]) -> None:
    """What the server logs is the container's stdout."""
    box, client = door
    assert client.run("true").code == 0
    said = box.docker("logs", box.name)
    assert "Accepted publickey for dev" in said.out
    assert "Accepted publickey" not in said.err


def test_host_keys_are_closed(door: tuple[Box, Client]) -> None:
    """The private host keys can be read by their owner alone (case S4)."""
    done = door[0].run("sh", "-c", "stat --format %a ~/.strata-ssh ~/.strata-ssh/host_*[!b]")
    assert done.out.split() == ["700", "600", "600"]


def test_stop_is_quick(boxes: Boxes, key: Key) -> None:
    """`docker stop` ends the server within 5 seconds and without being killed."""
    box = boxes.start("remote", *PORT, "--volume", f"{key.file}.pub:{KEYS}:ro")
    wait_for_ssh(box)
    code, seconds = box.stop()
    assert code in (0, 143)
    assert seconds < 5
