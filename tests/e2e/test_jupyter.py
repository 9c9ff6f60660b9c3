"""JupyterLab as its users meet it: the link in the log, the page in a browser, a kernel."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import Browser, Page, WebSocketRoute, expect, sync_playwright

from tests.e2e.boxes import ROOT, until
from tests.e2e.jupyterclient import Jupyter, start_jupyter

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.boxes import Boxes

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
SCREENSHOTS = ROOT / "build/screenshots"
SLOW = 120_000  # milliseconds that the page may take on a busy machine
STEP = (
    "import torch; w = torch.ones(2, requires_grad=True); (w * w).sum().backward(); "
    "torch.optim.SGD([w], lr=0.25).step(); print(w.tolist())"
)


@pytest.fixture(scope="module")
def server(shared_boxes: Boxes) -> Jupyter:
    """Start JupyterLab with an empty token, as compose does where none is set."""
    return start_jupyter(shared_boxes, "lab", "--env", "JUPYTER_TOKEN=")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start chromium."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield started
        started.close()


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """Open a tab of a browser that has been nowhere yet."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    opened = context.new_page()
    opened.set_default_timeout(SLOW)
    yield opened
    context.close()


def run_cell(page: Page, source: str, number: int) -> None:
    """Type a cell into the notebook's last, empty one, and run it; `number` counts from 0."""
    cell = page.locator(".jp-Notebook .jp-Cell .cm-content").nth(number)
    cell.click()
    page.keyboard.type(source)
    expect(cell).to_have_text(source, timeout=SLOW)
    page.keyboard.press("Shift+Enter")


def test_random_token(server: Jupyter, boxes: Boxes) -> None:
    """Given an empty token the server makes one, and is closed without it (case J4).

    Another container, given none, has another.
    """
    assert server.get("/api/kernels").status_code == 403
    assert server.get("/api/kernels", "").status_code == 403
    assert server.get("/api/kernels", "0" * 48).status_code == 403
    assert server.get("/api/kernels", server.token).status_code == 200
    assert server.get("/api/kernels", token=server.token).status_code == 200
    assert start_jupyter(boxes, "lab").token != server.token


def test_secret_is_not_in_processes(server: Jupyter) -> None:
    """The random token is in no process's arguments."""
    said = server.box.docker("top", server.box.name, "-eo", "pid,args")
    assert "jupyter-lab" in said.out
    assert server.token not in said.out


def test_nobody_is_let_in_by_the_page(tab: Page, server: Jupyter) -> None:
    """A browser without the token is asked for it, refused with a wrong one, let in with it."""
    tab.goto(f"{server.root}/lab")
    expect(tab).to_have_url(re.compile(r"/login\?next="))
    expect(tab.get_by_text("Token authentication is enabled")).to_be_visible()
    field = tab.locator("#password_input")
    field.fill("0" * 48)
    field.press("Enter")
    expect(tab.get_by_text("Invalid credentials")).to_be_visible()
    tab.locator("#password_input").fill(server.token)
    tab.locator("#password_input").press("Enter")
    expect(tab).to_have_url(re.compile(r"/lab"), timeout=SLOW)
    expect(tab.locator(".jp-LauncherCard").first).to_be_visible(timeout=SLOW)


def test_page(tab: Page, server: Jupyter) -> None:
    """The link opens the launcher; a notebook trains a step, and goes on when its line breaks.

    The one kernel is `Python (strata)`, and nobody is asked about Jupyter's news.
    """
    lines: list[tuple[WebSocketRoute, Any]] = []
    tab.route_web_socket(
        re.compile("/channels"), lambda line: lines.append((line, line.connect_to_server()))
    )
    tab.goto(f"{server.root}/lab?token={server.token}")
    launchers = tab.locator(".jp-LauncherCard[data-category='Notebook']")
    expect(launchers).to_have_count(1, timeout=SLOW)
    expect(launchers).to_have_text("Python (strata)")
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    tab.screenshot(path=SCREENSHOTS / "jupyterlab.png")
    launchers.click()
    expect(tab.get_by_text("Python (strata) | Idle")).to_be_visible(timeout=SLOW)
    run_cell(tab, STEP, 0)
    outputs = tab.locator(".jp-OutputArea-output")
    expect(outputs.first).to_have_text("[0.5, 0.5]\n", timeout=SLOW)

    expect(tab.get_by_text("[1]:")).to_be_visible(timeout=SLOW)
    before = len(lines)
    line, upstream = lines[-1]
    upstream.close(code=1011)
    line.close(code=1011)
    run_cell(tab, "print(w.sum().item())", 1)
    expect(outputs.nth(1)).to_have_text("1.0\n", timeout=SLOW)
    assert len(lines) > before
    expect(tab.get_by_text("Would you like to")).to_have_count(0)
    tab.screenshot(path=SCREENSHOTS / "notebook.png")


def test_terminal_in_the_page(tab: Page, server: Jupyter) -> None:
    """The launcher's terminal is a shell in the working folder, which takes what is typed."""
    tab.goto(f"{server.root}/lab?token={server.token}&reset")
    tab.locator(".jp-LauncherCard[title*='terminal']").click()
    terminal = tab.locator(".jp-Terminal .xterm-helper-textarea")
    terminal.wait_for(state="attached")
    tab.locator(".jp-Terminal .xterm-screen").click()
    program = "import sys, torch; print(sys.prefix, torch.ones(2).sum().item())"
    tab.keyboard.type(f"clear; python -c '{program}' | tee typed && touch done\n")
    until(lambda: server.box.run("test", "-e", "done").code == 0 or None, "what was typed")
    assert server.box.run("cat", "typed").out == "/opt/env 2.0"
    tab.wait_for_timeout(500)  # milliseconds, for the answer to be drawn
    tab.screenshot(path=SCREENSHOTS / "terminal.png")


def test_terminal_is_bash(server: Jupyter) -> None:
    """A terminal is bash, with the environment's Python first (case J2)."""
    said = server.terminal('echo "$0|$(command -v python)|$PATH|$CONDA_PREFIX|$PWD"')
    path = server.box.run("printenv", "PATH").out
    expected = ["/bin/bash", "/opt/env/bin/python", path, "/opt/env", "/home/dev/work"]
    assert said.strip().split("|") == expected


def test_output_outlives_the_connection(server: Jupyter) -> None:
    """What a cell prints while nobody is connected is there when one connects again."""
    program = "import time; print('a', flush=True); time.sleep(2); print('b')"
    assert server.dropped_cell(program) == "b\n"


def test_is_healthy(server: Jupyter) -> None:
    """The image brings a health check, and it says that all is well."""
    done = server.box.run("healthy")
    assert (done.code, done.out) == (0, "well")
    assert server.box.state["Health"]["Status"] == "healthy"


def test_ports(server: Jupyter) -> None:
    """All that listens, with a kernel running, is JupyterLab; a kernel's ports are loopback's."""
    program = (
        "import pathlib\n"
        "rows = [l.split() for f in ('tcp', 'tcp6') for l in "
        "pathlib.Path('/proc/net', f).read_text().splitlines()[1:]]\n"
        "print(sorted({r[1] for r in rows if r[3] == '0A' and r[1][:8] != '0100007F'}))"
    )
    assert server.cell(program) == "['00000000:22B8']\n"
