"""The supervisor: starts the launcher, watches the clock, reports."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ddp.addresses import host_name
from ddp.arguments import Arguments, parse
from ddp.errors import BAD_ARGUMENTS, DONE, FAILED, PhaseFailed, PhaseNotRun, Refused
from ddp.jobs import JobContext
from ddp.journal import journal_file, read_journal
from ddp.nodes import Meeting, place_ranks
from ddp.phases import SPECS, SUPERVISOR, Spec
from ddp.plan import Plan
from ddp.plot import must_be_writable, render_plot
from ddp.processes import Ending, module_argv, supervise
from ddp.report import (
    Report,
    render_json,
    render_table,
    report_ranks,
    report_unfit,
    with_phases,
)
from ddp.thresholds import judge_thresholds
from ddp.verdict import Phase

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import FrameType


def main(argv: Sequence[str]) -> int:
    """Run the check that `argv` asks for; return the exit code."""
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)
    try:
        arguments = parse(argv)
        if arguments.plot is not None:
            must_be_writable(arguments.plot)
        report = check(argv, arguments)
    except Refused as refused:
        print(refused, file=sys.stderr)
        return BAD_ARGUMENTS
    print(render_json(report) if arguments.as_json else render_table(report))
    if arguments.plot is not None:
        _plot(report, arguments.plot)
    return DONE if report.has_passed else FAILED


def _plot(report: Report, file: Path) -> None:
    try:
        file.write_text(render_plot(json.loads(render_json(report))))
    except PhaseNotRun as reason:
        print(f"ddp-check: no plot: {reason}", file=sys.stderr)


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)  # as a shell tells of it; on the way out, the ranks are ended


def check(argv: Sequence[str], arguments: Arguments) -> Report:
    """Launch the ranks, wait for them until the time is up, and report.

    Raises `Refused` for arguments that don't fit this machine.
    """
    started, timeout = time.monotonic(), arguments.timeout
    try:
        folder = tempfile.TemporaryDirectory(prefix="ddp-check-")
    except OSError as error:
        reason = f"{error}; give one that can be written: docker run --tmpfs /tmp, or TMPDIR"
        return report_unfit(None, reason, (started, time.monotonic()))
    with folder as name:
        launcher = module_argv("ddp.launcher", name, *argv)
        ending = supervise(launcher, timeout, started, nodes=arguments.nodes)
        report = _report(Path(name), ending, started, timeout)
        phases = _supervise_phases(report, Path(name), started + timeout)
    judged = judge_thresholds((*report.phases, *phases), arguments.thresholds)
    return with_phases(report, judged, time.monotonic() - started)


def _supervise_phases(report: Report, folder: Path, deadline: float) -> list[Phase]:
    """Run the phases that start ranks of their own, as long as none fails."""
    failed = next((phase.name for phase in report.phases if phase.outcome == "fail"), None)
    phases = []
    for spec in SPECS:
        if spec.where != SUPERVISOR:
            continue
        if failed is not None:
            phases.append(Phase(spec.name, "not run", reason=f"{failed} failed"))
            continue
        job = JobContext(Plan.read(folder / "plan.json"), folder, deadline)
        phases.append(run_phase(spec, job))
        failed = spec.name if phases[-1].outcome == "fail" else None
    return phases


def run_phase(spec: Spec, job: JobContext) -> Phase:
    """Run one phase of the supervisor; return its outcome."""
    began = time.monotonic()
    try:
        finding = spec.run(job)
    except PhaseNotRun as reason:
        return Phase(spec.name, "not run", reason=str(reason))
    except PhaseFailed as reason:
        return Phase(spec.name, "fail", time.monotonic() - began, reason=str(reason))
    except Exception as error:  # noqa: BLE001 - whatever it is, the report must name it
        traceback.print_exc()
        text = f"{type(error).__name__}: {error}"
        return Phase(spec.name, "fail", time.monotonic() - began, reason=text)
    return Phase.passed(spec.name, time.monotonic() - began, finding)


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
    us = {plan.nodes.rank: host_name()}
    if plan.unfit is not None:
        return report_unfit(plan.with_hosts(Meeting(us, {})), plan.unfit, times)
    states = [read_journal(journal_file(folder, rank), rank) for rank in range(plan.world_size)]
    ends_file, meeting_file = folder / "ends.json", folder / "meeting.json"
    ends = json.loads(ends_file.read_text()) if ends_file.exists() else {}
    if meeting_file.exists():
        meeting = Meeting.read(meeting_file)
        states = place_ranks(states, meeting)
    else:
        if plan.nodes.count > 1:  # the others' journals have not come: judge ours alone
            states = [state for state in states if journal_file(folder, state.rank).exists()]
        meeting = Meeting(us, {plan.nodes.rank: [state.rank for state in states]})
    codes = {int(rank): end for rank, end in ends.items()}
    return report_ranks(plan.with_hosts(meeting), states, codes, times, late)
