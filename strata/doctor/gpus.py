"""Whether the engine can give containers the GPUs: by NVIDIA's runtime, or by CDI files."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from doctor.findings import ERROR, INFO, OK, UNKNOWN, WARNING, Finding

if TYPE_CHECKING:
    from collections.abc import Iterable

    from doctor.facts import Nvidia
    from strata.doctor.engine import EngineState
    from strata.engine.cdi import CdiFile

CHECK = "engine-gpus"
TOOLKIT_FIX = (
    "install NVIDIA's container toolkit (https://docs.nvidia.com/datacenter/cloud-native/"
    "container-toolkit/), then: sudo nvidia-ctk runtime configure --runtime=docker && "
    "sudo systemctl restart docker"
)
ROOTLESS_FIX = (
    "nvidia-ctk runtime configure --runtime=docker --config=$HOME/.config/docker/daemon.json && "
    "systemctl --user restart docker && "
    "sudo nvidia-ctk config --set nvidia-container-cli.no-cgroups --in-place"
)
# A CDI file mounts the driver's libraries by their versioned names (container device
# interface, SPEC.md, `mounts`), so that it is stale once the driver is another.
LIBRARY = re.compile(r"libcuda\.so\.(\d+\.\d+(?:\.\d+)?)")


def cdi_drivers(specifications: Iterable[CdiFile]) -> dict[str, str]:
    """Return the driver's version by the path of each file that mounts its libcuda."""
    versions = {str(one.file): LIBRARY.search(one.text) for one in specifications}
    return {file: version[1] for file, version in versions.items() if version}


def judge_gpus(state: EngineState, nvidia: Nvidia) -> Finding:
    """Judge toolkit and CDI against the driver, which is this host's, maybe not the engine's."""
    if not state.is_local:
        if state.facts.offers_gpus:
            return Finding(CHECK, OK, "the engine, on another machine, can give containers GPUs")
        return Finding(CHECK, UNKNOWN, "the engine is on another machine, and offers no GPU")
    return _unread(state) or _stale(state, nvidia) or _offer(state, nvidia)


def _unread(state: EngineState) -> Finding | None:
    problems = state.facts.cdi.problems
    if not problems:
        return None
    told = "; ".join(f"{problem.where} {problem.what}" for problem in problems)
    return Finding(CHECK, WARNING, told, "; ".join(problem.fix for problem in problems))


def _stale(state: EngineState, nvidia: Nvidia) -> Finding | None:
    files = {
        file: driver
        for file, driver in state.cdi_drivers.items()
        if nvidia.module and driver != nvidia.module
    }
    if not files:
        return None
    told = ", ".join(f"{file} is for driver {driver}" for file, driver in files.items())
    fix = "; ".join(f"sudo nvidia-ctk cdi generate --output={file}" for file in files)
    return Finding(CHECK, WARNING, f"{told}, and {nvidia.module} is loaded", fix)


def _offer(state: EngineState, nvidia: Nvidia) -> Finding:
    if state.facts.offers_gpus and nvidia.is_there:
        return Finding(CHECK, OK, "the engine can give containers GPUs (nvidia runtime or CDI)")
    if state.facts.offers_gpus:
        told = "the engine has the nvidia runtime or CDI, and no driver can be seen here"
        return Finding(CHECK, INFO, told)
    if nvidia.is_there:
        told = (
            "this host has an NVIDIA driver, and the engine has neither its runtime nor CDI "
            f"(runtimes: {', '.join(state.runtimes) or 'none'}; "
            f"CDI folders: {', '.join(state.cdi_folders) or 'none'})"
        )
        fix = ROOTLESS_FIX if state.is_rootless else TOOLKIT_FIX
        return Finding(CHECK, ERROR, told, fix)
    return Finding(CHECK, INFO, "no driver here, and no GPU for containers: CPU only")
