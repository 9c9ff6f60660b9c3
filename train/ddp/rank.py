"""One rank: joins the group and runs the phases, noting each step in its journal."""

from __future__ import annotations

import os
import sys
import time
import traceback
from pathlib import Path

import torch
from torch import distributed

from ddp.context import Context
from ddp.errors import PhaseFailed, PhaseNotRun
from ddp.journal import Journal, journal_file
from ddp.phases import RANK_PHASES, find_spec
from ddp.plan import Plan


def run_phases(context: Context) -> None:
    """Run every phase in order; raises what the first failing one raises."""
    for phase in RANK_PHASES:
        context.journal.begins(phase)
        try:
            finding = find_spec(phase).run(context)
        except PhaseNotRun as reason:
            context.journal.not_run(phase, str(reason))
        else:
            context.journal.passed(phase, finding)
    with context.journal.waiting("the end of all ranks"):
        distributed.destroy_process_group()


def make_context(plan: Plan, folder: Path, rank: int, local_rank: int) -> Context:
    """Return this rank's place; its journal must not exist yet."""
    fault = plan.inject.fault if plan.inject is not None and plan.inject.rank == rank else None
    device = torch.device("cuda", local_rank) if plan.backend == "nccl" else torch.device("cpu")
    journal = Journal(journal_file(folder, rank))
    return Context(rank, local_rank, plan, device, journal, folder, fault)


def main(folder_name: str) -> None:
    """Run the rank that torchrun's environment names, by the plan in the folder."""
    folder = Path(folder_name)
    plan = Plan.read(folder / "plan.json")
    rank = int(os.environ["RANK"])
    context = make_context(plan, folder, rank, int(os.environ["LOCAL_RANK"]))
    try:
        run_phases(context)
    except Exception as error:  # noqa: BLE001 - whatever it is, the report must name it
        _give_up(context.journal, rank, error)
    context.journal.done()
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
