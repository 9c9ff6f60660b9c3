"""Waits until a service answers, at the port that people will use."""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING
from urllib.parse import quote

from strata.errors import HostError
from strata.start.settings import LOOPBACK

if TYPE_CHECKING:
    from collections.abc import Callable

    from docker.models.containers import Container

    from strata.errors import StrataError

PATIENCE = 120.0  # seconds; JupyterLab takes 3 to 10 on a machine that is idle
ANSWER = 10.0  # seconds for one answer
PAUSE = 0.2
LAST_LINES = 20


def wait_until_ready(
    container: Container, answers: Callable[[], bool], patience: float = PATIENCE
) -> None:
    """Wait until `answers` says yes and, where the image has a health check, that says healthy.

    Raises `HostError`, with the last lines of the log, when the container ends,
    turns unhealthy, or takes more than `patience` seconds.
    """
    end = time.monotonic() + patience
    while True:
        container.reload()
        state = container.attrs["State"]
        health = (state.get("Health") or {}).get("Status", "healthy")
        if not state["Running"]:
            raise _failed(container, f"it ended with {state['ExitCode']}")
        if health == "unhealthy":
            raise _failed(container, f"it is unhealthy: {_last_probe(state)}")
        if answers() and health == "healthy":
            return
        if time.monotonic() > end:
            waits = "does not answer" if health == "healthy" else f"is {health}, not healthy,"
            raise _failed(container, f"it {waits} after {patience:.0f} s")
        time.sleep(PAUSE)


def published_port(container: Container, inside: int) -> int:
    """Return this machine's port that leads to a port of the container.

    Raises `HostError` where it is not published (any more).
    """
    found = container.attrs["NetworkSettings"]["Ports"].get(f"{inside}/tcp")
    if not found:
        raise _failed(container, f"its port {inside} is not published")
    return int(found[0]["HostPort"])


def ssh_greets(port: int) -> bool:
    """Tell whether an SSH server listens at a port of this machine (RFC 4253, 4.2)."""
    try:
        with socket.create_connection((LOOPBACK, port), timeout=ANSWER) as line:
            return line.recv(4) == b"SSH-"
    except OSError:
        return False


def jupyter_answers(port: int, token: str) -> bool:
    """Tell whether a Jupyter server at a port of this machine lets in whoever has the token."""
    import requests  # noqa: PLC0415 - slow to import

    with requests.Session() as session:
        session.trust_env = False  # a proxy knows nothing of our loopback
        try:
            answer = session.get(
                f"http://{LOOPBACK}:{port}/api/status",
                headers={"Authorization": f"token {token}"},
                timeout=ANSWER,
            )
        except requests.RequestException:
            return False
        return answer.ok


def jupyter_link(port: int, token: str) -> str:
    """Return the link that opens JupyterLab."""
    return f"http://{LOOPBACK}:{port}/lab?token={quote(token, safe='')}"


def _failed(container: Container, what: str) -> StrataError:
    log = container.logs(tail=LAST_LINES).decode(errors="replace").splitlines()
    tail = "".join(f"\n    | {line}" for line in log)
    fix = "do what it says; --dry-run prints the command that starts it, to try by hand"
    return HostError.at(f"container {container.name}", f"{what}{tail}", fix)


def _last_probe(state: dict[str, dict[str, list[dict[str, str]]]]) -> str:
    probes = state["Health"].get("Log") or []
    return probes[-1]["Output"].strip() if probes else "its check says so"
