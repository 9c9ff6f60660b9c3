"""What an image can serve, and how it is started there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from strata.errors import DefinitionError

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, kw_only=True)
class Service:
    """A service of the images: its port in the container, its program, the image that people mean.

    The program is one of `/opt/strata/services`, so that of an image with
    several of them only the one that was asked for listens.  `port_variable` is
    what would move it to another port, "" where nothing does.
    """

    name: str
    title: str
    port: int
    program: str
    image: str
    port_variable: str = ""


JUPYTER = Service(
    name="jupyter",
    title="JupyterLab",
    port=8888,
    program="/opt/strata/services/jupyter",
    image="lab",
    port_variable="JUPYTER_PORT",
)
SSH = Service(
    name="ssh",
    title="SSH server",
    port=2222,
    program="/opt/strata/services/ssh",
    image="remote",
)


def refuse_port_variable(service: Service, env: Iterable[str]) -> None:
    """Raise `DefinitionError` where `env`, NAME=value or NAME, moves a service off its port.

    Only `service.port` is published, so nobody would reach it.
    """
    name = service.port_variable
    if name and any(text.partition("=")[0] == name for text in env):
        raise DefinitionError.at(
            f"--env {name}",
            f"{service.title} must listen on {service.port} in the container, which is published",
            "--port N chooses the port on this machine",
        )
