"""DataParallel, one process with a thread a GPU, beside DDP."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parallel import DataParallel

if TYPE_CHECKING:
    from ddp.context import Context
    from ddp.workload import Workload

WARM_STEPS, STEPS = 3, 20
POLL = 0.05
# Seconds that the others wait: rank 0 first opens a context and a communicator on every
# GPU.  No collective waits meanwhile, so this may be longer than the group's timeout.
PATIENCE = 60.0


def data_parallel_rate(context: Context, workload: Workload) -> dict[str, Any]:
    """Return the samples a second of DataParallel over all ranks' GPUs, as DDP had them.

    Rank 0 measures it while the others wait for a file: a collective's kernel
    would wait on the very GPUs that are measured.
    """
    if context.device.type != "cuda":
        return {"samples_per_s": None, "reason": "there is no GPU"}
    if context.plan.nodes.count > 1 or context.world_size == 1:
        return {"samples_per_s": None, "reason": "it needs several GPUs of one host"}
    if not context.is_full:
        return {"samples_per_s": None, "reason": "only with --full"}
    done = context.folder / "data-parallel-done"
    rate = None
    if context.rank == 0:
        rate = _rate(context, workload)
        done.touch()
    with context.journal.waiting("DataParallel's steps on rank 0"):
        deadline = time.monotonic() + PATIENCE
        while not done.exists():
            if time.monotonic() > deadline:
                raise TimeoutError("DataParallel's steps on rank 0 did not end")
            time.sleep(POLL)
    return {"samples_per_s": rate, "reason": None}


def _rate(context: Context, workload: Workload) -> float:
    ranks = context.world_size
    everything = replace(workload, tokens=workload.tokens.repeat(ranks, 1))
    model = DataParallel(workload.make_model(), device_ids=list(range(ranks)))
    for step in range(WARM_STEPS + STEPS):
        if step == WARM_STEPS:
            torch.cuda.synchronize(context.device)
            began = time.perf_counter()
        everything.step(model)
    torch.cuda.synchronize(context.device)
    return STEPS * ranks * workload.batch / (time.perf_counter() - began)
