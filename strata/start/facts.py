"""What the engine, its images and this machine say before a container is started."""

from __future__ import annotations

import os
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from strata.engine import find_engine
from strata.engine.facts import facts_of, gives_gpus
from strata.errors import DefinitionError, HostError
from strata.load import load, select
from strata.run import run
from strata.start.reference import Reference, choose_reference
from strata.start.settings import HostFacts, ImageFacts

if TYPE_CHECKING:
    from pathlib import Path

    import docker

    from strata.engine import Engine
    from strata.start.options import StartOptions
    from strata.start.user import Identity
    from strata.workspace import Workspace


def local_engine(workspace: Workspace) -> Engine:
    """Return the engine of this machine.

    Raises `HostError` where none runs, and for one elsewhere, whose loopback
    and folders are not ours.
    """
    engine = find_engine(workspace)
    if engine is None:
        raise HostError.at("Docker engine", "none runs here", "./inv build starts one")
    if engine.socket_path is None:
        raise HostError.at(
            f"Docker engine at {engine.host} ({engine.origin})",
            "it is on another machine, whose folders and loopback cannot be used from here",
            "log in to that machine and run it there",
        )
    return engine


def find_reference(
    workspace: Workspace, sdk: docker.DockerClient, options: StartOptions
) -> Reference:
    """Return the image that is meant.

    Raises `DefinitionError` for an image that is unknown, or known and not built.
    """
    project = load(workspace.root)
    select("variant", [options.variant], project.variants)
    images = sdk.api.images()
    present = {ref for image in images for ref in image["RepoTags"] + image["RepoDigests"]}
    return choose_reference(options.image, options.variant, list(project.images), present)


def pull(engine: Engine, reference: Reference) -> None:
    """Pull an image, showing how far it is; raises `DefinitionError` where there is none."""
    run(
        ["docker", "pull", reference.text],
        error=DefinitionError,
        where=f"image {reference.text}",
        fix="check its name, and docker login for a registry that wants to know you",
        env=engine.env,
        show=True,
    )


def host_facts(sdk: docker.DockerClient, gpus: str) -> HostFacts:
    """Return what the engine has to offer.

    Raises `HostError` where `gpus` is "auto" and it can't be known whether it gives any.
    """
    info = sdk.info()
    facts = facts_of(info, sdk.version(), buildx="", is_local=True)
    offers_gpus = gives_gpus(facts) if gpus == "auto" else facts.offers_gpus
    return HostFacts(
        memory=int(info["MemTotal"]),
        offers_gpus=offers_gpus,
        gives_gpus_by_cdi=facts.gives_gpus_by_cdi,
    )


def image_facts(sdk: docker.DockerClient, reference: str) -> ImageFacts:
    """Return what an image says of itself; raises `DefinitionError` for one that isn't strata's."""
    image = sdk.images.get(reference)
    config: dict[str, Any] = image.attrs["Config"]
    uid, _, gid = (config.get("User") or "").partition(":")
    folder = PurePosixPath(config.get("WorkingDir") or "/")
    if not (uid.isdecimal() and gid.isdecimal()) or len(folder.parts) <= 2:  # noqa: PLR2004 - /, folder
        raise DefinitionError.at(
            f"image {reference}",
            "it is none of strata's: they have a user by numbers and a working folder in its home",
            f"docker run {reference}",
        )
    exposed = config.get("ExposedPorts") or {}
    return ImageFacts(
        digest=str(image.id),
        user=(int(uid), int(gid)),
        folder=folder,
        ports=frozenset(int(port.partition("/")[0]) for port in exposed),
    )


def caller() -> Identity:
    """Return uid and gid of whoever runs us."""
    return os.geteuid(), os.getegid()


def owner_of(folder: Path | None) -> Identity | None:
    """Return uid and gid of a folder's owner."""
    if folder is None:
        return None
    found = folder.stat()
    return found.st_uid, found.st_gid
