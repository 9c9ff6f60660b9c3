"""Judges the GPUs: seen or not, with code for them, at full speed, within reach.  Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from doctor.facts import CONTAINER, Unknown
from doctor.findings import ERROR, INFO, OK, UNKNOWN, WARNING, Finding, Remark, join
from doctor.judge_driver import TOOLKIT
from doctor.judge_settings import HIDING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from doctor.facts import Facts, Gpu, Torch

GIVE = f"docker run --gpus all, with NVIDIA's container toolkit on the host ({TOOLKIT})"
POWER_LIMIT = "power limit"
COOL = "mend cooling or power supply: nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER"


def judge_torch(facts: Facts) -> Finding:
    """Ask whether PyTorch can be imported, and what it is built for."""
    torch = facts.torch
    if isinstance(torch, Unknown):
        if facts.scope == CONTAINER:
            fix = "build the image anew; what was installed over it has broken it"
            return Finding("torch", ERROR, torch.reason, fix)
        return Finding("torch", UNKNOWN, torch.reason)
    built = f"CUDA {torch.cuda[0]}.{torch.cuda[1]}" if torch.cuda else "the CPU"
    return Finding("torch", OK, f"torch {torch.version}, built for {built}")


def judge_gpus(facts: Facts) -> Finding:
    """Compare the GPUs that are there with those that PyTorch sees."""
    nvidia, torch = facts.nvidia, facts.torch
    if nvidia.cards and not nvidia.is_there:
        told = f"{nvidia.cards} NVIDIA cards are on the PCI bus, and no driver is loaded"
        fix = "install NVIDIA's driver on the host: https://docs.nvidia.com/datacenter/tesla/"
        return Finding("gpus", WARNING, told, fix)
    if not isinstance(torch, Unknown) and torch.cuda:
        return _cuda_build(facts, torch)
    if not nvidia.is_there:
        return Finding("gpus", INFO, "there is no GPU: ranks train on the CPU, with gloo")
    if isinstance(torch, Unknown):
        told = _names(nvidia.gpus) if not isinstance(nvidia.gpus, Unknown) else nvidia.gpus.reason
        severity = UNKNOWN if isinstance(nvidia.gpus, Unknown) else OK
        return Finding("gpus", severity, told)
    told = "this PyTorch is built for the CPU and uses no GPU"
    return Finding("gpus", INFO, told, "take an image of a variant with CUDA")


def _cuda_build(facts: Facts, torch: Torch) -> Finding:
    nvidia = facts.nvidia
    if not nvidia.nodes:
        told = "this PyTorch is built for CUDA, and no NVIDIA driver is here"
        if nvidia.module:
            told = f"the host has driver {nvidia.module}, and this container was given no GPU"
        return Finding("gpus", WARNING, f"{told}: ranks train on the CPU", GIVE)
    hidden = facts.settings.get("CUDA_VISIBLE_DEVICES")
    if torch.gpus == 0 and hidden is not None and hidden.value.strip() in HIDING:
        return Finding("gpus", INFO, "CUDA_VISIBLE_DEVICES hides every GPU from PyTorch")
    if torch.gpus == 0:
        told = f"there are {', '.join(nvidia.nodes)}, and PyTorch sees no GPU"
        return Finding("gpus", ERROR, told, "see the findings driver, cuda-start and gpu-choice")
    if isinstance(nvidia.gpus, Unknown):
        return Finding("gpus", OK, f"PyTorch sees {torch.gpus} GPU")
    remarks = []
    if torch.gpus < nvidia.count:
        told = f"PyTorch sees {torch.gpus} of {_names(nvidia.gpus)}"
        remarks.append(Remark(INFO, told, "CUDA_VISIBLE_DEVICES chooses them"))
    if len({gpu.name for gpu in nvidia.gpus}) > 1:
        remarks.append(Remark(INFO, f"{_names(nvidia.gpus)}: the slowest sets the pace"))
    return join("gpus", remarks, _names(nvidia.gpus))


def _names(gpus: tuple[Gpu, ...]) -> str:
    names = [gpu.name for gpu in gpus]
    return ", ".join(f"{names.count(name)} x {name}" for name in dict.fromkeys(names)) or "0 GPU"


def has_code_for(architectures: tuple[str, ...], capability: tuple[int, int]) -> bool:
    """Tell whether a build with this code runs on a GPU of that compute capability.

    CUDA C++ Programming Guide, "Binary Compatibility" and "PTX
    Compatibility": sm_XY runs on X.Z with Z >= Y, compute_XY is compiled for
    anything from X.Y on, and a letter (sm_90a) binds to that very one, or
    with f to its family.
    """
    for name in architectures:
        found = re.fullmatch(r"(sm|compute)_(\d+)(\d)([af]?)", name)
        if not found:
            continue
        built = (int(found[2]), int(found[3]))
        if found[4] == "a" and built != capability:
            continue
        is_binary = found[1] == "sm" or found[4] == "f"
        if capability >= built and (not is_binary or capability[0] == built[0]):
            return True
    return False


def judge_architecture(facts: Facts) -> Finding:
    """Ask whether PyTorch has code for every GPU."""
    torch, gpus, check = facts.torch, facts.nvidia.gpus, "gpu-architecture"
    if not facts.nvidia.is_there:
        return Finding(check, INFO, "no NVIDIA driver can be seen from here")
    if isinstance(torch, Unknown) or torch.cuda is None:
        return Finding(check, INFO, "there is no PyTorch with CUDA here")
    if isinstance(gpus, Unknown):
        return Finding(check, UNKNOWN, gpus.reason)
    if not torch.architectures:  # some versions tell them only where CUDA starts
        told = "this PyTorch doesn't tell what it has code for; see driver and cuda-start"
        return Finding(check, UNKNOWN, told)
    names = " ".join(torch.architectures)
    remarks = [
        Remark(
            ERROR,
            f"GPU {gpu.index}, {gpu.name}, is sm_{gpu.capability[0]}{gpu.capability[1]}, and "
            f"this PyTorch has code for {names}",
            "take an image whose CUDA and PyTorch know this GPU",
        )
        for gpu in gpus
        if not has_code_for(torch.architectures, gpu.capability)
    ]
    return join(check, remarks, f"there is code for every GPU: {names}")


def judge_clocks(facts: Facts) -> Finding:
    """Ask what keeps the clocks of the GPUs down now (NVML)."""
    gpus = facts.nvidia.gpus
    if not facts.nvidia.is_there:
        return Finding("clocks", INFO, "no NVIDIA driver can be seen from here")
    if isinstance(gpus, Unknown):
        return Finding("clocks", UNKNOWN, gpus.reason)
    remarks = [remark for gpu in gpus for remark in _slow(gpu)]
    return join("clocks", remarks, "nothing keeps the clocks down")


def _slow(gpu: Gpu) -> Iterator[Remark]:
    told = f"GPU {gpu.index}"
    if isinstance(gpu.slowdowns, Unknown):
        yield Remark(UNKNOWN, f"{told}: {gpu.slowdowns.reason}")
    elif gpu.slowdowns:
        is_capped = gpu.slowdowns == (POWER_LIMIT,)  # as every busy GPU is
        text = f"{told}: {', '.join(gpu.slowdowns)}"
        yield Remark(INFO, text) if is_capped else Remark(WARNING, text, COOL)
    if isinstance(gpu.clocks, Unknown):
        yield Remark(UNKNOWN, f"{told}: its application clock: {gpu.clocks.reason}")
    elif gpu.clocks is not None and gpu.clocks[0] < gpu.clocks[1]:
        text = f"{told}: its clock is set to {gpu.clocks[0]} MHz, its default is {gpu.clocks[1]}"
        yield Remark(INFO, text, "on the host: sudo nvidia-smi --reset-applications-clocks")


def judge_peers(facts: Facts) -> Finding:
    """Ask whether the GPUs reach each other's memory without the host's."""
    nvidia = facts.nvidia
    if not nvidia.is_there:
        return Finding("peer-access", INFO, "no NVIDIA driver can be seen from here")
    if isinstance(nvidia.severed, Unknown):
        return Finding("peer-access", UNKNOWN, nvidia.severed.reason)
    if nvidia.count < 2:  # noqa: PLR2004 - a pair
        return Finding("peer-access", OK, f"{nvidia.count} GPU: there is no pair")
    if not nvidia.severed:
        return Finding("peer-access", OK, "every pair reaches each other's memory")
    told = f"{'; '.join(nvidia.severed)}: NCCL goes through the host's memory, which is slower"
    if all("the GPU doesn't support it" in line for line in nvidia.severed) or nvidia.is_wsl:
        return Finding("peer-access", INFO, told)
    fix = (
        "look at nvidia-smi topo -m and topo -p2p r; on the host, turn off PCI ACS (in a VM: "
        "pass GPUs and their switch through together)"
    )
    return Finding("peer-access", WARNING, told, fix)
