"""The supervisor: starts the launcher, watches the clock, reports."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ddp.arguments import parse
from ddp.errors import BAD_ARGUMENTS, DONE, FAILED, Refused
from ddp.journal import journal_file, read_journal
from ddp.plan import Plan
from ddp.processes import Ending, module_argv, supervise
from ddp.report import Report, render_json, render_table, report_ranks, report_unfit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType


def main(argv: Sequence[str]) -> int:
    """Run the check that `argv` asks for; return the exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    try:
        arguments = parse(argv)
        report = check(argv, arguments.timeout)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return BAD_ARGUMENTS
    print(render_json(report) if arguments.as_json else render_table(report))
    return DONE if report.has_passed else FAILED


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)  # as a shell tells of it; on the way out, the ranks are ended


def check(argv: Sequence[str], timeout: float) -> Report:
    """Launch the ranks, wait for them for `timeout` seconds at most, and report.

    Raises `Refused` for arguments that don't fit this machine.
    """
    started = time.monotonic()
    try:
        folder = tempfile.TemporaryDirectory(prefix="ddp-check-")
    except OSError as error:
        reason = f"{error}; give one that can be written: docker run --tmpfs /tmp, or TMPDIR"
        return report_unfit(None, reason, (started, time.monotonic()))
    with folder as name:
        launcher = module_argv("ddp.launcher", name, *argv)
        ending = supervise(launcher, timeout, started)
        return _report(Path(name), ending, started, timeout)


def _report(folder: Path, ending: Ending, started: float, timeout: float) -> Report:
    refused = folder / "refused.json"
    if refused.exists():
        raise Refused(*json.loads(refused.read_text()))
    times = (started, ending.ended_at)
    late = None
    if ending.code is None:
        late = f"the check did not end within {timeout:g} s"
    elif ending.code != 0:
        late = f"the launcher ended with {ending.code}, see its output"
    if ending.left:
        late = f"the kernel could not end processes {', '.join(map(str, ending.left))}"
    if not (folder / "plan.json").exists():
        return report_unfit(None, late or "the launcher left no plan", times)
    plan = Plan.read(folder / "plan.json")
    if plan.unfit is not None:
        return report_unfit(plan, plan.unfit, times)
    states = [read_journal(journal_file(folder, rank), rank) for rank in range(plan.world_size)]
    ends_file = folder / "ends.json"
    ends = json.loads(ends_file.read_text()) if ends_file.exists() else {}
    return report_ranks(plan, states, {int(rank): end for rank, end in ends.items()}, times, late)
