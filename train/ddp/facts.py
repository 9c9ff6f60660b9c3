"""Phase: what torch, the driver and the kernel say, and whether the manifest agrees.

It runs in the launcher: the plan is made from it.
"""

from __future__ import annotations

import platform
from dataclasses import fields
from typing import Any

import torch
from torch import distributed

from ddp.links import look_at_links
from ddp.manifest import look_at_manifest
from ddp.plan import Machine
from doctor.facts import Unknown
from doctor.probe_limits import probe_limits


def gather_facts() -> tuple[Machine, dict[str, Any]]:
    """Return what decides the plan, and all facts for the report (docs/ddp-check.md)."""
    has_nccl = distributed.is_available() and distributed.is_nccl_available()
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    limits = probe_limits()
    manifest = look_at_manifest()
    machine = Machine(
        gpus=gpus,
        cores=limits.cores,
        has_nccl=has_nccl,
        has_gloo=distributed.is_available() and distributed.is_gloo_available(),
        disagreements=tuple(manifest["disagreements"]),
    )
    facts = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if torch.version.cuda else None,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if has_nccl else None,
        "gpus": gpus,
        "peer_access": _peer_access(gpus),
        "nvml": look_at_links([_uuid(index) for index in range(gpus)]),
        "limits": {each.name: _known(getattr(limits, each.name)) for each in fields(limits)},
        "manifest": manifest,
    }
    return machine, facts


def _peer_access(gpus: int) -> list[list[bool]]:
    """Return row by row whether GPU i can read GPU j's memory directly; itself it can."""
    return [
        [i == j or torch.cuda.can_device_access_peer(i, j) for j in range(gpus)]
        for i in range(gpus)
    ]


def _uuid(index: int) -> str | None:
    # NVML counts all GPUs, torch those that CUDA_VISIBLE_DEVICES shows: the UUID is both's.
    uuid = getattr(torch.cuda.get_device_properties(index), "uuid", None)
    return None if uuid is None else f"GPU-{uuid}"


def _known(value: Any) -> Any:  # noqa: ANN401 - a count, a path, or why it is unknown
    return {"unknown": value.reason} if isinstance(value, Unknown) else value
