"""The process that holds torchrun's elastic agent: plans, then launches the ranks."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

from torch.distributed.elastic.multiprocessing.api import SignalException
from torch.distributed.elastic.rendezvous import RendezvousError

from ddp.addresses import host_name
from ddp.agent import launch
from ddp.alarm import Alarm
from ddp.arguments import parse
from ddp.errors import Refused
from ddp.exchange import PATIENCE, Exchange, NotJoinedError, unfinished_ranks
from ddp.facts import gather_facts
from ddp.nodes import Hello, disagreement
from ddp.plan import Plan, make_plan
from ddp.ports import with_port


def main(folder_name: str, *argv: str) -> None:
    """Leave `plan.json` and `ends.json` in the folder, or `refused.json`."""
    folder = Path(folder_name)
    machine, facts = gather_facts()
    try:
        plan = with_port(make_plan(parse(argv), machine, facts), os.environ)
    except Refused as refused:
        (folder / "refused.json").write_text(json.dumps(refused.args))
        return
    plan.write(folder / "plan.json")
    if plan.nodes.count > 1:
        _launch_among(plan, folder)
    elif plan.unfit is None:
        _leave_ends(folder, _launch(plan, folder))


def _launch(plan: Plan, folder: Path) -> dict[int, int]:
    return launch(
        "ddp.rank",
        [str(folder)],
        nproc=plan.nproc,
        folder=folder,
        threads=plan.threads,
        port=plan.nodes.port,
        nodes=plan.nodes,
        logs=Path(plan.logs) if plan.logs else None,
    )


def _launch_among(plan: Plan, folder: Path) -> None:
    """Launch our ranks when all nodes are there and agree; leave what all of them tell."""
    hello = Hello(
        node=plan.nodes.rank,
        host=host_name(),
        nproc=plan.nproc,
        is_full=plan.is_full,
        torch=plan.facts["torch"],
        unfit=plan.unfit,
    )
    try:
        exchange = Exchange.join(plan.nodes, hello)
    except NotJoinedError as reason:
        unfit_plan = replace(plan, unfit=str(reason), unfit_phase="rendezvous")
        unfit_plan.write(folder / "plan.json")
        return
    unfit = disagreement(exchange.hellos)
    if unfit is not None:
        replace(plan, unfit=unfit).write(folder / "plan.json")
        exchange.part(range(plan.nodes.count), time.monotonic() + PATIENCE)
        return
    alarm = Alarm(exchange.must_end)
    try:
        with alarm:
            ends = _launch(plan, folder)
    except RendezvousError as lost:
        print(f"the agents have lost each other: {lost}", file=sys.stderr)
        ends = {}
    except SignalException:
        if not alarm.has_rung:
            raise
        ends = unfinished_ranks(folder)  # as the agent tells it of ranks that it ended
    meeting, ends = exchange.finish(folder, ends)
    meeting.write(folder / "meeting.json")
    _leave_ends(folder, ends)


def _leave_ends(folder: Path, ends: dict[int, int]) -> None:
    (folder / "ends.json").write_text(json.dumps(ends))


if __name__ == "__main__":
    main(*sys.argv[1:])
