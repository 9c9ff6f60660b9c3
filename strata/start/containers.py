"""Containers of services: found by their name, started, stopped; never those of others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.errors import DefinitionError, HostError
from strata.run import run
from strata.start.settings import LABEL, SETTINGS_LABEL, differences, run_arguments

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import docker
    from docker.models.containers import Container

    from strata.engine import Engine
    from strata.start.settings import Settings

STOP_PATIENCE = 10  # seconds before the engine kills it


def find_container(sdk: docker.DockerClient, name: str) -> Container | None:
    """Return the container of that name, None where there is none."""
    import docker.errors  # noqa: PLC0415 - slow to import

    try:
        return sdk.containers.get(name)
    except docker.errors.NotFound:
        return None


def reuse(container: Container, settings: Settings, flags: str) -> Container:
    """Start a container again if it stands still; `flags` name it on the command line.

    Raises `DefinitionError` when it is not ours, or was started otherwise than
    it is wanted now.
    """
    where = f"container {container.name}"
    labels: Mapping[str, str] = container.labels
    if labels.get(LABEL) != settings.service:
        raise DefinitionError.at(
            where, "it is there, and was not started by this task", "choose another: --name NAME"
        )
    found = differences(labels[SETTINGS_LABEL], settings)
    if found:
        raise DefinitionError.at(
            where,
            f"it was started otherwise ({'; '.join(found)})",
            f"./inv {settings.service} {flags} --stop first, or start a second one: --name NAME",
        )
    if container.status != "running":
        container.start()
    return container


def create(
    engine: Engine,
    sdk: docker.DockerClient,
    settings: Settings,
    command: Sequence[str],
    secrets: Mapping[str, str],
) -> Container:
    """Create a container and start it; what can't be started is removed.

    `secrets` are variables that are handed over by name, so that no list of
    processes shows them.  Raises `HostError` with the engine's reason.
    """
    named = [word for name in secrets for word in ("--env", name)]
    where = f"container {settings.name}"
    fix = "do what the engine says; docker ps --all shows what there is"
    if settings.gpus:
        fix += "; GPUs need NVIDIA's container toolkit, and --gpus none does without"
    env = {**engine.env, **secrets}
    argv = ["docker", "create", *named, *run_arguments(settings), *command]
    made = run(argv, error=HostError, where=where, fix=fix, env=env).strip()
    container = sdk.containers.get(made)
    try:
        run(["docker", "start", made], error=HostError, where=where, fix=fix, env=env, quiet=True)
    except BaseException:
        container.remove(force=True, v=True)
        raise
    return container


def stop(sdk: docker.DockerClient, name: str, service: str) -> bool:
    """Stop a container and remove it; False where there is none.

    Raises `DefinitionError` for a container that this service didn't start.
    """
    container = find_container(sdk, name)
    if container is None:
        return False
    if container.labels.get(LABEL) != service:
        raise DefinitionError.at(
            f"container {name}",
            f"it was not started by ./inv {service}",
            f"docker rm --force {name} removes it all the same",
        )
    container.stop(timeout=STOP_PATIENCE)
    container.remove(v=True)
    return True


def variable(container: Container, name: str) -> str:
    """Return what a variable was at the container's start, "" where it was not set."""
    pairs = (text.split("=", 1) for text in container.attrs["Config"]["Env"] or [])
    return next((pair[1] for pair in pairs if pair[0] == name and len(pair) > 1), "")
