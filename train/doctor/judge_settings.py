"""Judges variables that were once set for a reason and forgotten.  Pure.

Sources: NCCL's documentation, "Environment Variables" (those of its section
"Debugging" are not to be kept); PyTorch's, "ProcessGroupNCCL Environment
Variables", since 2.2 with the prefix TORCH_.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from doctor.findings import ERROR, INFO, WARNING, Finding, Remark, join

if TYPE_CHECKING:
    from doctor.facts import Facts, Setting

LEVELS = ("VERSION", "WARN", "INFO", "ABORT", "TRACE")
LOUD = ("INFO", "TRACE")
RENAMED = (
    "NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_BLOCKING_WAIT",
    "NCCL_DESYNC_DEBUG",
    "NCCL_ENABLE_TIMING",
)
PINNING = ("NCCL_ALGO", "NCCL_PROTO")
HIDING = ("", "-1")
NONE_VISIBLE = ("void", "none")
UUID = re.compile(r"(GPU|MIG)-.+")


def _is_on(setting: Setting | None) -> bool:
    return setting is not None and setting.value.strip() not in ("", "0")


def _told(name: str, setting: Setting) -> str:
    return f"{name}={setting.value} ({setting.source})"


def judge_transports(facts: Facts) -> Finding:
    """Find the transports between the GPUs of a host that are turned off."""
    settings = facts.settings
    reasons = {
        "NCCL_P2P_DISABLE": "GPUs don't reach each other's memory",
        "NCCL_SHM_DISABLE": "ranks of a host talk over the network",
    }
    remarks = [
        Remark(WARNING, f"{_told(name, settings[name])}: {why}", f"unset {name}")
        for name, why in reasons.items()
        if _is_on(settings.get(name))
    ]
    level = settings.get("NCCL_P2P_LEVEL")
    if level is not None and level.value in ("LOC", "0"):
        told = f"{_told('NCCL_P2P_LEVEL', level)}: the same as NCCL_P2P_DISABLE=1"
        remarks.append(Remark(WARNING, told, "unset NCCL_P2P_LEVEL"))
    return join("transports", remarks, "none is turned off")


def judge_debugging(facts: Facts) -> Finding:
    """Find settings for debugging that cost speed, or that can't work."""
    settings = facts.settings
    remarks = []
    level = settings.get("NCCL_DEBUG")
    if level is not None and level.value.upper() not in LEVELS:
        told = f"{_told('NCCL_DEBUG', level)} is no level"
        remarks.append(Remark(WARNING, told, f"one of {', '.join(LEVELS)}, or unset NCCL_DEBUG"))
    elif level is not None and level.value.upper() in LOUD:
        told = f"{_told('NCCL_DEBUG', level)}: every rank writes much"
        remarks.append(Remark(INFO, told, "unset NCCL_DEBUG once it has served"))
    for name, why in facts.blocked.items():
        fix = f"name a file in a folder that is there and writable, or unset {name}"
        remarks.append(Remark(WARNING, f"{name}: {why}", fix))
    log = settings.get("NCCL_DEBUG_FILE")
    if log is not None and "%p" not in log.value:
        told = f"{_told('NCCL_DEBUG_FILE', log)}: ranks write over each other's lines"
        remarks.append(Remark(INFO, told, "put %h.%p into the name, for host and process"))
    blocking = settings.get("CUDA_LAUNCH_BLOCKING")
    if blocking is not None and _is_on(blocking):
        told = f"{_told('CUDA_LAUNCH_BLOCKING', blocking)}: kernels wait for each other"
        remarks.append(Remark(WARNING, told, "unset CUDA_LAUNCH_BLOCKING"))
    detail = settings.get("TORCH_DISTRIBUTED_DEBUG")
    if detail is not None and detail.value.upper() == "DETAIL":
        told = f"{_told('TORCH_DISTRIBUTED_DEBUG', detail)}: every collective is checked first"
        remarks.append(Remark(WARNING, told, "unset TORCH_DISTRIBUTED_DEBUG"))
    for name in PINNING:
        if name in settings:
            told = f"{_told(name, settings[name])}: NCCL would choose by size and topology"
            remarks.append(Remark(INFO, told, f"unset {name} once it has served"))
    return join("debugging", remarks, "nothing is left on")


def judge_renamed(facts: Facts) -> Finding:
    """Find PyTorch's variables by their old names, which only some versions still read."""
    remarks = []
    for name in RENAMED:
        setting = facts.settings.get(name)
        if setting is None:
            continue
        new = facts.settings.get(f"TORCH_{name}")
        if new is None:
            fix = f"rename it: TORCH_{name}={setting.value}"
            told = f"{_told(name, setting)} is TORCH_{name} since PyTorch 2.2"
            remarks.append(Remark(WARNING, told, fix))
        elif new.value != setting.value:
            told = f"{_told(name, setting)} and {_told(f'TORCH_{name}', new)} contradict each other"
            remarks.append(Remark(WARNING, told, f"unset {name}"))
    return join("renamed-settings", remarks, "none is set by its old name")


def judge_choice(facts: Facts) -> Finding:
    """Ask whether the GPUs that are chosen exist."""
    remarks = []
    chosen = facts.settings.get("CUDA_VISIBLE_DEVICES")
    count = facts.nvidia.count
    if chosen is not None and count and chosen.value.strip() not in HIDING:
        words = [word.strip() for word in chosen.value.split(",")]
        wrong = [word for word in words if not _names_gpu(word, count)]
        if wrong:
            told = (
                f"{_told('CUDA_VISIBLE_DEVICES', chosen)}: {', '.join(wrong)} is none of 0 to "
                f"{count - 1}; CUDA drops it and all after it"
            )
            remarks.append(Remark(ERROR, told, "unset CUDA_VISIBLE_DEVICES, or name those here"))
    given = facts.settings.get("NVIDIA_VISIBLE_DEVICES")
    if given is not None and given.value in NONE_VISIBLE and not facts.nvidia.nodes:
        told = f"{_told('NVIDIA_VISIBLE_DEVICES', given)}: the container gets no GPU"
        remarks.append(Remark(INFO, told, "docker run --gpus all, without that variable"))
    return join("gpu-choice", remarks, "no choice of GPUs names one that is not there")


def _names_gpu(word: str, count: int) -> bool:
    return bool(UUID.fullmatch(word)) or (word.isdecimal() and int(word) < count)
