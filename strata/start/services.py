"""What an image can serve, and how it is started there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Service:
    """A service of the images: its port in the container, its program, the image that people mean.

    The program is one of `/opt/strata/services`, so that of an image with
    several of them only the one that was asked for listens.
    """

    name: str
    title: str
    port: int
    program: str
    image: str


JUPYTER = Service(
    name="jupyter",
    title="JupyterLab",
    port=8888,
    program="/opt/strata/services/jupyter",
    image="lab",
)
SSH = Service(
    name="ssh",
    title="SSH server",
    port=2222,
    program="/opt/strata/services/ssh",
    image="remote",
)
