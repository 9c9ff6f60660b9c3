"""Phase: shared memory enough for the data loaders' workers, before it is a bus error."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed
from torch.utils.data import DataLoader, Dataset

from ddp.errors import PhaseFailed
from ddp.findings import Finding
from ddp.shared_memory import (
    BATCH,
    DOCKER_DEFAULT,
    FOLDER,
    PREFETCH,
    SHAPE,
    WORKERS,
    Need,
    judge_shared_memory,
)

if TYPE_CHECKING:
    from ddp.context import Context

BATCHES = WORKERS * PREFETCH


class _Images(Dataset):  # type: ignore[misc]  # torch is not typed here
    def __len__(self) -> int:
        return BATCH * BATCHES

    def __getitem__(self, index: int) -> Any:  # noqa: ANN401 - a tensor
        return torch.full(SHAPE, float(index))


def check_memory(context: Context) -> Finding:
    """Ask what is free in /dev/shm; where it is enough, fill it by real workers of all ranks.

    Raises `PhaseFailed` with the size and the remedy where it is not enough.
    """
    need = Need(context.plan.nproc)
    free = DOCKER_DEFAULT if context.fault == "small-shm" else free_shared_memory()
    judge_shared_memory(free, need)
    with context.journal.waiting("the other ranks before workers start"):
        distributed.barrier()
    try:
        for number, images in enumerate(DataLoader(_Images(), BATCH, num_workers=WORKERS)):
            first = images[:, 0, 0, 0].tolist()
            if first != [float(number * BATCH + place) for place in range(BATCH)]:
                raise PhaseFailed(f"batch {number} is not what the workers have made: {first}")
    except RuntimeError as error:
        lines = str(error).splitlines() or [""]
        raise PhaseFailed(f"a worker of the data loader failed: {lines[0]}") from error
    data: dict[str, Any] = {
        "shared_memory_free_bytes": free,
        "shared_memory_needed_bytes": need.bytes,
        "memory_limit_bytes": context.plan.facts["limits"]["memory"],
    }
    if context.device.type == "cuda":
        data["gpu_free_bytes"], data["gpu_bytes"] = torch.cuda.mem_get_info(context.device)
    mebibytes, megabytes = 1 << 20, need.batch_bytes / 1e6
    return Finding(
        f"{BATCHES} batches of {megabytes:.0f} MB by {WORKERS} workers a rank; {FOLDER} "
        f"has {free // mebibytes} MiB free, {need.bytes // mebibytes} MiB are needed",
        data,
    )


def free_shared_memory() -> int:
    """Return the bytes free in /dev/shm; raises `PhaseFailed` where there is none."""
    try:
        status = os.statvfs(FOLDER)
    except OSError as error:
        reason = f"there is no {FOLDER} for the workers of data loaders: {error}"
        raise PhaseFailed(reason) from error
    return status.f_bavail * status.f_frsize
