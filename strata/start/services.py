"""What an image can serve, and how it is started there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from strata.errors import DefinitionError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, kw_only=True)
class Service:
    """A service of the images: its port in the container, its program, the image that people mean.

    The program is one of `/opt/strata/services`, so that of an image with
    several of them only the one that was asked for listens.  `refused` are the
    variables with which nobody would reach it: name, why, what to do instead.
    """

    name: str
    title: str
    port: int
    program: str
    image: str
    refused: tuple[tuple[str, str, str], ...] = ()


JUPYTER = Service(
    name="jupyter",
    title="JupyterLab",
    port=8888,
    program="/opt/strata/services/jupyter",
    image="lab",
    refused=(
        (
            "JUPYTER_PORT",
            "JupyterLab must listen on 8888 in the container, which is published",
            "--port N chooses the port on this machine",
        ),
        (
            "JUPYTER_IP",
            "JupyterLab must listen on the container's address, which is published",
            "leave it out; only --public opens it to the network",
        ),
        (
            "JUPYTER_BASE_URL",
            "the link leads to JupyterLab itself, not to a path behind a proxy",
            "leave it out; for a proxy see docs/jupyter.md",
        ),
        (
            "JUPYTER_TOKEN",
            "it is handed over by itself, and a value here would be in the list of processes",
            "JUPYTER_TOKEN=... ./inv jupyter",
        ),
    ),
)
SSH = Service(
    name="ssh",
    title="SSH server",
    port=2222,
    program="/opt/strata/services/ssh",
    image="remote",
)


def refuse_variables(service: Service, env: Iterable[str]) -> None:
    """Raise `DefinitionError` where `env`, NAME=value or NAME, has what the service refuses."""
    given = {text.partition("=")[0] for text in env}
    problems = [
        Problem(where=f"--env {name}", what=why, fix=fix)
        for name, why, fix in service.refused
        if name in given
    ]
    if problems:
        raise DefinitionError(*problems)
