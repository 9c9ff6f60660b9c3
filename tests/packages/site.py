"""A web server on loopback whose answers are written down beforehand, faults among them."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, kw_only=True)
class Answer:
    """One answer: a status, headers, and a body of which only `sent` bytes may arrive."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    sent: int | None = None


@dataclass
class Site:
    """What the server answers, by path, the last answer for ever; and what it was asked.

    `ranges` says whether it answers a request for a part of a file with that part.
    """

    address: str = ""
    answers: dict[str, list[Answer]] = field(default_factory=dict)
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    ranges: bool = True

    def put(self, path: str, *answers: Answer | bytes) -> str:
        """Set the answers for a path; return its URL."""
        self.answers[path] = [a if isinstance(a, Answer) else Answer(body=a) for a in answers]
        return f"{self.address}{path}"

    def paths(self) -> list[str]:
        """Return the paths that were asked for, in order."""
        return [path for path, _ in self.asked]


@contextmanager
def serve_site() -> Iterator[Site]:
    """Serve on a free port of loopback."""
    state = Site()

    class Handler(_Handler):
        site = state

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    site: Site

    def do_GET(self) -> None:
        path = self.path
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.site.asked.append((path, headers))
        left = self.site.answers.get(path)
        if not left:
            self._send(Answer(status=404), b"")
            return
        answer = left.pop(0) if len(left) > 1 else left[0]
        body = answer.body
        span = headers.get("range")
        if span and self.site.ranges and answer.status == 200:
            start = int(span.removeprefix("bytes=").removesuffix("-"))
            if start >= len(body):
                self._send(Answer(status=416), b"")
                return
            content_range = {"Content-Range": f"bytes {start}-{len(body) - 1}/{len(body)}"}
            self._send(Answer(status=206, headers=content_range, sent=answer.sent), body[start:])
            return
        self._send(answer, body)

    def _send(self, answer: Answer, body: bytes) -> None:
        self.send_response(answer.status)
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body[: answer.sent])
        if answer.sent is not None:
            self.wfile.flush()
            self.close_connection = True

    do_HEAD = do_GET  # noqa: N815

    def log_message(self, *_: object) -> None:
        """Keep quiet: `asked` has it all."""
