"""A service's container: used again, stopped, never a stranger's; and what OpenSSH is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import strata.start.containers
from strata.engine import Engine
from strata.errors import DefinitionError, HostError
from strata.start.containers import create, reuse, stop, variable
from strata.start.prepare import container_name
from strata.start.services import JUPYTER, SSH, refuse_variables
from strata.start.sshfiles import Login, config_block, known_hosts
from tests.unit.test_start_settings import settle

ENGINE = Engine(host="unix:///nowhere", origin="DOCKER_HOST")
LOGIN = Login(
    name="box",
    port=49153,
    user="dev",
    known_hosts=Path("/my build/box.known_hosts"),
    config=Path("/my build/box.config"),
    identities=(),
    has_other_keys=False,
)


class Container:
    """A container that stands as it is told."""

    def __init__(self, *states: dict[str, Any]) -> None:
        """Show one state after the other, and the last for ever."""
        self.name = "box"
        self.states = list(states) or [{"Running": True}]
        self.labels: dict[str, str] = {}
        self.status = "running"
        self.done: list[str] = []
        self.attrs: dict[str, Any] = {}

    def reload(self) -> None:
        """Go on to the next state."""
        self.attrs["State"] = self.states.pop(0) if len(self.states) > 1 else self.states[0]

    def logs(self, tail: int) -> bytes:
        """Return what it said last."""
        assert tail == 20
        return b"ssh: no key\nthe end\n"

    def start(self) -> None:
        """Note it."""
        self.done.append("start")

    def stop(self, timeout: int) -> None:
        """Note it."""
        self.done.append(f"stop {timeout}")

    def remove(self, **_: bool) -> None:
        """Note it."""
        self.done.append("remove")


class Store:
    """An engine that has this container."""

    def __init__(self, container: Container) -> None:
        """Have it."""
        self.containers = self
        self.container = container

    def get(self, _: str) -> Container:
        """Return it."""
        return self.container


def box(*states: dict[str, Any]) -> Any:  # noqa: ANN401 - it stands for the SDK's own
    """Return a container in these states."""
    return Container(*states)


def engine_with(container: Any) -> Any:  # noqa: ANN401 - it stands for the SDK's own
    """Return a client of an engine that has it."""
    return Store(container)


def test_a_container_is_used_again() -> None:
    """A running one as it is, one that was stopped is started."""
    settings = settle()
    container = box()
    container.labels = {"strata.start": "jupyter", "strata.start.settings": settings.label}
    assert reuse(container, settings, "lab").name == "box"
    assert container.done == []
    container.status = "exited"
    assert reuse(container, settings, "lab").name == "box"
    assert container.done == ["start"]


def test_a_strangers_container_is_left_alone() -> None:
    """Neither used nor stopped, though it has the name."""
    container = box()
    with pytest.raises(DefinitionError, match="was not started by this task"):
        reuse(container, settle(), "lab")
    with pytest.raises(DefinitionError, match=r"it was not started by \./inv jupyter"):
        stop(engine_with(container), "box", "jupyter")
    assert container.done == []


def test_a_container_of_other_settings_is_left_alone() -> None:
    """The error says what differs, and how to stop it."""
    container = box()
    container.labels = {"strata.start": "jupyter", "strata.start.settings": settle().label}
    with pytest.raises(DefinitionError) as caught:
        reuse(container, replace(settle(), shm="1g"), "lab --name box")
    assert str(caught.value) == (
        "error: container box: it was started otherwise (shared memory: 8192m, not 1g)\n"
        "  fix: ./inv jupyter lab --name box --stop first, or start a second one: --name NAME"
    )


def test_stopping_removes() -> None:
    """It gets ten seconds to end by itself."""
    container = box()
    container.labels = {"strata.start": "ssh"}
    assert stop(engine_with(container), "box", "ssh")
    assert container.done == ["stop 10", "remove"]


def test_what_does_not_start_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    """And secrets are handed over by name: they are in no argument."""
    calls: list[tuple[list[str], dict[str, str]]] = []

    def run(argv: list[str], *, env: dict[str, str], **_: object) -> str:
        calls.append((argv, env))
        if argv[1] == "start":
            raise HostError.at("docker start", "port is taken", "another")
        return "abc\n"

    monkeypatch.setattr(strata.start.containers, "run", run)
    container = box()
    with pytest.raises(HostError, match="port is taken"):
        create(ENGINE, engine_with(container), settle(), ["serve"], {"JUPYTER_TOKEN": "secret"})
    assert container.done == ["remove"]
    (argv, env), (started, _) = calls
    assert argv[:4] == ["docker", "create", "--env", "JUPYTER_TOKEN"]
    assert argv[-2:] == ["strata/lab:embedded", "serve"]
    assert "secret" not in " ".join(argv)
    assert env["JUPYTER_TOKEN"] == "secret"  # noqa: S105 - a test's
    assert started == ["docker", "start", "abc"]


def test_a_variable_is_read_back() -> None:
    """Whatever it holds; one that isn't there is empty."""
    container = box()
    container.attrs["Config"] = {"Env": ["A=b=c\nd", "TOKEN=", "ALONE"]}
    assert [variable(container, name) for name in ("A", "TOKEN", "ALONE", "NONE")] == [
        "b=c\nd",
        "",
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("login", "name"),
    [("ada", "strata-ssh-remote-ada"), ("DOM\\ada b", "strata-ssh-remote-DOM-ada-b")],
)
def test_names_are_what_docker_allows(login: str, name: str) -> None:
    """They can be told beforehand, for any user."""
    assert container_name("ssh", "remote", login) == name


@pytest.mark.parametrize("text", ["JUPYTER_PORT=9000", "JUPYTER_PORT"])
def test_a_service_stays_at_its_port(text: str) -> None:
    """A variable that would move JupyterLab off the published port is refused with `--port`."""
    with pytest.raises(DefinitionError) as caught:
        refuse_variables(JUPYTER, ["A=1", text])
    assert str(caught.value) == (
        "error: --env JUPYTER_PORT: JupyterLab must listen on 8888 in the container,"
        " which is published\n"
        "  fix: --port N chooses the port on this machine"
    )
    assert caught.value.exit_code == 2


def test_other_variables_are_nobodys_port() -> None:
    """Names that only begin alike, and values, pass, and so does all that SSH doesn't read."""
    refuse_variables(JUPYTER, ["JUPYTER_PORTS=1", "A=JUPYTER_PORT", "=JUPYTER_PORT"])
    refuse_variables(SSH, ["JUPYTER_PORT=9000", "="])


@pytest.mark.parametrize("name", ["JUPYTER_BASE_URL", "JUPYTER_IP", "JUPYTER_TOKEN"])
def test_what_hides_jupyter_is_refused(name: str) -> None:
    """A variable with which neither we nor the link would reach JupyterLab is refused, with 2."""
    for text in (f"{name}=/ada/", name):
        with pytest.raises(DefinitionError, match=f"^error: --env {name}: ") as caught:
            refuse_variables(JUPYTER, [text])
        assert caught.value.exit_code == 2
    refuse_variables(SSH, [name])


def test_known_hosts_has_the_name() -> None:
    """Every key that was read, none of the comments; the port doesn't matter."""
    scanned = (
        "# 127.0.0.1:2222 SSH-2.0\n[127.0.0.1]:2222 ssh-rsa BBB\n[127.0.0.1]:2222 ssh-ed25519 AAA\n"
    )
    assert known_hosts("box", scanned) == "box ssh-ed25519 AAA\nbox ssh-rsa BBB\n"
    assert known_hosts("box", "") == ""


def test_the_block_asks_no_question() -> None:
    """It pins the host's key, and names the private key where one was meant."""
    block = (
        "Host box\n"
        "  HostName 127.0.0.1\n"
        "  Port 49153\n"
        "  User dev\n"
        "  HostKeyAlias box\n"
        '  UserKnownHostsFile "/my build/box.known_hosts"\n'
        "  StrictHostKeyChecking yes\n"
    )
    assert config_block(LOGIN, "127.0.0.1") == block
    named = replace(LOGIN, identities=(Path("/keys/100%"), Path("/b")))
    files = '  IdentityFile "/keys/100%%"\n  IdentityFile "/b"\n'
    assert config_block(named, "127.0.0.1") == f"{block}{files}  IdentitiesOnly yes\n"
    assert config_block(replace(named, has_other_keys=True), "127.0.0.1") == block + files
    assert LOGIN.command == "ssh -F '/my build/box.config' box"
