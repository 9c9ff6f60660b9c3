"""What an engine is and has, and whether that is enough."""

from __future__ import annotations

import json
import re
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata.engine.cdi import CdiFiles, read_cdi
from strata.engine.connect import PATIENCE, client, unreachable
from strata.engine.room import LITTLE_BYTES, engine_room, free_bytes, room_problems
from strata.errors import HostError, Problem
from strata.run import run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from strata.engine.connect import Engine

OLDEST_ENGINE = (24,)
OLDEST_BUILDX = (0, 13)
CONTAINERD_STORE = "io.containerd.snapshotter.v1"
NVIDIA_DEVICE = "nvidia.com/gpu"
NVIDIA_RUNTIME = "nvidia"
# How containers get the GPUs that an engine knows by CDI files alone, without NVIDIA's runtime.
ALL_BY_CDI = "all by CDI"
BUILDX_FIX = (
    "install Docker's buildx plugin, 0.13 or newer: sudo apt-get install docker-buildx"
    " (docker-buildx-plugin from Docker's own repository)"
)
STORE_FIX = (
    'put {"features": {"containerd-snapshotter": true}} into /etc/docker/daemon.json and restart'
    " the engine (its present images stay in the old store), or build with STRATA_ENGINE=private"
)


@dataclass(frozen=True, kw_only=True)
class EngineFacts:
    """What an engine said about itself.

    `buildx` is the client's plugin ("" when there is none).  `free_bytes` is
    None when the data root is not on this machine.  `offers_gpus` means that
    containers can be given NVIDIA GPUs, not that there are any, and
    `has_nvidia_runtime` that it does so for `--gpus`; `cdi` are the CDI files of
    its folders, where those are on this machine.
    """

    product: str
    version: str
    buildx: str
    data_root: str
    free_bytes: int | None
    storage_driver: str
    has_containerd_store: bool
    offers_gpus: bool
    has_nvidia_runtime: bool = False
    cdi: CdiFiles = field(default_factory=CdiFiles)

    @property
    def gives_gpus_by_cdi(self) -> bool:
        """Whether GPUs must be named as CDI devices: the engine has no runtime for `--gpus`."""
        return self.offers_gpus and not self.has_nvidia_runtime


def check_engine(engine: Engine, need_bytes: int = LITTLE_BYTES) -> EngineFacts:
    """Ask the engine what it is; raise `HostError` with all that is wrong with it.

    `need_bytes` is how much must be free on its data root, where that is on
    this machine; what a build needs is asked when there is something to build.
    """
    # Any failure of the SDK here has one meaning: it is no engine that answers.
    import docker.errors  # noqa: PLC0415
    import requests.exceptions  # noqa: PLC0415

    try:
        with closing(client(engine, timeout=PATIENCE)) as sdk:
            info, version = sdk.info(), sdk.version()
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        raise HostError(unreachable(engine, str(error))) from None
    facts = facts_of(info, version, buildx_version(engine), is_local=engine.socket_path is not None)
    problems = problems_of(facts, engine, need_bytes)
    if problems:
        raise HostError(*problems)
    return facts


def facts_of(
    info: Mapping[str, Any], version: Mapping[str, Any], buildx: str, *, is_local: bool
) -> EngineFacts:
    """Read an engine's answers to /info and /version (Docker Engine API 1.43 and later)."""
    components = version.get("Components") or [{"Name": "Engine"}]
    root = Path(info["DockerRootDir"])
    is_here = is_local and root.exists()
    cdi = read_cdi(info.get("CDISpecDirs") or ()) if is_local else CdiFiles()
    return EngineFacts(
        product=str(components[0]["Name"]),
        version=str(version["Version"]),
        buildx=buildx,
        data_root=str(root),
        free_bytes=free_bytes(root) if is_here else None,
        storage_driver=str(info["Driver"]),
        has_containerd_store=["driver-type", CONTAINERD_STORE] in (info.get("DriverStatus") or []),
        offers_gpus=_offers_gpus(info, cdi),
        has_nvidia_runtime=_has_nvidia_runtime(info),
        cdi=cdi,
    )


def gives_gpus(facts: EngineFacts) -> bool:
    """Tell whether containers can be given GPUs; `HostError` where a CDI file leaves it open."""
    if not facts.offers_gpus and facts.cdi.problems:
        raise HostError(*facts.cdi.problems)
    return facts.offers_gpus


def _has_nvidia_runtime(info: Mapping[str, Any]) -> bool:
    return NVIDIA_RUNTIME in (info.get("Runtimes") or {})


def _offers_gpus(info: Mapping[str, Any], cdi: CdiFiles) -> bool:
    if _has_nvidia_runtime(info):
        return True
    # Engines from 28.2 on list the devices; older ones only say where CDI files are.
    found = info.get("DiscoveredDevices") or []
    if any(str(device.get("ID", "")).startswith(NVIDIA_DEVICE) for device in found):
        return True
    return any(specification.kind == NVIDIA_DEVICE for specification in cdi.found)


def problems_of(facts: EngineFacts, engine: Engine, need_bytes: int) -> tuple[Problem, ...]:
    """Return all that keeps strata from building with such an engine."""
    where = f"Docker engine at {engine.host} ({engine.origin})"
    problems = []
    if facts.product.startswith("Podman"):
        problems.append(("it is Podman, not Docker", "start a Docker engine and set DOCKER_HOST"))
    elif version_tuple(facts.version) < OLDEST_ENGINE:
        fix = "upgrade it: https://docs.docker.com/engine/install/"
        problems.append((f"its version is {facts.version}, and 24 is the oldest that works", fix))
    elif not facts.has_containerd_store:
        store = f"its image store is the classic one ({facts.storage_driver}), not containerd's"
        problems.append((store, STORE_FIX))
    if not facts.buildx:
        problems.append(("`docker buildx` is missing", BUILDX_FIX))
    elif version_tuple(facts.buildx) < OLDEST_BUILDX:
        problems.append(
            (f"buildx is {facts.buildx}, and 0.13 is the oldest that works", BUILDX_FIX)
        )
    told = tuple(Problem(where=where, what=what, fix=fix) for what, fix in problems)
    room = engine_room(engine, Path(facts.data_root), facts.free_bytes, need_bytes)
    return (*told, *room_problems([room]))


def version_tuple(text: str) -> tuple[int, ...]:
    """Return the leading numbers of a version, "v0.13.1+ds1" as (0, 13, 1)."""
    numbers = re.match(r"v?(\d+(?:\.\d+)*)", text)
    return tuple(int(part) for part in numbers[1].split(".")) if numbers else ()


def buildx_version(engine: Engine) -> str:
    """Return the version of the docker client's buildx plugin, "" if it has none."""
    listing = run(
        ["docker", "info", "--format", "{{json .ClientInfo.Plugins}}"],
        error=HostError,
        where="docker client",
        fix="install Docker's command line: sudo apt-get install docker-cli (or docker.io)",
        env=engine.env,
        timeout=60,
        quiet=True,
    )
    plugins = json.loads(listing) or []
    # A plugin that cannot be started is listed with "Err" and without a version.
    versions = (item.get("Version", "") for item in plugins if item.get("Name") == "buildx")
    return str(next(versions, ""))
