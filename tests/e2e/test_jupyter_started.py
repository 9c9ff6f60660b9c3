"""JupyterLab as its variables, secrets and proxies want it; alive, hung, stopped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
import requests

from tests.e2e.boxes import call, until
from tests.e2e.jupyterclient import PORT, Jupyter, start_jupyter, wait_for_jupyter
from tests.e2e.sshclient import Client, Key, make_key, wait_for_ssh

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from strata.engine import Engine
    from tests.e2e.boxes import Boxes

GIVEN = 'it\'s "my" token'
SSH_PORT = ("--publish", "127.0.0.1::2222")
QUICK_CHECK = ("--health-interval", "1s", "--health-retries", "1", "--health-timeout", "5s")
VOLUME = "strata-test-notebooks"
PASSWORD = "correct horse"  # noqa: S105 - of this test
NAMES = "sorted(name for name in os.environ if name.startswith('JUPYTER_'))"
PUBLIC = "https://gpu.example.org/lab/x/"


@pytest.fixture
def key(tmp_path: Path) -> Key:
    """Make a key for SSH."""
    return make_key(tmp_path, "ada")


@pytest.fixture
def volume(engine: Engine) -> Iterator[str]:
    """Return a volume's mount on the working folder; it goes after the containers do."""
    yield f"type=volume,source={VOLUME},target=/home/dev/work"
    removed = call("docker", "volume", "rm", "--force", VOLUME, env=engine.env)
    assert removed.code == 0, removed.err


def start_both(boxes: Boxes, key: Key, *options: str, token: str = "") -> Jupyter:
    """Start both services of `dev`."""
    mount = ("--volume", f"{key.file}.pub:/etc/strata/authorized_keys:ro")
    server = start_jupyter(boxes, "dev", *SSH_PORT, *mount, *options, token=token)
    wait_for_ssh(server.box)
    return server


def test_given_token(boxes: Boxes, key: Key) -> None:
    """A token with quotes and spaces opens the server, and nothing else does (case J4).

    No list of processes, no log, no kernel, terminal or SSH session has it; and
    `docker stop` ends both services within 5 seconds, without killing them.
    """
    server = start_both(boxes, key, "--env", f"JUPYTER_TOKEN={GIVEN}", token=GIVEN)
    assert server.get("/api/kernels", GIVEN).status_code == 200
    assert server.get(f"/api/kernels?token={quote(GIVEN)}").status_code == 200
    assert server.get("/api/kernels").status_code == 403
    assert server.get("/api/kernels", GIVEN.replace('"', "")).status_code == 403
    said = server.box.docker("top", server.box.name, "-eo", "pid,args")
    assert "jupyter-lab" in said.out
    assert "my" not in said.out
    assert GIVEN not in server.box.logs
    shown = server.cells(f"import os; print({NAMES})", "!env")
    assert shown[0] == "[]\n"
    doors = (shown[1], server.terminal("env"), Client(wait_for_ssh(server.box), key).run("env").out)
    assert [door for door in doors if "my" in door or "PATH=" not in door] == []
    kernel = server.request("POST", "/api/kernels", GIVEN, json={"name": "python3"})
    assert kernel.status_code == 201
    code, seconds = server.box.stop()
    assert code in (0, 143)
    assert seconds < 5


def test_everything_set(volume: str, boxes: Boxes, tmp_path: Path) -> None:
    """Port, base URL, token file, runtime folder and public address are as the variables say.

    The container is healthy though a proxy that isn't there is named, its log
    shows the public address (case J1), and it is unhealthy once it hangs.
    """
    token = tmp_path / "token"
    token.write_text(f"{GIVEN}\n")
    names = {
        "JUPYTER_PORT": "9999",
        "JUPYTER_BASE_URL": "lab/x",
        "JUPYTER_PUBLIC_URL": PUBLIC,
        "JUPYTER_RUNTIME_DIR": "/tmp/runtime",  # noqa: S108 - of the container
        "http_proxy": "http://127.0.0.1:9",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "ALL_PROXY": "http://127.0.0.1:9",
    }
    server = start_jupyter(
        boxes,
        "lab",
        *(word for name, value in names.items() for word in ("--env", f"{name}={value}")),
        *("--volume", f"{token}:/run/secrets/jupyter_token:ro"),
        *("--mount", volume),
        *QUICK_CHECK,
        token=GIVEN,
        inside=9999,
        base="/lab/x/",
    )
    assert server.get("/api/status").status_code == 403
    assert server.get("/api/status", GIVEN).status_code == 200
    assert f"{PUBLIC}lab?token=..." in server.box.logs
    assert server.cell(f"import os; print({NAMES})") == (
        "['JUPYTER_BASE_URL', 'JUPYTER_PORT', 'JUPYTER_PUBLIC_URL', 'JUPYTER_RUNTIME_DIR']\n"
    )
    # A proxy that logs people in hands the token over, and may name another host (docs/jupyter.md).
    behind = {"Origin": "https://gpu.example.org", "X-Forwarded-Proto": "https"}
    made = server.request("POST", "/api/kernels", GIVEN, json={"name": "python3"}, headers=behind)
    assert made.status_code == 201
    path = f"/api/kernels/{made.json()['id']}"
    assert server.request("DELETE", path, GIVEN, headers=behind).status_code == 204
    notebook = {"type": "notebook", "content": {"cells": [], "metadata": {}, "nbformat": 4}}
    notebook["content"] |= {"nbformat_minor": 5}  # type: ignore[operator]
    saved = server.request("PUT", "/api/contents/mine.ipynb", GIVEN, json=notebook)
    assert saved.status_code == 201

    until(lambda: server.box.state["Health"]["Status"] == "healthy" or None, "a healthy server")
    assert re.search(r"\b404 (GET|HEAD|POST|PUT)\b", server.box.logs) is None
    stopped = server.box.run("pkill", "--signal", "STOP", "--full", "jupyter-lab")
    assert stopped.code == 0
    until(lambda: server.box.state["Health"]["Status"] == "unhealthy" or None, "an unhealthy one")
    last = server.box.state["Health"]["Log"][-1]["Output"]
    assert re.search(r"does not answer at 127\.0\.0\.1:9999|timeout", last)
    goes_on = server.box.run("pkill", "--signal", "CONT", "--full", "jupyter-lab")
    assert goes_on.code == 0
    until(lambda: server.box.state["Health"]["Status"] == "healthy" or None, "a healthy server")
    check_password(boxes, volume)


def check_password(boxes: Boxes, volume: str) -> None:
    """See a hashed password alone let its owner in, who finds the volume's notebook."""
    program = f"from jupyter_server.auth import passwd; print(passwd({PASSWORD!r}))"
    made = boxes.once("lab", "--network", "none", command=("python", "-c", program))
    hashed = ("--env", f"JUPYTER_PASSWORD_HASH={made.out}")
    box = boxes.start("lab", "--publish", f"127.0.0.1::{PORT}", *hashed, "--mount", volume)
    server = wait_for_jupyter(Jupyter(box, token=made.out))
    assert server.get("/api/contents").status_code == 403
    assert server.get("/api/contents", "").status_code == 403
    assert server.get("/api/contents", made.out).status_code == 403
    with requests.Session() as session:
        session.get(f"{server.root}/login", timeout=60)
        for password, code in (("wrong", 401), (PASSWORD, 200)):
            form = {"_xsrf": session.cookies["_xsrf"], "password": password}
            said = session.post(f"{server.root}/login", form, timeout=60, params={"next": "/api"})
            assert said.status_code == code
        listed = session.get(f"{server.root}/api/contents", timeout=60).json()
    assert [entry["name"] for entry in listed["content"]] == ["mine.ipynb"]
    assert PASSWORD not in server.box.logs


def test_slips_end_it(boxes: Boxes) -> None:
    """A token file that isn't there ends the container with 78 before anything listens."""
    done = boxes.once("lab", "--env", "JUPYTER_TOKEN_FILE=/nowhere")
    assert (done.code, done.out) == (78, "")
    assert done.err == (
        "jupyter: JUPYTER_TOKEN_FILE: there is no /nowhere; fix: mount it into the container\n"
    )


def test_other_commands_are_healthy(boxes: Boxes) -> None:
    """The health check has nothing to say of a container that serves nothing."""
    done = boxes.once("lab", "--network", "none", command=("healthy",))
    assert (done.code, done.out) == (0, "well")


@pytest.mark.parametrize("pattern", ["bin/jupyter-lab", "sshd: .*listener"])
def test_ends_with_the_first(boxes: Boxes, key: Key, pattern: str) -> None:
    """When one of the two services ends, so does the container: a restart policy sees it."""
    server = start_both(boxes, key)
    killed = server.box.run("pkill", "--signal", "KILL", "--oldest", "--full", pattern)
    assert killed.code == 0
    assert server.box.ended() == 137
