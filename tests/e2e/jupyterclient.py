"""A container's JupyterLab as its clients use it: HTTP, kernels, terminals.

Kernels and terminals are reached by `jupyter_inside.py`, which runs in the
container on the WebSocket library that JupyterLab itself needs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import requests

from tests.e2e.boxes import call, until

if TYPE_CHECKING:
    from tests.e2e.boxes import Box, Boxes

PORT = 8888
INSIDE = Path(__file__).with_name("jupyter_inside.py")
LINK = re.compile(r"http://127\.0\.0\.1:\d+(?P<base>/\S*?)lab\?token=(?P<token>[0-9a-f]{48})\b")
STARTS_WITHIN = 120.0  # seconds
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Jupyter:
    """A server in a container: its token, its port in there, its base URL (ends with /)."""

    box: Box
    token: str = ""
    inside: int = PORT
    base: str = "/"

    @property
    def root(self) -> str:
        """The server's address on this machine's loopback, without the last slash."""
        return f"http://127.0.0.1:{self.box.port(self.inside)}{self.base}".rstrip("/")

    def request(
        self,
        method: str,
        path: str,
        token: str | None = None,
        **options: Any,  # noqa: ANN401 - what requests takes
    ) -> requests.Response:
        """Ask the server, with a token in the header if one is named."""
        headers = {} if token is None else {"Authorization": f"token {token}"}
        headers |= options.pop("headers", {})
        address = f"{self.root}{path}"
        return requests.request(method, address, headers=headers, timeout=60, **options)

    def get(self, path: str, token: str | None = None, **query: str) -> requests.Response:
        """Ask for a page, with a token in the header if one is named."""
        return self.request("GET", path, token, params=query)

    def cells(self, *cells: str) -> list[str]:
        """Run cells in one kernel; return what each shows; a cell that raises fails the test."""
        return self._shown(self._inside(cells=cells))

    def cell(self, source: str) -> str:
        """Run a cell in a kernel of its own (`!cmd` too); return what it shows."""
        return self.cells(source)[0]

    def dropped_cell(self, source: str) -> str:
        """Run a cell whose connection breaks while it runs; return what the next one shows."""
        return self._shown(self._inside(dropped=source))[0]

    def terminal(self, command: str) -> str:
        r"""Type a line into a terminal; return what it shows, lines ending with \r\n."""
        return str(self._inside(command=command))

    def _inside(self, **request: object) -> Any:  # noqa: ANN401 - JSON
        request |= {"port": self.inside, "base": self.base, "token": self.token}
        argv = ("docker", "exec", "--interactive", self.box.name, "/opt/env/bin/python", "-")
        stdin = INSIDE.read_bytes()
        done = call(*argv, json.dumps(request), env=self.box.env, stdin=stdin, patience=300)
        assert done.code == 0, done.err
        return json.loads(done.stdout)

    @staticmethod
    def _shown(answers: list[dict[str, str]]) -> list[str]:
        assert [COLOURS.sub("", it["error"]) for it in answers if it["error"]] == []
        return [it["text"] for it in answers]


def start_jupyter(
    boxes: Boxes,
    image: str,
    *options: str,
    token: str = "",
    inside: int = PORT,
    base: str = "/",
    command: tuple[str, ...] = (),
) -> Jupyter:
    """Start an image's services and wait for JupyterLab; without `token` read it from the log."""
    box = boxes.start(image, "--publish", f"127.0.0.1::{inside}", *options, command=command)
    return wait_for_jupyter(Jupyter(box, token, inside, base))


def wait_for_jupyter(server: Jupyter) -> Jupyter:
    """Wait until a server answers; return it with its token, which the log shows if it is random.

    A container that ends fails the test.
    """
    if not server.box.state["Running"]:
        pytest.fail(f"the container ended: {server.box.logs}")
    root = server.root

    def answers() -> bool | None:
        try:
            return requests.get(f"{root}/api", timeout=60).ok or None
        except requests.ConnectionError:
            if not server.box.state["Running"]:
                pytest.fail(f"the container ended: {server.box.logs}")
            return None

    until(answers, "JupyterLab", STARTS_WITHIN)
    if server.token:
        return server
    link = until(lambda: LINK.search(server.box.logs), "the link")
    assert link["base"] == server.base
    return replace(server, token=link["token"])
