"""Fixtures: real registries on loopback, a gate before one that denies, and tiny images."""

from __future__ import annotations

import base64
import http.client
import io
import os
import re
import shutil
import socket
import subprocess
import tarfile
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import docker
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

USER = "ada"
PASSWORD = "lovelace: 36"  # noqa: S105  # of a registry that lives for one test
# What `htpasswd -nbB ada 'lovelace: 36'` prints: registries take only bcrypt.
HTPASSWD = "ada:$2b$05$ZkDRXBB84dr.3dB2wSl9GekjJ1dwQr.e4QlYBHT7Gfu3SbdiUvwNO"
CONFIG = """\
version: 0.1
log: {{level: error}}
storage:
  filesystem: {{rootdirectory: {root}}}
http: {{addr: "{host}"}}
{auth}"""
AUTH = "auth:\n  htpasswd: {{realm: test, path: {path}}}\n"


@dataclass
class Gate:
    """A registry seen through a gate that denies, lies or asks for a token.

    `deny` maps a pattern of `METHOD PATH` to the status that it gets; after
    the first manifest every answer about one names the digest `lie_after_put`, if
    there is one; with `token` every request
    needs the bearer token that `/token` gives to USER and PASSWORD.
    """

    host: str = ""
    deny: dict[str, int] = field(default_factory=dict)
    lie_after_put: str = ""
    token: str = ""
    seen: list[str] = field(default_factory=list)


def free_port() -> int:
    """Return a port of 127.0.0.1 that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(host: str) -> bool:
    """Whether `host` speaks the registry's API, to whomever."""
    connection = http.client.HTTPConnection(host, timeout=2)
    try:
        connection.request("GET", "/v2/")
        return connection.getresponse().status in {200, 401}
    except OSError:
        return False
    finally:
        connection.close()


def serve(folder: Path, *, with_password: bool = False) -> Iterator[str]:
    """Run Debian's docker-registry on a free port, and yield `127.0.0.1:PORT`."""
    program = shutil.which("docker-registry")
    if program is None:
        pytest.fail("docker-registry is missing; ./inv test installs it")
    host = f"127.0.0.1:{free_port()}"
    auth = ""
    if with_password:
        (folder / "htpasswd").write_text(f"{HTPASSWD}\n")
        auth = AUTH.format(path=folder / "htpasswd")
    config = folder / "registry.yml"
    config.write_text(CONFIG.format(root=folder / "blobs", host=host, auth=auth))
    with (
        (folder / "registry.log").open("w") as log,
        subprocess.Popen([program, "serve", str(config)], stdout=log, stderr=log) as process,
    ):
        try:
            deadline = time.monotonic() + 20
            while not answers(host):
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"no registry: {(folder / 'registry.log').read_text()}")
                time.sleep(0.05)
            yield host
        finally:
            process.terminate()


@pytest.fixture
def client() -> Iterator[docker.DockerClient]:
    """Docker's SDK for the engine that the environment names."""
    engine = docker.from_env(timeout=120)
    try:
        engine.ping()
        yield engine
    finally:
        engine.close()


@pytest.fixture
def docker_config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Give an empty place to what `docker login` keeps."""
    folder = tmp_path / "docker"
    folder.mkdir()
    monkeypatch.setenv("DOCKER_CONFIG", str(folder))
    return folder


@pytest.fixture
def open_host(tmp_path: Path, docker_config: Path) -> Iterator[str]:
    """Run a registry that lets everybody push."""
    assert docker_config.is_dir()
    folder = tmp_path / "open"
    folder.mkdir()
    yield from serve(folder)


@pytest.fixture
def closed_host(tmp_path: Path, docker_config: Path) -> Iterator[str]:
    """Run a registry that wants USER and PASSWORD."""
    assert docker_config.is_dir()
    folder = tmp_path / "closed"
    folder.mkdir()
    yield from serve(folder, with_password=True)


@pytest.fixture
def gate(open_host: str) -> Iterator[Gate]:
    """Put the open registry behind a gate."""
    state = Gate()

    class Handler(_Handler):
        gate = state
        upstream = open_host

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.host = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield state
    server.shutdown()
    thread.join()
    server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    gate: Gate
    upstream: str

    def handle_one_request(self) -> None:
        """Answer the engine's TLS greeting as Go's servers do: it then tries plain HTTP."""
        if self.rfile.peek(1)[:1] == b"\x16":  # type: ignore[attr-defined]  # it is buffered
            self.wfile.write(b"HTTP/1.0 400 Bad Request\r\n\r\nno TLS here\n")
            self.close_connection = True
            return
        super().handle_one_request()

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        call = f"{self.command} {self.path}"
        self.gate.seen.append(call)
        if self.path.startswith("/token"):
            right = self.headers.get("Authorization", "") == docker_basic()
            self._answer(200 if right else 401, {}, b'{"token": "%s"}' % self.gate.token.encode())
            return
        if self.gate.token and self.headers.get("Authorization") != f"Bearer {self.gate.token}":
            realm = f'Bearer realm="http://{self.gate.host}/token",service="test"'
            self._answer(401, {"WWW-Authenticate": realm}, b"{}")
            return
        for pattern, status in self.gate.deny.items():
            if re.search(pattern, call):
                self._answer(status, {}, b'{"errors": [{"code": "DENIED", "message": "closed"}]}')
                return
        onward = http.client.HTTPConnection(self.upstream, timeout=60)
        onward.request(self.command, self.path, body, dict(self.headers))
        answer = onward.getresponse()
        headers = dict(answer.getheaders())
        was_put = any(re.match("PUT .*/manifests/", earlier) for earlier in self.gate.seen)
        if self.gate.lie_after_put and was_put and call.startswith("HEAD") and "/manif" in call:
            headers["Docker-Content-Digest"] = self.gate.lie_after_put
        self._answer(answer.status, headers, answer.read())
        onward.close()

    def _answer(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            if name.lower() not in {"content-length", "transfer-encoding", "connection", "date"}:
                self.send_header(name, value)
        length = headers.get("Content-Length") if self.command == "HEAD" else None
        self.send_header("Content-Length", length or str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _pass  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Keep quiet: `seen` has it all."""


def docker_basic() -> str:
    """Return the header that USER and PASSWORD make."""
    return f"Basic {base64.b64encode(f'{USER}:{PASSWORD}'.encode()).decode()}"


@pytest.fixture
def make_image(client: docker.DockerClient) -> Iterator[Callable[[str], tuple[str, str]]]:
    """Make a tiny image from a text: returns its local reference and its digest."""
    made: list[str] = []

    def make(text: str) -> tuple[str, str]:
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w") as tar:
            member = tarfile.TarInfo("marker")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
        reference = f"strata-test-push:{os.getpid()}-{len(made)}"
        client.api.import_image_from_data(
            data.getvalue(), repository="strata-test-push", tag=reference.partition(":")[2]
        )
        made.append(reference)
        return reference, str(client.images.get(reference).id)

    yield make
    for reference in made:
        client.api.remove_image(reference, force=True)
