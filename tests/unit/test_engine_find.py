"""Which engine is used, and what a wrong choice of it says."""

from __future__ import annotations

import hashlib
import json
import socket
from typing import TYPE_CHECKING

import pytest

from strata.engine import find
from strata.engine.connect import Engine, why_unreachable
from strata.errors import DefinitionError, HostError
from strata.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Workspace:
    """Make a machine where nothing names or runs an engine."""
    for name in ("STRATA_ENGINE", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CERT_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("DOCKER_TLS_VERIFY", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path / "config"))
    monkeypatch.setattr(find, "SYSTEM_SOCKET", str(tmp_path / "system.sock"))
    return Workspace(root=tmp_path, build=tmp_path / "build", cache=tmp_path / "cache")


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    """Open a socket, not yet bound."""
    with socket.socket(socket.AF_UNIX) as server:
        yield server


def listen(server: socket.socket, path: Path) -> str:
    """Listen at a path; return its address as Docker writes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    server.bind(str(path))
    server.listen()
    return f"unix://{path}"


def write_context(config: Path, name: str, host: str, *, has_tls: bool = False) -> Path:
    """Write a docker context as `docker context create` does; return its TLS folder."""
    folder = hashlib.sha256(name.encode()).hexdigest()
    meta = config / "contexts/meta" / folder / "meta.json"
    meta.parent.mkdir(parents=True)
    meta.write_text(json.dumps({"Name": name, "Endpoints": {"docker": {"Host": host}}}))
    tls = config / "contexts/tls" / folder / "docker"
    if has_tls:
        tls.mkdir(parents=True)
    return tls


def test_a_machine_without_engine_has_none(bare: Workspace) -> None:
    """Where nothing is named and nothing listens there is no engine, and that is no error."""
    assert find.find_engine(bare) is None


def test_the_system_socket_is_found(bare: Workspace, listener: socket.socket) -> None:
    """Somebody who listens on the system's socket is the engine."""
    host = listen(listener, bare.root / "system.sock")
    assert find.find_engine(bare) == Engine(host=host, origin="socket")


def test_a_socket_that_nobody_listens_on_is_no_engine(
    bare: Workspace, listener: socket.socket
) -> None:
    """A socket file that a dead engine left behind is not taken for one."""
    listener.bind(str(bare.root / "system.sock"))
    assert find.find_engine(bare) is None


def test_a_rootless_engine_is_found(
    bare: Workspace, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an engine of the system, the user's own is used."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(bare.root / "run"))
    host = listen(listener, bare.root / "run/docker.sock")
    assert find.find_engine(bare) == Engine(host=host, origin="rootless socket")


def test_a_docker_host_that_is_down_is_never_replaced(
    bare: Workspace, listener: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that was asked for and is down is an error though another one runs."""
    listen(listener, bare.root / "system.sock")
    monkeypatch.setenv("DOCKER_HOST", f"unix://{bare.root}/gone.sock")
    with pytest.raises(HostError, match="there is no such socket") as error:
        find.find_engine(bare)
    assert error.value.exit_code == 8
    assert "unset DOCKER_HOST" in error.value.problems[0].fix


def test_a_closed_tcp_port_is_an_error(bare: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A DOCKER_HOST on a port where nobody listens is told apart from a working one."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{port}")
    with pytest.raises(HostError, match="refused"):
        find.find_engine(bare)


def test_the_current_context_is_used(bare: Workspace, listener: socket.socket) -> None:
    """The context that the docker client's configuration calls current is the engine."""
    host = listen(listener, bare.root / "context.sock")
    write_context(bare.root / "config", "lab", host)
    (bare.root / "config/config.json").write_text('{"currentContext": "lab"}')
    assert find.find_engine(bare) == Engine(host=host, origin="context lab")


def test_docker_host_beats_docker_context(tmp_path: Path) -> None:
    """As with the docker client, DOCKER_HOST decides when both are set."""
    environ = {"DOCKER_HOST": "tcp://a:1", "DOCKER_CONTEXT": "lab"}
    assert find.named_engine(environ, tmp_path) == Engine(host="tcp://a:1", origin="DOCKER_HOST")


def test_a_context_brings_its_certificates(tmp_path: Path) -> None:
    """A context with TLS hands its certificates to every program that we start."""
    tls = write_context(tmp_path / ".docker", "far", "tcp://far.test:2376", has_tls=True)
    engine = find.named_engine({"DOCKER_CONTEXT": "far"}, tmp_path)
    assert engine is not None
    assert engine.env == {
        "DOCKER_HOST": "tcp://far.test:2376",
        "BUILDX_BUILDER": "default",
        "DOCKER_TLS_VERIFY": "1",
        "DOCKER_CERT_PATH": str(tls),
    }


def test_an_engine_without_tls_switches_it_off() -> None:
    """TLS variables meant for another engine do not reach one that speaks plainly."""
    engine = Engine(host="unix:///run/x.sock", origin="private")
    assert engine.env["DOCKER_TLS_VERIFY"] == ""


def test_a_context_that_does_not_exist_is_named(tmp_path: Path) -> None:
    """A misspelt context is an error that says how to see the right ones."""
    with pytest.raises(HostError, match="docker context ls") as error:
        find.named_engine({"DOCKER_CONTEXT": "nowhere"}, tmp_path)
    assert error.value.problems[0].where == "Docker context nowhere"


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_broken_client_configuration_is_named(tmp_path: Path, text: str) -> None:
    """A config.json that can't be read is an error with its path, not a traceback."""
    file = tmp_path / ".docker/config.json"
    file.parent.mkdir()
    file.write_text(text)
    with pytest.raises(HostError) as error:
        find.named_engine({}, tmp_path)
    assert error.value.problems[0].where == str(file)


def test_the_default_context_names_nothing(tmp_path: Path) -> None:
    """The context "default" means the machine's sockets, as for the docker client."""
    assert find.named_engine({"DOCKER_CONTEXT": "default"}, tmp_path) is None


def test_an_unknown_strata_engine_is_refused(
    bare: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A misspelt STRATA_ENGINE is a bad argument (exit 2), not the default."""
    monkeypatch.setenv("STRATA_ENGINE", "privat")
    with pytest.raises(DefinitionError, match="privat") as error:
        find.find_engine(bare)
    assert error.value.exit_code == 2


def test_a_forbidden_socket_is_an_error(bare: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that this user may not use is reported, and no other one installed."""

    def forbid(_socket: object, _address: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("strata.engine.connect.socket.socket.connect", forbid)
    with pytest.raises(HostError, match="usermod -aG docker"):
        find.find_engine(bare)


def test_an_ssh_engine_is_not_knocked_at() -> None:
    """Whether an engine behind ssh answers is left to the client that can speak ssh."""
    assert why_unreachable(Engine(host="ssh://me@far.test", origin="DOCKER_HOST")) is None


def test_looking_for_a_private_engine_starts_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`plan` may look at any time: where the private engine does not run, there is none."""
    monkeypatch.setenv("STRATA_ENGINE", "private")
    place = Workspace(root=tmp_path, build=tmp_path / "build", cache=tmp_path / "cache")
    assert find.find_engine(place) is None
    assert list(tmp_path.iterdir()) == []
