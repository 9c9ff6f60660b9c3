"""What the engine says of itself, and what that means for training.  Judges are pure."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from doctor.findings import ERROR, INFO, OK, UNKNOWN, WARNING, Finding
from strata.doctor.gpus import ROOTLESS_FIX, cdi_drivers, judge_gpus
from strata.engine.connect import PATIENCE, client, unreachable
from strata.engine.facts import (
    EngineFacts,
    buildx_version,
    facts_of,
    problems_of,
)
from strata.engine.find import find_engine
from strata.engine.room import GIGABYTE, NEEDED_BYTES
from strata.errors import HostError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from doctor.facts import Nvidia
    from strata.engine.connect import Engine
    from strata.workspace import Workspace

INSTALL_FIX = (
    "./inv build installs and starts one (Debian or Ubuntu, as root or with sudo); else "
    "https://docs.docker.com/engine/install/"
)
CGROUP_FIX = "boot with systemd.unified_cgroup_hierarchy=1 on the kernel's command line"
DELEGATE_FIX = (
    "use cgroup v2 and delegate cpu and memory to users: "
    "https://docs.docker.com/engine/security/rootless/"
)


@dataclass(frozen=True, kw_only=True)
class EngineState:
    """An engine that answered: where it is, what it is, and what keeps strata from using it.

    `cdi_drivers` holds the version of the driver that each CDI file is made for.
    """

    facts: EngineFacts
    problems: tuple[Problem, ...]
    cgroup_version: str
    cgroup_driver: str
    is_rootless: bool
    is_local: bool
    runtimes: tuple[str, ...]
    cdi_folders: tuple[str, ...]
    cdi_drivers: Mapping[str, str]


def probe_engine(workspace: Workspace) -> EngineState | tuple[Problem, ...] | None:
    """Ask the engine that strata would use; None where none runs; nothing is started.

    Returns the problems of one that can't be asked.
    """
    import docker.errors  # noqa: PLC0415 - slow to import
    import requests.exceptions  # noqa: PLC0415 - slow to import

    try:
        engine = find_engine(workspace)
        if engine is None:
            return None
        try:
            with closing(client(engine, timeout=PATIENCE)) as sdk:
                info, version = sdk.info(), sdk.version()
        except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
            return (unreachable(engine, str(error)),)
        return state_of(engine, info, version, buildx_version(engine))
    except HostError as error:
        return error.problems


def state_of(
    engine: Engine, info: Mapping[str, Any], version: Mapping[str, Any], buildx: str
) -> EngineState:
    """Read an engine's answers to /info and /version (Docker Engine API 1.43 and later)."""
    is_local = engine.socket_path is not None
    facts = facts_of(info, version, buildx, is_local=is_local)
    folders = tuple(info.get("CDISpecDirs") or ())
    return EngineState(
        facts=facts,
        problems=problems_of(facts, engine, NEEDED_BYTES),
        cgroup_version=str(info.get("CgroupVersion", "")),
        cgroup_driver=str(info.get("CgroupDriver", "")),
        is_rootless="name=rootless" in (info.get("SecurityOptions") or []),
        is_local=is_local,
        runtimes=tuple(sorted(info.get("Runtimes") or ())),
        cdi_folders=folders,
        cdi_drivers=cdi_drivers(facts.cdi.found),
    )


def judge_engine(state: EngineState | tuple[Problem, ...] | None, nvidia: Nvidia) -> list[Finding]:
    """Return the findings about the engine; what can't be asked is unknown."""
    if isinstance(state, EngineState):
        return [
            *_fitness(state),
            _cgroups(state),
            _rootless(state),
            judge_gpus(state, nvidia),
        ]
    if state is None:
        first = [Finding("engine", WARNING, "no Docker engine runs here", INSTALL_FIX)]
    else:
        first = problem_findings(state)
    names = ("engine-cgroups", "engine-rootless", "engine-gpus")
    return first + [Finding(name, UNKNOWN, "there is no engine to ask") for name in names]


def problem_findings(problems: Sequence[Problem]) -> list[Finding]:
    """Return each problem as an error of the engine."""
    return [
        Finding("engine", ERROR, f"{problem.where}: {problem.what}", problem.fix)
        for problem in problems
    ]


def _fitness(state: EngineState) -> list[Finding]:
    facts = state.facts
    if state.problems:
        return problem_findings(state.problems)
    told = f"version {facts.version}, buildx {facts.buildx}, containerd's image store"
    if facts.free_bytes is None:
        return [Finding("engine", OK, f"{told}; its disk is not on this machine")]
    free = f"{facts.free_bytes / GIGABYTE:.1f} GB free in {facts.data_root}"
    return [Finding("engine", OK, f"{told}, {free}")]


def _cgroups(state: EngineState) -> Finding:
    told = f"cgroup version {state.cgroup_version}, driver {state.cgroup_driver}"
    if not state.cgroup_version:
        return Finding("engine-cgroups", UNKNOWN, "the engine doesn't tell its cgroup version")
    if state.is_rootless and (state.cgroup_version == "1" or state.cgroup_driver == "none"):
        why = "a rootless engine can't limit CPUs and memory there: --cpus has no effect"
        return Finding("engine-cgroups", WARNING, f"{told}: {why}", DELEGATE_FIX)
    if state.cgroup_version == "1":
        why = "it works, and newer distributions drop it"
        return Finding("engine-cgroups", INFO, f"{told}: {why}", CGROUP_FIX)
    return Finding("engine-cgroups", OK, told)


def _rootless(state: EngineState) -> Finding:
    if not state.is_rootless:
        return Finding("engine-rootless", OK, "the engine runs as root")
    told = "the engine is rootless: GPUs need NVIDIA's toolkit without cgroups, and --ulimit "
    told += "can't exceed the user's own limits"
    return Finding("engine-rootless", INFO, told, ROOTLESS_FIX)
