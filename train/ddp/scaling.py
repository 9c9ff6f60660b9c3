"""Phase: throughput at 1, 2, ... ranks, and what keeps it from growing with them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from ddp.errors import PhaseFailed
from ddp.findings import Finding
from ddp.gradients import device_ids
from ddp.parallel import data_parallel_rate
from ddp.rates import Step, rank_counts, scaling_row
from ddp.starvation import loader_wait_share
from ddp.workload import Workload, make_workload

if TYPE_CHECKING:
    from ddp.context import Context

WARM_STEPS = 2
QUICK_STEPS, FULL_STEPS = 8, 40
SLOWNESS = 0.2  # seconds a step that --inject RANK:slow adds


@dataclass(frozen=True)
class _Group:
    """The ranks 0 to `size` - 1."""

    size: int
    handle: Any


def check_scaling(context: Context) -> Finding:
    """Train the same work on every rank, with ever more ranks, and compare the throughput.

    Efficiency is throughput at N ranks by N times that of one.  The share of
    communication is what steps take longer than those without a reduction: what
    overlaps with computing does not count.
    """
    workload = make_workload(context)
    rows: list[dict[str, Any]] = []
    for size in rank_counts(context.world_size):
        with context.journal.waiting(f"the group of {size} ranks"):
            group = _Group(size, distributed.new_group(list(range(size))))
        steps = _measure(context, workload, group) if context.rank < size else []
        with context.journal.waiting(f"the throughput of {size} ranks"):
            steps = _broadcast(context, steps)
        rows.append(scaling_row(steps, workload.batch, rows[0] if rows else None))
    data: dict[str, Any] = {
        "rows": rows,
        "efficiency": rows[-1]["efficiency"],
        "loader_wait_share": loader_wait_share(context, workload),
        "gpu_utilisation": _utilisation(context, workload),
        "data_parallel": data_parallel_rate(context, workload),
    }
    last = rows[-1]
    return Finding(
        f"{rows[0]['samples_per_s']:.0f} samples/s on 1 rank, {last['samples_per_s']:.0f} on "
        f"{last['ranks']}: efficiency {last['efficiency']:.2f}; communication takes "
        f"{last['communication_share']:.0%} of a step, waiting for data "
        f"{data['loader_wait_share']:.0%}; the slowest rank computes {last['imbalance']:.2f} "
        "times as long as the fastest",
        data,
    )


def _measure(context: Context, workload: Workload, group: _Group) -> list[Step]:
    """Return what a step takes on every rank of the group, in order."""
    with context.journal.waiting("DDP's start"):
        replica = DistributedDataParallel(
            workload.make_model(), process_group=group.handle, **device_ids(context)
        )
    with context.journal.waiting(f"the steps of {group.size} ranks"):
        together = _time(context, workload, replica, group)
        with replica.no_sync():
            alone = _time(context, workload, replica, group)
        mine = torch.tensor([together, alone], dtype=torch.float64, device=context.device)
        all_ranks = [torch.zeros_like(mine) for _ in range(group.size)]
        distributed.all_gather(all_ranks, mine, group=group.handle)
        return [Step(*times.tolist()) for times in all_ranks]


def _time(
    context: Context,
    workload: Workload,
    replica: Any,  # noqa: ANN401 - a module
    group: _Group,
) -> float:
    """Return the seconds of one step."""
    steps = FULL_STEPS if context.is_full else QUICK_STEPS
    for step in range(WARM_STEPS + steps):
        if step == WARM_STEPS:
            workload.finish()
            distributed.barrier(group=group.handle)
            began = time.perf_counter()
        loss = workload.step(replica)
        if context.fault == "slow":
            time.sleep(SLOWNESS)
    value = float(loss.item())
    workload.finish()
    seconds = (time.perf_counter() - began) / steps
    if not math.isfinite(value):
        raise PhaseFailed(f"the loss is {value} after {steps} steps on {group.size} ranks")
    return seconds


def _broadcast(context: Context, steps: list[Step]) -> list[Step]:
    """Return rank 0's: it is in every group."""
    holder = [steps]
    distributed.broadcast_object_list(holder, src=0, device=context.device)
    return holder[0]


def _utilisation(context: Context, workload: Workload) -> dict[str, Any]:
    """Return NVML's utilisation of every rank's GPU, in percent, while all of them compute."""
    if context.device.type != "cuda":
        return {"percent": [], "reason": "there is no GPU"}
    model = workload.make_model()
    for _ in range(FULL_STEPS if context.is_full else QUICK_STEPS):
        workload.step(model)
    reason = None
    try:
        mine = torch.cuda.utilization(context.device)
    except (ImportError, RuntimeError) as error:  # torch's words for: no nvidia-ml-py, no NVML
        mine, reason = -1, str(error)
    workload.finish()
    every = torch.tensor([mine], device=context.device)
    percent = [torch.zeros_like(every) for _ in range(context.world_size)]
    with context.journal.waiting("all_gather of utilisation"):
        distributed.all_gather(percent, every)
        values = [int(one.item()) for one in percent]
    return {"percent": values if reason is None else [], "reason": reason}
