"""Judges the NVIDIA driver against the CUDA that PyTorch is built with.  Pure.

Source of the rules: NVIDIA, "CUDA Compatibility", docs.nvidia.com/deploy/
cuda-compatibility, chapters "Minor Version Compatibility" (table 1) and
"Forward Compatibility"; the exact minimum versions are those of the CUDA
Toolkit's release notes, table "CUDA Toolkit and Minimum Required Driver
Version for CUDA Minor Version Compatibility".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from doctor.facts import CONTAINER, Unknown
from doctor.findings import ERROR, INFO, OK, UNKNOWN, WARNING, Finding

if TYPE_CHECKING:
    from doctor.facts import Facts, Nvidia

OLDEST_DRIVER = {11: (450, 80, 2), 12: (525, 60, 13), 13: (580,)}
# Under WSL the driver is that of Windows, which counts in its own way.
OLDEST_WINDOWS_DRIVER = {11: (452, 39), 12: (528, 33), 13: (580,)}
# Forward compatibility is for data-centre GPUs, and for few RTX cards that
# NVIDIA doesn't list by name: those count as not supported.
DATA_CENTRE = re.compile(
    r"\b(P4|P40|P100|V100S?|T4G?|A2|A10G?|A16|A30|A40|A100|A800|L4|L20|L40S?"
    r"|H20|H100|H200|H800|GH200|B100|B200|B300|GB200|GB300)\b"
)
TOOLKIT = "https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/"
# CUresult of the CUDA driver API, cuda.h.
START_CODES = {
    34: ("it is the stub library of the toolkit", "take the folder `stubs` off LD_LIBRARY_PATH"),
    46: ("a GPU is in use exclusively", "nvidia-smi --query-compute-apps=pid,name --format=csv"),
    100: ("it sees no GPU", "docker run --gpus all; look at CUDA_VISIBLE_DEVICES"),
    802: (
        "the system is not ready: on machines with NVSwitch the fabric manager must run",
        "sudo systemctl start nvidia-fabricmanager, of the driver's very version",
    ),
    803: (
        "libcuda and the kernel module are of different versions: the driver was upgraded",
        "restart the host (or reload the nvidia modules), then the container",
    ),
    804: (
        "forward compatibility was tried on a GPU that doesn't support it",
        "take the compat folder off LD_LIBRARY_PATH, and upgrade the host's driver",
    ),
    999: (
        "unknown error: often the module nvidia_uvm is not loaded",
        "sudo modprobe nvidia_uvm; sudo dmesg | grep -i -e nvrm -e xid",
    ),
}


def version_tuple(text: str) -> tuple[int, ...]:
    """Return "525.60.13" as (525, 60, 13)."""
    return tuple(int(part) for part in re.findall(r"\d+", text))


def can_go_forward(name: str) -> bool:
    """Tell whether NVIDIA supports forward compatibility on a GPU of this name."""
    return bool(DATA_CENTRE.search(name))


def oldest(nvidia: Nvidia) -> dict[int, tuple[int, ...]]:
    """Return the oldest driver that runs a CUDA major, by the major."""
    return OLDEST_WINDOWS_DRIVER if nvidia.is_wsl else OLDEST_DRIVER


def newest_major(nvidia: Nvidia) -> int:
    """Return the newest CUDA major whose images this driver runs, 0 for none."""
    version = version_tuple(nvidia.version)
    return max((major for major, least in oldest(nvidia).items() if version >= least), default=0)


def judge_driver(facts: Facts) -> Finding:
    """Compare the driver with PyTorch's CUDA, as compatibility really works.

    A driver runs every older CUDA (backward), every newer minor version of
    its own major from a minimum on (minor-version compatibility), and a newer
    major only with the cuda-compat package on data-centre GPUs (forward).
    """
    nvidia, torch = facts.nvidia, facts.torch
    if not nvidia.is_there:
        return Finding("driver", INFO, "no NVIDIA driver can be seen from here")
    if isinstance(torch, Unknown):
        return _without_torch(nvidia, torch)
    if torch.cuda is None:
        return Finding("driver", INFO, f"{_driver(nvidia)}; this PyTorch is built for the CPU")
    return _compare(facts, torch.cuda)


def _without_torch(nvidia: Nvidia, torch: Unknown) -> Finding:
    if not nvidia.version:
        return Finding("driver", UNKNOWN, f"{_driver(nvidia)}; {torch.reason}")
    major = newest_major(nvidia)
    if not major:
        told = f"{_driver(nvidia)} is too old for CUDA 11, the oldest that images come with"
        return Finding("driver", ERROR, told, _upgrade(nvidia, 11))
    return Finding("driver", OK, f"{_driver(nvidia)} runs images with CUDA {major} and older")


def _compare(facts: Facts, wanted: tuple[int, int]) -> Finding:
    nvidia = facts.nvidia
    name = f"CUDA {wanted[0]}.{wanted[1]}"
    least = oldest(nvidia).get(wanted[0])
    version = version_tuple(nvidia.version)
    if not isinstance(nvidia.cuda, Unknown) and nvidia.cuda >= wanted:
        if version and least and version < least:
            told = f"{_driver(nvidia)} runs {name} by forward compatibility (cuda-compat)"
            return Finding("driver", INFO, told)
        return Finding("driver", OK, f"{_driver(nvidia)} runs {name}")
    if not version or least is None:
        why = "its version is unknown" if least else f"the least driver for {name} is not known"
        return Finding("driver", UNKNOWN, f"{_driver(nvidia)}; {why}")
    if version < least:
        return _too_old(facts, wanted, least)
    return _same_major(nvidia, wanted)


def _same_major(nvidia: Nvidia, wanted: tuple[int, int]) -> Finding:
    """Judge a driver that is new enough for the major, but maybe not for the minor version."""
    told = f"{_driver(nvidia)} runs CUDA {wanted[0]}.{wanted[1]}"
    if isinstance(nvidia.cuda, Unknown):
        if newest_major(nvidia) > wanted[0]:
            return Finding("driver", OK, told)
        return Finding("driver", INFO, f"{told}, at least by minor-version compatibility")
    if nvidia.cuda[0] < wanted[0]:
        # The module is new enough, the library that is loaded is an older one.
        told = f"{_driver(nvidia)}, which is older than the driver: another libcuda is in use"
        fix = "take folders with an older libcuda.so.1 (cuda-compat) off LD_LIBRARY_PATH"
        return Finding("driver", ERROR, told, fix)
    why = "kernels that come only as PTX of the newer CUDA can't be compiled"
    return Finding("driver", INFO, f"{told} by minor-version compatibility: {why}")


def _too_old(facts: Facts, wanted: tuple[int, int], least: tuple[int, ...]) -> Finding:
    nvidia = facts.nvidia
    need = ".".join(f"{part:02}" for part in least)
    told = f"{_driver(nvidia)}; PyTorch's CUDA {wanted[0]}.{wanted[1]} needs {need} or newer"
    fix = f"{_upgrade(nvidia, wanted[0])}, or use an image with an older CUDA"
    gpus = () if isinstance(nvidia.gpus, Unknown) else nvidia.gpus
    if gpus and all(can_go_forward(gpu.name) for gpu in gpus) and not nvidia.is_wsl:
        package = f"cuda-compat-{wanted[0]}-{wanted[1]}"
        fix += (
            f"; or, on these GPUs, put NVIDIA's package {package} into the image and its folder "
            f"first on LD_LIBRARY_PATH (/usr/local/cuda-{wanted[0]}.{wanted[1]}/compat), if "
            "its table of base drivers has this one"
        )
    return Finding("driver", ERROR, told, fix)


def _driver(nvidia: Nvidia) -> str:
    where = " (of Windows)" if nvidia.is_wsl else ""
    version = f"driver {nvidia.version}{where}" if nvidia.version else f"an NVIDIA driver{where}"
    if isinstance(nvidia.cuda, Unknown):
        return version
    return f"{version} with CUDA {nvidia.cuda[0]}.{nvidia.cuda[1]}"


def _upgrade(nvidia: Nvidia, major: int) -> str:
    if nvidia.is_wsl:
        return "upgrade the NVIDIA driver in Windows (install none inside WSL)"
    return f"upgrade the host's NVIDIA driver to branch {OLDEST_DRIVER[major][0]} or newer"


def judge_start(facts: Facts) -> Finding:
    """Ask whether the CUDA driver starts (cuInit)."""
    nvidia = facts.nvidia
    if isinstance(nvidia.start, Unknown):
        if not nvidia.is_there:
            return Finding("cuda-start", INFO, "no NVIDIA driver can be seen from here")
        if facts.scope == CONTAINER and nvidia.nodes:
            fix = f"docker run --gpus all -e NVIDIA_DRIVER_CAPABILITIES=compute,utility ({TOOLKIT})"
            told = f"the container has {', '.join(nvidia.nodes)}, but no libcuda"
            return Finding("cuda-start", ERROR, f"{told}: {nvidia.start.reason}", fix)
        return Finding("cuda-start", UNKNOWN, nvidia.start.reason)
    if nvidia.start == 0:
        return Finding("cuda-start", OK, "cuInit succeeds")
    why, fix = START_CODES.get(
        nvidia.start, ("see CUresult in CUDA's driver API", "sudo dmesg | grep -i -e nvrm -e xid")
    )
    severity = WARNING if not nvidia.nodes else ERROR
    return Finding("cuda-start", severity, f"cuInit returns {nvidia.start}: {why}", fix)
