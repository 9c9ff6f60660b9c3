"""Whether an engine answers, and what a client is told when it does not."""

from __future__ import annotations

import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest

from strata.engine.connect import Engine, answers, client, unreachable
from strata.errors import HostError

if TYPE_CHECKING:
    from pathlib import Path


def reply(server: socket.socket, text: bytes) -> None:
    """Answer one caller."""
    caller, _ = server.accept()
    with caller:
        caller.recv(1000)
        caller.sendall(text)


@pytest.mark.parametrize(
    ("text", "is_ready"),
    [
        (b"HTTP/1.0 200 OK\r\n\r\nOK", True),
        (b"HTTP/1.0 503 Service Unavailable\r\n\r\n", False),
        (b"", False),
    ],
)
def test_only_a_ping_that_is_answered_counts(
    tmp_path: Path, text: bytes, *, is_ready: bool
) -> None:
    """An engine that refuses, or hangs up while it starts, is not ready."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        thread = threading.Thread(target=reply, args=(server, text))
        thread.start()
        assert answers(Engine(host=f"unix://{tmp_path}/s", origin="private")) == is_ready
        thread.join()


def test_listening_is_not_answering(tmp_path: Path) -> None:
    """An engine that listens but does not answer yet is not ready, and is not waited for long."""
    began = time.monotonic()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        server.listen()
        assert not answers(Engine(host=f"unix://{tmp_path}/s", origin="private"), patience=0.1)
    assert time.monotonic() - began < 2


def test_nobody_is_not_answering(tmp_path: Path) -> None:
    """Without a socket there is no engine, and no traceback."""
    assert not answers(Engine(host=f"unix://{tmp_path}/s", origin="private"))


def test_a_client_of_an_engine_that_is_down_is_an_error(tmp_path: Path) -> None:
    """The SDK's own exceptions do not reach the user."""
    with pytest.raises(HostError, match="does not answer") as error:
        client(Engine(host=f"unix://{tmp_path}/gone.sock", origin="DOCKER_HOST"))
    assert error.value.exit_code == 8


@pytest.mark.parametrize(
    ("origin", "fix"),
    [
        ("DOCKER_HOST", "unset DOCKER_HOST"),
        ("context lab", "docker context use default"),
        ("private", "./inv engine start"),
        ("socket", "systemctl start docker"),
    ],
)
def test_the_fix_fits_the_way_in_which_the_engine_was_named(origin: str, fix: str) -> None:
    """Each way to an engine has its own way back to a working one."""
    assert fix in unreachable(Engine(host="tcp://h:1", origin=origin), "down").fix
