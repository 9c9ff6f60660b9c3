"""Waiting for a service: until it answers and is healthy, or with the reason why it doesn't."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from strata.errors import HostError
from strata.start import ready
from strata.start.ready import (
    jupyter_answers,
    jupyter_link,
    published_port,
    ssh_greets,
    wait_until_ready,
)
from tests.unit.test_start_service import box

if TYPE_CHECKING:
    from collections.abc import Iterator

TOKEN = 'it\'s a "token"'  # noqa: S105 - a test's


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Don't wait between two looks."""
    monkeypatch.setattr(ready, "PAUSE", 0)


def test_ready_is_what_answers() -> None:
    """It is asked until it says yes."""
    answers = iter([False, False, True])
    wait_until_ready(box(), lambda: next(answers))
    assert list(answers) == []


def test_ready_is_what_is_healthy_too() -> None:
    """Where the image has a health check, that decides as well."""
    states = [{"Running": True, "Health": {"Status": word}} for word in ("starting", "healthy")]
    container = box(*states)
    wait_until_ready(container, lambda: True)
    assert container.attrs["State"] == states[1]


@pytest.mark.parametrize(
    ("state", "what"),
    [
        ({"Running": False, "ExitCode": 78}, "it ended with 78"),
        (
            {"Running": True, "Health": {"Status": "unhealthy", "Log": [{"Output": "hangs\n"}]}},
            "it is unhealthy: hangs",
        ),
        ({"Running": True}, "it does not answer after 0 s"),
        ({"Running": True, "Health": {"Status": "starting"}}, "it is starting, not healthy, after"),
    ],
)
def test_a_service_that_fails_shows_its_log(state: dict[str, Any], what: str) -> None:
    """With the reason, the last lines, and exit code 8."""
    with pytest.raises(HostError) as caught:
        wait_until_ready(box(state), lambda: False, patience=0)
    assert f"container box: {what}" in str(caught.value)
    assert "\n    | ssh: no key\n    | the end\n" in str(caught.value)


def test_a_port_that_is_not_published_is_an_error() -> None:
    """The first address' port is the one; without any nothing is guessed."""
    container = box()
    ports = {"2222/tcp": [{"HostIp": "127.0.0.1", "HostPort": "49153"}], "8888/tcp": None}
    container.attrs["NetworkSettings"] = {"Ports": ports}
    assert published_port(container, 2222) == 49153
    for port in (8888, 1):
        with pytest.raises(HostError, match=f"its port {port} is not published"):
            published_port(container, port)


@contextmanager
def answering(*says: bytes) -> Iterator[int]:
    """Answer one client after the other, on a port of the loopback; Jupyter's wants its token."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        door.settimeout(10)

        def serve() -> None:
            for answer in says:
                line, _ = door.accept()
                with line:
                    if answer.startswith(b"HTTP") and TOKEN.encode() not in line.recv(4096):
                        line.sendall(b"HTTP/1.0 403 Forbidden\r\n\r\n")
                    else:
                        line.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield int(door.getsockname()[1])
        thread.join()


def test_servers_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """SSH greets with its version; Jupyter answers whoever has the token, whatever the proxy."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with answering(b"SSH-2.0-x\r\n", b"220 mail\r\n") as port:
        assert ssh_greets(port)
        assert not ssh_greets(port)
    with answering(*[b"HTTP/1.0 200 OK\r\n\r\n"] * 2) as port:
        assert jupyter_answers(port, TOKEN)
        assert not jupyter_answers(port, "another")


def test_nobody_is_no_server() -> None:
    """Where nobody listens, nobody answers."""
    with socket.create_server(("127.0.0.1", 0)) as door:
        port = int(door.getsockname()[1])
    assert not ssh_greets(port)
    assert not jupyter_answers(port, TOKEN)


def test_the_link_takes_any_token() -> None:
    """What a link can't hold is encoded."""
    assert jupyter_link(8888, "it's a/b&c") == "http://127.0.0.1:8888/lab?token=it%27s%20a%2Fb%26c"
