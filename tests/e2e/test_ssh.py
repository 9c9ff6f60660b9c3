"""Working in the images over SSH, with OpenSSH's own client."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shlex
import shutil
import socket
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import TYPE_CHECKING

import asyncssh
import pytest

from tests.e2e.boxes import call, until
from tests.e2e.sshclient import Client, Key, fingerprints, make_key, wait_for_ssh

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.boxes import Box, Boxes

FOO = 'a b=c"d'
PORT = ("--publish", "127.0.0.1::2222")
IMPORT = "python -c 'import torch; print(torch.__version__)'"
KEYS = "/etc/strata/authorized_keys"


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Key:
    """Make the key that is let in."""
    return make_key(tmp_path_factory.mktemp("ssh"), "ada")


@pytest.fixture(scope="module", params=["remote", "dev"])
def door(request: pytest.FixtureRequest, shared_boxes: Boxes, key: Key) -> tuple[Box, Client]:
    """Start each image that has SSH, as its README says, with a few variables."""
    box = shared_boxes.start(
        request.param,
        *PORT,
        *("--volume", f"{key.file}.pub:{KEYS}:ro"),
        *("--env", f"FOO={FOO}", "--env", "NCCL_DEBUG=INFO", "--env", "JUPYTER_TOKEN=not yours"),
    )
    return box, Client(wait_for_ssh(box), key)


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


def test_another_client(door: tuple[Box, Client], key: Key) -> None:
    """A client that is not OpenSSH's logs in, sees the variables, and copies a file."""

    async def talk() -> tuple[str, bytes]:
        async with asyncssh.connect(
            "127.0.0.1",
            port=door[1].port,
            username="dev",
            client_keys=[str(key.file)],
            known_hosts=None,
            config=None,
        ) as connection:
            done = await connection.run('printf %s "$FOO"', check=True)
            async with (
                connection.start_sftp_client() as sftp,
                sftp.open("/etc/hostname", "rb") as file,
            ):
                return str(done.stdout), await file.read()

    assert asyncio.run(talk()) == (FOO, door[0].run("cat", "/etc/hostname").stdout)


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


@pytest.mark.parametrize("program", ["scp", "sftp", "rsync"])
def test_files_travel(door: tuple[Box, Client], tmp_path: Path, program: str) -> None:
    """Five megabytes go in and come back unchanged, by each program that copies (case S8)."""
    _, client = door
    content = os.urandom(5_000_000)
    sent, back = tmp_path / "sent", tmp_path / "back"
    sent.write_bytes(content)
    there = f"{client.target}:/home/dev/work/{program}"
    ssh = shlex.join(["ssh", *client.options, "-p", str(client.port)])
    port = ("-P", str(client.port))
    copies: dict[str, list[tuple[str, ...]]] = {
        "scp": [
            ("scp", *client.options, *port, str(sent), there),
            ("scp", *client.options, *port, there, str(back)),
        ],
        "sftp": [
            ("sftp", *client.options, *port, "-b", str(tmp_path / "batch"), client.target),
        ],
        "rsync": [
            ("rsync", "-e", ssh, str(sent), there),
            ("rsync", "-e", ssh, there, str(back)),
        ],
    }
    batch = f"put {sent} /home/dev/work/sftp\nget /home/dev/work/sftp {back}\n"
    (tmp_path / "batch").write_text(batch)
    for argv in copies[program]:
        done = call(*argv)
        assert done.code == 0, done.err
    inside = client.run(f"sha256sum </home/dev/work/{program}").out.split()[0]
    assert inside == hashlib.sha256(content).hexdigest()
    assert hashlib.sha256(back.read_bytes()).hexdigest() == inside


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
def test_editors_way(door: tuple[Box, Client], free_port: int) -> None:
    """As VS Code works: a server unpacked over SSH runs, and is reached by -L and by -D."""
    _, client = door
    program = b"import http.server as h; s = h.HTTPServer(('127.0.0.1', 0), "
    program += b"h.SimpleHTTPRequestHandler); print(s.server_port, flush=True); s.serve_forever()"
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        entry = tarfile.TarInfo("server/main.py")
        entry.size = len(program)
        archive.addfile(entry, BytesIO(program))
    unpack = "mkdir -p ~/.editor && tar -xz -C ~/.editor"
    assert client.run(unpack, stdin=packed.getvalue()).code == 0
    start = "cd ~/.editor && { nohup python server/main.py >port 2>log </dev/null & }"
    assert client.run(start).code == 0
    inside = int(until(lambda: client.run("cat ~/.editor/port").out or None, "the server's port"))
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        proxy = int(probe.getsockname()[1])
    ways = ("-N", "-L", f"{free_port}:127.0.0.1:{inside}", "-D", f"127.0.0.1:{proxy}")
    argv = ["ssh", *client.options, *ways, "-p", str(client.port), client.target]
    with subprocess.Popen(argv) as forwarding:
        try:
            by_port = until(lambda: ask(free_port, inside, by_socks=False), "-L")
            by_proxy = until(lambda: ask(proxy, inside, by_socks=True), "-D")
        finally:
            forwarding.terminate()
    assert (by_port[:12], by_proxy[:12]) == (b"HTTP/1.0 200", b"HTTP/1.0 200")


def ask(port: int, inside: int, *, by_socks: bool) -> bytes | None:
    """Ask for a page through a forwarded port, or a SOCKS proxy (RFC 1928)."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as line:
            if by_socks:
                line.sendall(b"\x05\x01\x00")
                assert line.recv(2) == b"\x05\x00"
                line.sendall(b"\x05\x01\x00\x01\x7f\x00\x00\x01" + inside.to_bytes(2, "big"))
                assert line.recv(10)[:2] == b"\x05\x00"
            line.sendall(b"GET / HTTP/1.0\r\n\r\n")
            return line.recv(1 << 16) or None
    except ConnectionRefusedError:
        return None


@pytest.mark.parametrize("door", ["remote"], indirect=True)
def test_fifty_sessions(door: tuple[Box, Client]) -> None:
    """After fifty sessions, some at once, no process of theirs is left, as zombie or otherwise."""
    box, client = door
    with ThreadPoolExecutor(5) as pool:
        codes = list(pool.map(lambda number: client.run(f"exit {number}").code, range(50)))
    assert codes == list(range(50))
    script = "ps -eo stat=,comm= | grep -E '^Z|sshd|session' | awk '{print substr($1, 1, 1), $2}'"
    until(lambda: box.run("sh", "-c", script).out == "S sshd" or None, "the sessions' end")


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


def test_stop_is_quick(boxes: Boxes, key: Key) -> None:
    """`docker stop` ends the server within 5 seconds and without being killed."""
    box = boxes.start("remote", *PORT, "--volume", f"{key.file}.pub:{KEYS}:ro")
    wait_for_ssh(box)
    code, seconds = box.stop()
    assert code in (0, 143)
    assert seconds < 5
