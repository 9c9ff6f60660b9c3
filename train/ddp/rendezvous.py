"""Phase: all ranks form one group, with the planned backend, size and numbers."""

from __future__ import annotations

import os
import socket
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
from torch import distributed

from ddp.errors import PhaseFailed
from ddp.findings import Finding
from ddp.interfaces import VARIABLES, wrong_interface

if TYPE_CHECKING:
    from ddp.context import Context


# Variables that decide how the backends connect; the report has those that are set.
SETTINGS = ("GLOO_", "NCCL_", "TORCH_NCCL_")


def check_rendezvous(context: Context) -> Finding:
    """Join the group; raises `PhaseFailed` where it is not the one that was planned."""
    plan = context.plan
    interface = os.environ.get(VARIABLES[plan.backend], "")
    present = [name for _, name in socket.if_nameindex()]
    wrong = wrong_interface(plan.backend, interface, present)
    if wrong is not None:
        raise PhaseFailed(wrong)
    on_gpu = context.device.type == "cuda"
    if on_gpu:
        # What is used here is deterministic on a CPU anyway, and this takes 2 s.
        torch.use_deterministic_algorithms(mode=True)
        torch.cuda.set_device(context.device)
        context.journal.device(_describe(context.device))
    began = time.monotonic()
    with context.journal.waiting("the other ranks in init_process_group"):
        distributed.init_process_group(
            plan.backend,
            timeout=timedelta(seconds=plan.group_timeout),
            device_id=context.device if on_gpu else None,
        )
    group = (distributed.get_backend(), distributed.get_world_size(), distributed.get_rank())
    planned = (plan.backend, plan.world_size, context.rank)
    if group != planned:
        raise PhaseFailed(f"backend, world size and rank are {group}, expected {planned}")
    settings = {name: value for name, value in os.environ.items() if name.startswith(SETTINGS)}
    seconds = time.monotonic() - began
    over = interface.removeprefix("=") or "an interface of its choice"
    return Finding(
        f"{plan.world_size} ranks, {plan.backend} over {over}",
        {
            "seconds": seconds,
            "address": f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}",
            "settings": settings,
        },
    )


def _describe(device: torch.device) -> dict[str, object]:
    properties = torch.cuda.get_device_properties(device)
    return {
        "index": device.index,
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "memory_bytes": properties.total_memory,
    }
