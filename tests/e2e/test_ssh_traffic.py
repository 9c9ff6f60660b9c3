"""What travels over SSH: files, forwarded ports, other clients, many sessions at once."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shlex
import socket
import subprocess
import tarfile
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import TYPE_CHECKING

import asyncssh
import pytest

from tests.e2e.boxes import call, until
from tests.e2e.sshclient import FOO

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.boxes import Box
    from tests.e2e.sshclient import Client, Key


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
