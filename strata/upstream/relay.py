"""The HTTP proxy through which the commands of an image build reach the network.

They learn of it as `http_proxy`, which BuildKit gives to RUN and leaves out of
the image, its history and the cache's keys.  So whatever they need on the way
(a mirror of the archives, its password, a company's proxy and certificates)
stays on this side.  The proxy can also write down all that it fetches, and
answer from what was written down: then nothing is asked of any network.
"""

from __future__ import annotations

import base64
import secrets
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from select import select
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import requests

from strata.errors import BuildError, HostError
from strata.lock.urls import mask
from strata.upstream.download import TIMEOUT, root_cause
from strata.upstream.tunnel import TunnelError, open_tunnel

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator

    from strata.upstream.recording import Recording

CHUNK = 1 << 16  # bytes
# The archives that Ubuntu's images name: what a mirror stands in for.
ARCHIVES = (
    "http://archive.ubuntu.com/ubuntu/",
    "http://security.ubuntu.com/ubuntu/",
    "http://ports.ubuntu.com/ubuntu-ports/",
)
# What decides an answer, and what apt wants to know of it.
ASK = ("If-Modified-Since", "If-Range", "Range")
TELL = ("Content-Range", "Content-Type", "ETag", "Last-Modified")


@contextmanager
def serve_relay(
    address: str, *, mirror: str = "", recording: Recording | None = None, replay: bool = False
) -> Iterator[str]:
    """Serve at an address of this machine; yield the proxy's URL, with a password of its own.

    `mirror` is asked in place of Ubuntu's archives.  With `recording` all that
    is fetched is written down there; with `replay` too, nothing is fetched, and
    what is not written down does not exist.  Raises `HostError` where the
    address is not this machine's.
    """
    password = secrets.token_hex(16)

    class Handler(_Handler):
        authorization = f"Basic {base64.b64encode(f'strata:{password}'.encode()).decode()}"

    Handler.mirror, Handler.recording, Handler.replay = mirror, recording, replay
    try:
        server = _Server((address, 0), Handler)
    except OSError as failed:
        raise HostError.at(
            f"{address}, the gateway of the engine's bridge",
            f"builds cannot be served from here: {failed.strerror}",
            "mirrors, proxies and --from need an engine on this very machine: unset DOCKER_HOST",
        ) from None
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://strata:{password}@{address}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def mirrored(url: str, mirror: str) -> str:
    """Return where a file of Ubuntu's archives is to be had; others stay where they are."""
    for archive in ARCHIVES if mirror else ():
        if url.startswith(archive):
            return mirror + url.removeprefix(archive)
    return url


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Pass over who hangs up, as apt does when it has enough; all else is a bug of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # apt sends many requests over one connection
    timeout = 60
    authorization: str
    mirror: str
    recording: Recording | None
    replay: bool

    def do_GET(self) -> None:
        if not self._may_ask():
            return
        if urlsplit(self.path).scheme != "http":
            self._refuse(400, "this is a proxy for http")
        elif self.replay and self.recording is not None:
            self._replay(self.recording)
        else:
            self._forward()

    do_HEAD = do_GET  # noqa: N815

    def do_CONNECT(self) -> None:
        if not self._may_ask():
            return
        if self.recording is not None:
            self._say(f"{self.path} is asked by TLS, which cannot be carried into a closed network")
            self._refuse(403, "TLS cannot be written down: give the base's apt http sources")
            return
        try:
            onward = open_tunnel(self.path)
        except TunnelError as failed:
            self._say(f"{self.path}: {failed}")
            self._refuse(502, str(failed))
            return
        self.send_response(200, "Connection established")
        self.end_headers()
        with onward:
            _pump(self.connection, onward)
        self.close_connection = True

    def _may_ask(self) -> bool:
        """Let in only who was told the password: the commands of this build."""
        given = self.headers.get("Proxy-Authorization", "")
        if secrets.compare_digest(given, self.authorization):
            return True
        self.send_response(407)
        self.send_header("Proxy-Authenticate", 'Basic realm="strata"')
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False

    def _replay(self, recording: Recording) -> None:
        try:
            found = recording.find(self.path)
        except BuildError as damaged:
            self._say(damaged.problems[0].what)
            self._refuse(502, damaged.problems[0].what)
            return
        if found is None:
            self._refuse(404, "it was not fetched")
        else:
            self._send_whole(found.read_bytes())

    def _forward(self) -> None:
        url = mirrored(self.path, self.mirror)
        headers = {name: self.headers[name] for name in ASK if name in self.headers}
        if self.recording is not None:
            headers = {}  # the whole file is to be written down, changed or not
        headers["Accept-Encoding"] = "identity"
        try:
            with requests.request(
                self.command, url, headers=headers, stream=True, timeout=TIMEOUT
            ) as answer:
                if self.recording is not None and answer.ok and self.command == "GET":
                    self._send_whole(self.recording.keep(self.path, answer).read_bytes())
                else:
                    self._stream(answer)
        except requests.RequestException as failed:
            reason = mask(root_cause(failed))
            self._say(f"{mask(url)}: {reason}")
            self._refuse(502, reason)
        except HostError as full:
            self._say(full.problems[0].what)
            self._refuse(507, full.problems[0].what)

    def _stream(self, answer: requests.Response) -> None:
        self.send_response(answer.status_code)
        for name in TELL:
            if name in answer.headers:
                self.send_header(name, answer.headers[name])
        length = answer.headers.get("Content-Length")
        if length is None:
            self.close_connection = True
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", length)
        self.end_headers()
        if self.command != "GET":
            return
        try:
            for chunk in answer.iter_content(CHUNK):
                self.wfile.write(chunk)
        except requests.RequestException as broken:
            # The length that was announced tells the other side that this is not whole.
            self._say(f"{mask(answer.url)}: {mask(root_cause(broken))}")
            self.close_connection = True

    def _send_whole(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def _refuse(self, status: int, reason: str) -> None:
        body = f"strata: {reason}\n".encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _say(self, text: str) -> None:
        print(f"relay: {text}", file=sys.stderr, flush=True)

    def log_message(self, *_: object) -> None:
        """Keep quiet: what fails is said, and what does not need not be."""


def _pump(one: socket.socket, other: socket.socket) -> None:
    """Carry bytes both ways until one side closes."""
    onward: dict[socket.socket, Callable[[bytes], None]] = {one: other.sendall, other: one.sendall}
    while True:
        ready, _, _ = select([one, other], [], [], _Handler.timeout)
        if not ready:
            return
        for source in ready:
            data = source.recv(CHUNK)
            if not data:
                return
            onward[source](data)
