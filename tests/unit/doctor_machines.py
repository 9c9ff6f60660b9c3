"""Machines for the doctor's tests, as literal facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from doctor.facts import (
    CONTAINER,
    GIB,
    MIB,
    Facts,
    Gpu,
    Limits,
    Network,
    Nvidia,
    Port,
    Setting,
    Torch,
    Unknown,
)

NO_LIBRARY = Unknown("libcuda.so.1: cannot open shared object file")
NO_NVML = Unknown("no pynvml")
LIMITS = Limits(
    cores=16,
    granted=16,
    memory=None,
    memory_total=64 * GIB,
    processes=None,
    open_files=1_048_576,
    locked_memory=8 * MIB,
    stack=8 * MIB,
    shared_memory=GIB,
    temporary="/tmp",  # noqa: S108 - as Linux has it
    temporary_free=20 * GIB,
)
NO_GPU = Nvidia(
    is_wsl=False,
    module="",
    nodes=(),
    cards=0,
    cuda=NO_LIBRARY,
    start=NO_LIBRARY,
    driver=NO_NVML,
    gpus=NO_NVML,
    severed=NO_NVML,
)
LAPTOP = Facts(
    scope=CONTAINER,
    limits=LIMITS,
    nvidia=NO_GPU,
    torch=Torch(version="2.13.0+cpu", cuda=None, architectures=(), gpus=0),
    network=Network(interfaces=("eth0", "lo"), ports=(), verbs=()),
    settings={},
    blocked={},
)
H100 = "NVIDIA H100 80GB HBM3"
ACTIVE = Port(device="mlx5_0", number=1, state="ACTIVE", link_layer="InfiniBand")
DGX = Facts(
    scope=CONTAINER,
    limits=replace(LIMITS, cores=224, granted=224, memory_total=2048 * GIB, locked_memory=None),
    nvidia=Nvidia(
        is_wsl=False,
        module="575.57.08",
        nodes=(*(f"nvidia{index}" for index in range(8)), "nvidiactl"),
        cards=8,
        cuda=(12, 9),
        start=0,
        driver="575.57.08",
        gpus=tuple(Gpu(index, H100, (9, 0), ()) for index in range(8)),
        severed=(),
    ),
    torch=Torch(
        version="2.8.0",
        cuda=(12, 9),
        architectures=("sm_80", "sm_90", "compute_90"),
        gpus=8,
    ),
    network=Network(interfaces=("eth0", "ib0", "lo"), ports=(ACTIVE,), verbs=("uverbs0",)),
    settings={},
    blocked={},
)


def with_nvidia(machine: Facts, **changes: Any) -> Facts:  # noqa: ANN401 - fields of Nvidia
    """Return the machine with another driver or other GPUs."""
    return replace(machine, nvidia=replace(machine.nvidia, **changes))


def with_limits(machine: Facts, **changes: Any) -> Facts:  # noqa: ANN401 - fields of Limits
    """Return the machine with other limits."""
    return replace(machine, limits=replace(machine.limits, **changes))


def with_torch(machine: Facts, **changes: Any) -> Facts:  # noqa: ANN401 - fields of Torch
    """Return the machine with another PyTorch."""
    if isinstance(machine.torch, Unknown):
        raise TypeError(machine.torch.reason)
    return replace(machine, torch=replace(machine.torch, **changes))


def with_settings(machine: Facts, **settings: str) -> Facts:
    """Return the machine with these variables in the environment."""
    found = {name: Setting(value, "the environment") for name, value in settings.items()}
    return replace(machine, settings=found)
