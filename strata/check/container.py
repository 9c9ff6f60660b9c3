"""Containers for checks: started as a careful user would, and always removed."""

from __future__ import annotations

import os
import platform
import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata.check.options import Training
from strata.engine.facts import ALL_BY_CDI, NVIDIA_DEVICE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import docker
    from docker.models.containers import Container
    from docker.models.networks import Network
    from docker.types import DeviceRequest

# Who started a container: another host's check may be at work on the same engine.
HOST, PID = "strata.check.host", "strata.check.pid"
GIB = 1 << 30
# What a rank's data loaders need in /dev/shm, in bytes: train/ddp/shared_memory.py says
# why, and a test holds the two together.
RANK_BYTES = 48_168_960
# /dev/shm is a limit and reserves nothing.  NCCL, too, talks there where GPUs don't reach
# each other, and how many ranks there are is known in the container alone.
GPU_GIB = 8


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How a command in a container of its own ended."""

    code: int
    stdout: str
    stderr: str


def container_options(how: Training) -> dict[str, Any]:
    """Return how every check's container is started: no network, no privileges."""
    options: dict[str, Any] = {
        "network_mode": "none",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "shm_size": f"{shared_gibibytes(how)}g",
        "labels": labels(),
    }
    if how.gpus != "none":
        options["device_requests"] = [gpu_request(how.gpus)]
    return options


def shared_gibibytes(how: Training) -> int:
    """Return the GiB of /dev/shm in which the loaders of a container's ranks have room."""
    ranks = int(how.nproc) if how.nproc.isdecimal() else 0
    return max(1 if how.gpus == "none" else GPU_GIB, -(-ranks * RANK_BYTES // GIB))


def gpu_request(gpus: str, numbers: Sequence[str] = ()) -> DeviceRequest:
    """Return the request for GPUs with these numbers, or for all.

    By capabilities an engine asks NVIDIA's runtime.  The driver "cdi" takes
    names, and neither a count nor capabilities (Docker Engine 25 and later).
    """
    from docker.types import DeviceRequest  # noqa: PLC0415 - slow to import

    if gpus == ALL_BY_CDI:
        names = [f"{NVIDIA_DEVICE}={number}" for number in numbers or ("all",)]
        return DeviceRequest(driver="cdi", device_ids=names)
    if numbers:
        return DeviceRequest(device_ids=list(numbers), capabilities=[["gpu"]])
    return DeviceRequest(count=-1, capabilities=[["gpu"]])


def labels() -> dict[str, str]:
    """Return our mark, for whatever a check makes in the engine."""
    return {HOST: platform.node(), PID: str(os.getpid())}


@contextmanager
def idle_container(sdk: docker.DockerClient, image: str, gpus: str) -> Iterator[Container]:
    """Start a container that waits, and remove it whatever happens."""
    container = sdk.containers.create(
        image,
        ["sleep", "infinity"],
        name=f"strata-check-{uuid.uuid4().hex[:12]}",
        **container_options(Training(gpus=gpus)),
    )
    try:
        container.start()
        yield container
    finally:
        remove(container)


def wait(container: Container, timeout: float) -> int:
    """Wait for a container's end, `timeout` in seconds, and return its exit code.

    Raises `TimeoutError` when it does not end in time.
    """
    import requests.exceptions  # noqa: PLC0415 - slow to import

    try:
        return int(container.wait(timeout=max(1.0, timeout))["StatusCode"])
    except (requests.exceptions.ReadTimeout, requests.exceptions.ConnectionError) as late:
        raise TimeoutError("the container did not end in time") from late


def remove(container: Container) -> None:
    """Remove a container, be it running, unless somebody else just does or did."""
    import docker.errors  # noqa: PLC0415 - slow to import

    with suppress(docker.errors.NotFound):
        try:
            container.remove(force=True, v=True)
        except docker.errors.APIError as refused:
            if refused.status_code != HTTPStatus.CONFLICT:
                raise


def remove_network(network: Network) -> None:
    """Remove a network without containers, unless somebody else just did."""
    import docker.errors  # noqa: PLC0415 - slow to import

    with suppress(docker.errors.NotFound):
        network.remove()


def remove_orphans(sdk: docker.DockerClient) -> int:
    """Remove what a check of this host left when it was killed; return how many."""
    orphans = [c for c in _checks(sdk) if not Path("/proc", c.labels[PID]).exists()]
    for container in orphans:
        remove(container)
    for network in sdk.networks.list(filters={"label": f"{HOST}={platform.node()}"}):
        if not Path("/proc", network.attrs["Labels"][PID]).exists():
            remove_network(network)
    return len(orphans)


def remove_own(sdk: docker.DockerClient) -> None:
    """Remove the containers of this process's checks."""
    for container in _checks(sdk):
        if container.labels[PID] == str(os.getpid()):
            remove(container)


def _checks(sdk: docker.DockerClient) -> list[Container]:
    """Return the containers that checks of this host have started."""
    label = f"{HOST}={platform.node()}"
    return sdk.containers.list(all=True, filters={"label": label}, ignore_removed=True)
