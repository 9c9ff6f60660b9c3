"""Phase: throughput at 1, 2, ... ranks, and what keeps it from growing with them."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
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
# Few enough for the ranks that are not in a group to wait for it.
QUICK_STEPS, FULL_STEPS = 8, 20
# NVML's utilisation is that of the last sixth of a second to second.
UTILISATION_TIME = 1.0
UNKNOWN = -1
SLOWNESS = 4  # how many times its own time --inject RANK:slow adds to a step


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
            # Without a timeout of its own it would have the backend's, of minutes.
            limit = timedelta(seconds=context.plan.group_timeout)
            group = _Group(size, distributed.new_group(list(range(size)), timeout=limit))
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
        distributed.barrier(group=group.handle)
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
    """Return the seconds of a step: the median, as a busy host disturbs some of them."""
    seconds = []
    for _ in range(WARM_STEPS + (FULL_STEPS if context.is_full else QUICK_STEPS)):
        workload.finish()
        began = time.perf_counter()
        loss = float(workload.step(replica).item())
        if context.fault == "slow":
            time.sleep(SLOWNESS * (time.perf_counter() - began))
        seconds.append(time.perf_counter() - began)
        if not math.isfinite(loss):
            raise PhaseFailed(f"the loss of a step is {loss} on {group.size} ranks")
    return median(seconds[WARM_STEPS:])


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
    until = time.perf_counter() + UTILISATION_TIME
    while time.perf_counter() < until:
        workload.step(model)
        workload.finish()
    mine, reason = UNKNOWN, None
    try:
        mine = torch.cuda.utilization(context.device)
    except Exception as error:  # noqa: BLE001 - NVML's errors are of a package that may be absent
        reason = f"{type(error).__name__}: {error}"
    every = torch.tensor([mine], device=context.device)
    percent = [torch.zeros_like(every) for _ in range(context.world_size)]
    with context.journal.waiting("all_gather of utilisation"):
        distributed.all_gather(percent, every)
        values = [int(one.item()) for one in percent]
    if UNKNOWN in values:
        told = reason or f"rank {values.index(UNKNOWN)} could not ask NVML"
        return {"percent": [], "reason": told}
    return {"percent": values, "reason": None}
