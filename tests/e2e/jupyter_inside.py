"""Speaks to a Jupyter server by HTTP and WebSocket; runs inside the container, on its Python.

    python - REQUEST <jupyter_inside.py

REQUEST is JSON: `port`, `base` (URL, ends with /), `token`, and one of

- `cells`: run in one kernel, each through a WebSocket of its own, which is dropped
  without a good-bye; answers `[{"text": what was shown, "error": traceback or ""}]`
- `dropped`: a cell whose WebSocket is dropped when it has begun to print; answers the
  same, from there on, as a second WebSocket of the same session sees it
- `command`: a line for a terminal; answers what the terminal shows, as text

Every kernel and terminal is ended.  A server that refuses or breaks off raises.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import urllib.request
import uuid
from typing import Any

import websocket  # type: ignore[import-not-found, unused-ignore]  # it is in the image

PATIENCE = 60  # seconds for one message; the machine may be busy


class Server:
    """The server, and how one is let in."""

    def __init__(self, port: int, base: str, token: str) -> None:
        """Take the server's port, base URL and token."""
        self.address = f"127.0.0.1:{port}{base}"
        self.headers = {"Authorization": f"token {token}"}

    def ask(self, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - JSON
        """Send a request; return the answer's JSON, None where it has no body."""
        request = urllib.request.Request(
            f"http://{self.address}{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers=self.headers,
            method=method,
        )
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:  # noqa: S310 - http
            text = answer.read()
        return json.loads(text) if text else None

    def socket(self, path: str) -> Any:  # noqa: ANN401 - websocket has no types here
        """Open a WebSocket."""
        return websocket.create_connection(
            f"ws://{self.address}{path}", header=self.headers, timeout=PATIENCE
        )


def drop(line: Any) -> None:  # noqa: ANN401 - a WebSocket
    """Break a WebSocket's connection without the closing handshake."""
    line.sock.shutdown(socket.SHUT_RDWR)
    line.shutdown()


def send_cell(line: Any, source: str, session: str) -> str:  # noqa: ANN401 - a WebSocket
    """Send a cell; return the message's id."""
    message = uuid.uuid4().hex
    header = {
        "msg_id": message,
        "msg_type": "execute_request",
        "session": session,
        "username": "test",
        "version": "5.3",
        "date": "2026-01-01T00:00:00Z",
    }
    content = {"code": source, "silent": False, "store_history": True, "allow_stdin": False}
    line.send(
        json.dumps(
            {
                "channel": "shell",
                "header": header,
                "parent_header": {},
                "metadata": {},
                "content": {**content, "user_expressions": {}, "stop_on_error": True},
            }
        )
    )
    return message


def answer(line: Any, message: str) -> dict[str, str]:  # noqa: ANN401 - a WebSocket
    """Return what a cell showed, when it has ended."""
    text, error = "", ""
    while True:
        said = json.loads(line.recv())
        if said["parent_header"].get("msg_id") != message or said["channel"] != "iopub":
            continue
        content = said["content"]
        if said["msg_type"] == "stream":
            text += content["text"]
        elif said["msg_type"] in {"execute_result", "display_data"}:
            text += content["data"]["text/plain"]
        elif said["msg_type"] == "error":
            error = "\n".join(content["traceback"])
        elif said["msg_type"] == "status" and content["execution_state"] == "idle":
            return {"text": text, "error": error}


def run_cells(server: Server, cells: list[str], *, is_dropped: bool) -> list[dict[str, str]]:
    """Run cells in a kernel of their own, which ends with them."""
    kernel = server.ask("POST", "api/kernels", {"name": "python3"})["id"]
    session = uuid.uuid4().hex
    path = f"api/kernels/{kernel}/channels?session_id={session}"
    try:
        found = []
        for source in cells:
            line = server.socket(path)
            message = send_cell(line, source, session)
            if is_dropped:
                while json.loads(line.recv())["msg_type"] != "stream":
                    pass
                drop(line)
                line = server.socket(path)
            found.append(answer(line, message))
            drop(line)
        return found
    finally:
        server.ask("DELETE", f"api/kernels/{kernel}")


def run_terminal(server: Server, command: str) -> str:
    """Type a command into a terminal of its own; return what it shows up to its end."""
    name = server.ask("POST", "api/terminals")["name"]
    mark = uuid.uuid4().hex
    begin, end = f"begin-{mark}\r\n", f"end-{mark}\r\n"
    # What is typed is shown too: it must not look like what is printed.
    typed = f"echo 'be''gin-{mark}'; {command}; echo 'en''d-{mark}'\r"
    seen = ""
    try:
        line = server.socket(f"terminals/websocket/{name}")
        while end not in seen:
            kind, *rest = json.loads(line.recv())
            if kind == "setup":
                line.send(json.dumps(["stdin", typed]))
            elif kind == "stdout":
                seen += rest[0]
        drop(line)
    finally:
        server.ask("DELETE", f"api/terminals/{name}")
    return seen.partition(begin)[2].partition(end)[0]


def main(request: dict[str, Any]) -> object:
    """Do what the request asks for; return the answer."""
    for name in ("http_proxy", "HTTP_PROXY"):  # the container's, not this client's
        os.environ.pop(name, None)
    server = Server(request["port"], request["base"], request["token"])
    if "command" in request:
        return run_terminal(server, request["command"])
    if "dropped" in request:
        return run_cells(server, [request["dropped"]], is_dropped=True)
    return run_cells(server, request["cells"], is_dropped=False)


if __name__ == "__main__":
    print(json.dumps(main(json.loads(sys.argv[1]))))
