"""JupyterLab as its users meet it: the link in the log, the page in a browser, the terminal."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
import requests
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.e2e.boxes import ROOT, until
from tests.e2e.sshclient import make_key, wait_for_ssh

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.boxes import Box, Boxes

PORT = ("--publish", "127.0.0.1::8888")
SSH_PORT = ("--publish", "127.0.0.1::2222")
GIVEN = 'it\'s "my" token'
LINK = re.compile(r"http://127\.0\.0\.1:8888/lab\?token=([0-9a-f]{48})\b")
CHROMIUM = "/usr/bin/chromium"
# A browser that runs as root in a container, and speaks to nobody but the page.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SCREENSHOT = ROOT / "build/screenshots/jupyterlab.png"
SLOW = 120_000  # milliseconds that the page may take on a busy machine
PROGRAM = "import torch; print(torch.__version__)"
TERMINAL = """
([address, line, mark]) => new Promise((resolve, reject) => {
    const socket = new WebSocket(address);
    let seen = "";
    socket.onmessage = ({data}) => {
        const [kind, text] = JSON.parse(data);
        if (kind === "setup") socket.send(JSON.stringify(["stdin", line]));
        if (kind === "stdout") seen += text;
        if (seen.includes(mark)) { socket.close(); resolve(seen); }
    };
    socket.onerror = () => reject(new Error("the terminal's socket broke: " + seen));
    setTimeout(() => reject(new Error("no answer: " + seen)), 60000);
})
"""


@dataclass(frozen=True)
class Server:
    """A container with JupyterLab, its port on this machine, and its token."""

    box: Box
    port: int
    token: str

    @property
    def root(self) -> str:
        """The server's address."""
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, token: str | None = None, **query: str) -> requests.Response:
        """Ask the server, with a token in the header if one is named."""
        headers = {} if token is None else {"Authorization": f"token {token}"}
        return requests.get(f"{self.root}{path}", params=query, headers=headers, timeout=60)


def serve(boxes: Boxes, image: str, *options: str, folder: Path, token: str = "") -> Server:
    """Start an image's services and wait for JupyterLab; without `token` read it from the log."""
    more: tuple[str, ...] = ()
    if image == "dev":
        key = make_key(folder, "ada")
        more = (*SSH_PORT, "--volume", f"{key.file}.pub:/etc/strata/authorized_keys:ro")
    box = boxes.start(image, *PORT, *more, *options)
    server = Server(box, box.port(8888), token)

    def answers() -> bool | None:
        if not box.state["Running"]:
            pytest.fail(f"the container ended: {box.logs}")
        try:
            return server.get("/login").ok or None
        except requests.ConnectionError:
            return None

    until(answers, "JupyterLab", 120)
    if token:
        return server
    return Server(box, server.port, until(lambda: LINK.search(box.logs), "the link").group(1))


def arguments(box: Box) -> str:
    """Return the arguments of all of a container's processes, as this machine sees them."""
    said = box.docker("top", box.name, "-eo", "pid,args")
    assert said.code == 0, said.err
    assert "jupyter" in said.out
    return said.out


@pytest.fixture(scope="module", params=["lab", "dev"])
def server(
    request: pytest.FixtureRequest, shared_boxes: Boxes, tmp_path_factory: pytest.TempPathFactory
) -> Server:
    """Start each image that has JupyterLab, with nothing but its port."""
    return serve(shared_boxes, request.param, folder=tmp_path_factory.mktemp("jupyter"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start chromium."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    """Open the link that the log shows."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    opened = context.new_page()
    opened.set_default_timeout(SLOW)
    opened.goto(f"{server.root}/lab?token={server.token}")
    yield opened
    context.close()


def test_random_token(server: Server) -> None:
    """Given nothing, the server makes a token, prints the link, and is closed without it."""
    assert server.get("/api/kernels").status_code == 403
    assert server.get("/api/kernels", "0" * 48).status_code == 403
    assert server.get("/api/kernels", server.token).status_code == 200
    assert server.get("/api/kernels", token=server.token).status_code == 200


def test_tokens_differ(server: Server, boxes: Boxes, tmp_path: Path) -> None:
    """Another container has another token."""
    assert serve(boxes, "lab", folder=tmp_path).token != server.token


@pytest.mark.parametrize("name", ["lab", "dev"])
def test_given_token(boxes: Boxes, tmp_path: Path, name: str) -> None:
    """A token with quotes and spaces opens the server, and nothing else does (case J4)."""
    given = ("--env", f"JUPYTER_TOKEN={GIVEN}")
    server = serve(boxes, name, *given, folder=tmp_path, token=GIVEN)
    assert server.get("/api/kernels", GIVEN).status_code == 200
    assert server.get(f"/api/kernels?token={quote(GIVEN)}").status_code == 200
    assert server.get("/api/kernels").status_code == 403
    assert server.get("/api/kernels", GIVEN.replace('"', "")).status_code == 403
    processes = arguments(server.box)
    assert "my" not in processes
    assert GIVEN not in server.box.logs


@pytest.mark.parametrize("name", ["lab", "dev"])
def test_empty_token_is_not_open(boxes: Boxes, tmp_path: Path, name: str) -> None:
    """An empty JUPYTER_TOKEN means a random one, never an open server (case J4)."""
    server = serve(boxes, name, "--env", "JUPYTER_TOKEN=", folder=tmp_path)
    assert server.get("/api/kernels").status_code == 403
    assert server.get("/api/kernels", "").status_code == 403
    assert server.get("/api/kernels", server.token).status_code == 200


def test_secret_is_not_in_processes(server: Server) -> None:
    """The random token is in no process's arguments."""
    processes = arguments(server.box)
    assert server.token not in processes


def test_page_and_notebook(page: Page, server: Server) -> None:
    """The launcher shows up, and a notebook's cell imports torch and prints its version."""
    launcher = page.locator(".jp-LauncherCard[title*='Python 3']").first
    expect(launcher).to_be_visible(timeout=SLOW)
    SCREENSHOT.parent.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOT)
    launcher.click()
    expect(page.get_by_text("Python 3 (ipykernel) | Idle")).to_be_visible(timeout=SLOW)
    cell = page.locator(".jp-Notebook .jp-Cell .cm-content").first
    cell.click()
    page.keyboard.type(PROGRAM)
    expect(cell).to_have_text(PROGRAM, timeout=SLOW)
    page.keyboard.press("Shift+Enter")
    expected = server.box.run("python", "-c", PROGRAM)
    output = page.locator(".jp-OutputArea-output").first
    expect(output).to_have_text(f"{expected.out}\n", timeout=SLOW)


def test_page_is_closed_without_token(browser: Browser, server: Server) -> None:
    """A browser without the token is asked to log in."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{server.root}/lab")
    expect(page).to_have_url(re.compile(r"/login\?next="))
    expect(page.get_by_text("Token authentication is enabled")).to_be_visible()
    context.close()


def test_terminal_is_bash(page: Page, server: Server) -> None:
    """A terminal is bash, with the environment's Python first (case J2)."""
    headers = {"Authorization": f"token {server.token}"}
    made = requests.post(f"{server.root}/api/terminals", headers=headers, timeout=60)
    assert made.status_code == 200
    address = f"ws://127.0.0.1:{server.port}/terminals/websocket/{made.json()['name']}"
    line = 'echo "<$0 $(command -v python) $PATH $CONDA_PREFIX>" | tr "<>" "[]"\r'
    said = page.evaluate(TERMINAL, [address, line, "]\r\n"])
    shell, python, path, prefix = re.findall(r"\[(/\S+) (\S+) (\S+) (\S+)\]", said)[-1]
    assert shell == "/bin/bash"
    assert python == "/opt/env/bin/python"
    assert prefix == "/opt/env"
    assert path == server.box.run("printenv", "PATH").out


def test_stop_is_quick(boxes: Boxes, tmp_path: Path) -> None:
    """`docker stop` ends the server and its kernel within 5 seconds, without killing them."""
    server = serve(boxes, "lab", folder=tmp_path)
    headers = {"Authorization": f"token {server.token}"}
    body = json.dumps({"name": "python3"})
    made = requests.post(f"{server.root}/api/kernels", body, headers=headers, timeout=60)
    assert made.status_code == 201
    code, seconds = server.box.stop()
    assert code in (0, 143)
    assert seconds < 5


def test_both_services(boxes: Boxes, tmp_path: Path) -> None:
    """`dev` serves Jupyter and SSH at once, and `docker stop` ends both within 5 seconds."""
    server = serve(boxes, "dev", folder=tmp_path)
    wait_for_ssh(server.box)
    code, seconds = server.box.stop()
    assert code in (0, 143)
    assert seconds < 5


@pytest.mark.parametrize("pattern", ["jupyter-lab|bin/jupyter", "sshd: .*listener"])
def test_ends_with_the_first(boxes: Boxes, tmp_path: Path, pattern: str) -> None:
    """When one of the two services ends, so does the container: a restart policy sees it."""
    server = serve(boxes, "dev", folder=tmp_path)
    wait_for_ssh(server.box)
    killed = server.box.run("pkill", "--signal", "KILL", "--oldest", "--full", pattern)
    assert killed.code == 0
    assert server.box.ended() == 137
