"""An engine's address, and how to reach it."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from strata.errors import HostError, Problem

if TYPE_CHECKING:
    import docker

PATIENCE = 10
DEFAULT_PORT = 2375
UNIX = "unix://"
PONG = b"HTTP/1.0 200"


@dataclass(frozen=True, kw_only=True)
class Engine:
    """Where a Docker engine listens, and who said so.

    `origin` is "DOCKER_HOST", "context NAME", "socket", "rootless socket",
    "private" or "installed".  `certificates` is the folder with ca.pem,
    cert.pem and key.pem of an engine that is reached by TLS.
    """

    host: str
    origin: str
    certificates: Path | None = None
    verifies_tls: bool = True

    @property
    def env(self) -> dict[str, str]:
        """What the docker client must find in its environment to use this engine.

        The builder is named too: `docker buildx use` may have chosen one whose
        images never reach this engine's store.
        """
        env = {"DOCKER_HOST": self.host, "BUILDX_BUILDER": "default", "DOCKER_TLS_VERIFY": ""}
        if self.certificates is not None:
            env["DOCKER_CERT_PATH"] = str(self.certificates)
            env["DOCKER_TLS_VERIFY" if self.verifies_tls else "DOCKER_TLS"] = "1"
        return env

    @property
    def socket_path(self) -> Path | None:
        """The Unix socket, if it is one."""
        return Path(self.host.removeprefix(UNIX)) if self.host.startswith(UNIX) else None


def client(engine: Engine, timeout: int = 60) -> docker.DockerClient:
    """Return a Docker SDK client for this engine; the caller closes it.

    `timeout` is in seconds, for each answer.  Raises `HostError` when the
    engine does not answer.
    """
    closed = why_unreachable(engine)
    if closed is not None:
        raise HostError(closed)
    # The SDK takes 0.1 s to import: only those who need it should wait.
    import docker  # noqa: PLC0415
    from docker.tls import TLSConfig  # noqa: PLC0415

    folder = engine.certificates
    try:
        tls = folder is not None and TLSConfig(
            client_cert=(str(folder / "cert.pem"), str(folder / "key.pem")),
            ca_cert=str(folder / "ca.pem"),
            verify=engine.verifies_tls,
        )
        return docker.DockerClient(
            base_url=engine.host,
            version="auto",
            timeout=timeout,
            tls=tls,
            use_ssh_client=engine.host.startswith("ssh://"),
        )
    except (docker.errors.DockerException, OSError) as error:
        raise HostError(unreachable(engine, str(error))) from None


def unreachable(engine: Engine, reason: str) -> Problem:
    """Say that an engine does not answer, and what to do, by how we came to it."""
    fixes = {
        "DOCKER_HOST": "start that engine, or unset DOCKER_HOST to use this machine's own",
        "private": "./inv engine stop && ./inv engine start",
    }
    fix = fixes.get(engine.origin, "start it: sudo systemctl start docker")
    if engine.origin.startswith("context "):
        fix = "start that engine, or choose another: docker context use default"
    return Problem(
        where=f"Docker engine at {engine.host} ({engine.origin})",
        what=f"it does not answer: {reason}",
        fix=fix,
    )


def knock(engine: Engine) -> OSError | ValueError | None:
    """Try whether somebody listens at the engine's address; return what went wrong.

    An engine behind ssh is not tried.
    """
    path = engine.socket_path
    try:
        if path is not None:
            with socket.socket(socket.AF_UNIX) as door:
                door.settimeout(PATIENCE)
                door.connect(str(path))
        elif engine.host.startswith("tcp://"):
            url = urlsplit(engine.host)
            address = (url.hostname or "localhost", url.port or DEFAULT_PORT)
            socket.create_connection(address, PATIENCE).close()
    except (OSError, ValueError) as error:
        return error
    return None


def answers(engine: Engine, patience: float = 1.0) -> bool:
    """Tell whether an engine on a Unix socket is done with starting.

    It listens long before, and may die in between; only then does it answer
    /_ping.  `patience` is in seconds.
    """
    with socket.socket(socket.AF_UNIX) as door:
        door.settimeout(patience)
        try:
            door.connect(str(engine.socket_path))
            door.sendall(b"GET /_ping HTTP/1.0\r\n\r\n")
            return door.recv(len(PONG)) == PONG
        except OSError:
            return False


def why_unreachable(engine: Engine) -> Problem | None:
    """Return why the engine can't be reached, with the fix; None if somebody listens."""
    error = knock(engine)
    if error is None:
        return None
    if isinstance(error, PermissionError):
        return Problem(
            where=f"Docker engine at {engine.host} ({engine.origin})",
            what="you may not use its socket",
            fix="sudo usermod -aG docker $USER, then log in again (or: newgrp docker)",
        )
    if isinstance(error, FileNotFoundError):
        return unreachable(engine, "there is no such socket")
    return unreachable(engine, str(error))
