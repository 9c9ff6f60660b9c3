"""One rank: joins the group and runs the phases, noting each step in its journal."""

from __future__ import annotations

import os
import sys
import time
import traceback
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import distributed

from ddp.collectives import check_collectives
from ddp.context import Context
from ddp.errors import PhaseFailed
from ddp.gradients import check_gradients
from ddp.journal import Journal, journal_file
from ddp.plan import Plan
from ddp.training import check_training
from ddp.verdict import RANK_PHASES

if TYPE_CHECKING:
    from collections.abc import Callable

CHECKS: dict[str, Callable[[Context], str]] = {
    "collectives": check_collectives,
    "gradients": check_gradients,
    "training": check_training,
}


def run_phases(plan: Plan, journal: Journal, rank: int, local_rank: int) -> None:
    """Run every phase in order; raises what the first failing one raises."""
    fault = plan.inject.fault if plan.inject is not None and plan.inject.rank == rank else None
    device = torch.device("cuda", local_rank) if plan.backend == "nccl" else torch.device("cpu")
    context = Context(rank, plan.world_size, device, journal, fault)
    for phase in RANK_PHASES:
        journal.begins(phase)
        detail = _join(plan, context) if phase == "rendezvous" else CHECKS[phase](context)
        journal.passed(phase, detail)
    with journal.waiting("the end of all ranks"):
        distributed.destroy_process_group()


def _join(plan: Plan, context: Context) -> str:
    on_gpu = context.device.type == "cuda"
    if on_gpu:
        # What is used here is deterministic on a CPU anyway, and this takes 2 s.
        torch.use_deterministic_algorithms(mode=True)
        torch.cuda.set_device(context.device)
        context.journal.device(_describe(context.device))
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
    return f"{plan.world_size} ranks, {plan.backend}"


def _describe(device: torch.device) -> dict[str, object]:
    properties = torch.cuda.get_device_properties(device)
    return {
        "index": device.index,
        "name": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "memory_bytes": properties.total_memory,
    }


def main(folder_name: str) -> None:
    """Run the rank that torchrun's environment names, by the plan in the folder."""
    folder = Path(folder_name)
    plan = Plan.read(folder / "plan.json")
    rank = int(os.environ["RANK"])
    journal = Journal(journal_file(folder, rank))
    try:
        run_phases(plan, journal, rank, int(os.environ["LOCAL_RANK"]))
    except Exception as error:  # noqa: BLE001 - whatever it is, the report must name it
        _give_up(journal, rank, error)
    journal.done()
    _leave(0)


def _leave(code: int) -> None:
    """End this process without taking Python down.

    A thread of gloo's may still run when its group is destroyed, and then ends
    the interpreter's own end in SIGABRT ("terminate called without an active
    exception", seen with torch 2.13 on a loaded machine); a group with a lost
    rank may hang there.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _give_up(journal: Journal, rank: int, error: Exception) -> None:
    if isinstance(error, PhaseFailed):
        journal.failed(str(error))
    else:
        lines = str(error).splitlines() or [""]
        journal.failed(f"{type(error).__name__}: {lines[0]}")
        print(f"rank {rank}:", file=sys.stderr)
        traceback.print_exc()
    if journal.is_waiting:
        # The cause is probably another rank: let the agent see that one first.
        time.sleep(1)
    _leave(1)


if __name__ == "__main__":
    main(*sys.argv[1:])
