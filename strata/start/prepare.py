"""From what the command line says to settings: asks the engine, decides, starts nothing."""

from __future__ import annotations

import getpass
import os
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strata.errors import DefinitionError
from strata.start.facts import (
    caller,
    find_reference,
    host_facts,
    image_facts,
    owner_of,
    pull,
)
from strata.start.services import refuse_variables
from strata.start.settings import LOOPBACK, decide
from strata.start.user import choose_user

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import docker

    from strata.engine import Engine
    from strata.start.options import StartOptions
    from strata.start.services import Service
    from strata.start.settings import ImageFacts, Settings
    from strata.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A container's settings, the image they are for, and what people should know."""

    settings: Settings
    image: ImageFacts
    notes: tuple[str, ...]


def prepare_start(
    workspace: Workspace,
    engine: Engine,
    sdk: docker.DockerClient,
    options: StartOptions,
    *,
    service: Service | None = None,
    keys: Sequence[str] = (),
) -> Prepared:
    """Return how a container shall be started, without one for a command.

    An image that is named with its registry is pulled if it isn't there.
    Raises `DefinitionError` for an image that is unknown, not built, or lacks
    the service, and for a variable with which nobody would reach the service.
    """
    if service is not None:
        refuse_variables(service, options.env)
    reference = find_reference(workspace, sdk, options)
    if reference.needs_pull:
        pull(engine, reference)
    image = image_facts(sdk, reference.text)
    if service is not None and service.port not in image.ports:
        raise DefinitionError.at(
            f"image {options.image}",
            f"it has no {service.title} (it exposes no port {service.port})",
            f"./inv {service.name} {service.image}, or dev",
        )
    user = choose_user(options.user, caller(), os.environ, owner_of(options.work))
    name = options.name or container_name(
        service.name if service else f"run-{os.getpid()}", reference.short, getpass.getuser()
    )
    settings = decide(
        options,
        reference,
        image,
        host_facts(sdk, options.gpus),
        user=user,
        name=name,
        service=service,
        keys=keys,
    )
    return Prepared(settings=settings, image=image, notes=_notes(options, user, settings))


def tell(prepared: Prepared) -> None:
    """Say on stderr which container it is, of what, for whom, and what people should know."""
    settings = prepared.settings
    work = f"{settings.work} on {settings.folder}" if settings.work else "no work folder"
    gpus = "all GPUs" if settings.gpus else "no GPU"
    user = ":".join(map(str, settings.user or prepared.image.user))
    print(
        f"container {settings.name}: {settings.reference}, {work}, user {user}, {gpus}",
        file=sys.stderr,
    )
    for note in prepared.notes:
        print(f"note: {note}", file=sys.stderr)


def _notes(
    options: StartOptions, user: tuple[int, int] | None, settings: Settings
) -> tuple[str, ...]:
    notes = []
    if user is None and options.work is not None:
        notes.append(
            f"{options.work} belongs to root, and containers run as the image's own user:"
            " give it another owner, or --user UID:GID, to write there"
        )
    if options.is_public and settings.ports:
        notes.append(
            "its port is open on all addresses of this machine:"
            f" from elsewhere, this machine's name takes {LOOPBACK}'s place"
        )
    return tuple(notes)


def container_name(purpose: str, image: str, login: str) -> str:
    """Return a container's usual name: `strata-PURPOSE-IMAGE-USER`, as Docker allows it."""
    return re.sub(r"[^a-zA-Z0-9_.-]+", "-", f"strata-{purpose}-{image}-{login}")


def folder_of(workspace: Workspace) -> Path:
    """Return where the files beside containers are kept: known hosts, ssh's configuration."""
    return workspace.build / "start"
