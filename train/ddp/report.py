"""What the check says: one frozen value, as a table for people or as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ddp.phases import RANK_PHASES, find_spec
from ddp.verdict import Blame, Phase, judge_ranks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddp.journal import RankState
    from ddp.plan import Plan

MANIFEST_TEXTS = {
    True: "packages as in the manifest",
    False: "packages not as in the manifest",
    None: "no manifest to compare with",
}
SCHEMA = "strata.ddp-check/2"


@dataclass(frozen=True)
class Report:
    """The whole check; `failed_rank` is the rank to blame, where one stands out."""

    schema: str
    verdict: str
    mode: str
    label: str | None
    world_size: int | None
    backend: str | None
    seconds: float
    failed_rank: int | None
    phases: tuple[Phase, ...]
    facts: dict[str, Any]

    @property
    def has_passed(self) -> bool:
        """Whether no phase has failed, and every required one has passed."""
        return self.verdict == "pass"


def report_ranks(
    plan: Plan,
    states: Sequence[RankState],
    ends: Mapping[int, int],
    times: tuple[float, float],
    late: str | None,
) -> Report:
    """Report on ranks that ran; `times` are start and end of the ranks in seconds.

    The phases that the supervisor runs are not in it: see `with_phases`.
    """
    started, ended_at = times
    phases, blame = judge_ranks(states, ends, ended_at, late, plan.group_timeout)
    began = [began for state in states for began in state.began.values()]
    devices = [state.device for state in states if state.device is not None]
    facts = Phase("facts", "pass", min([*began, ended_at]) - started, _facts_line(plan))
    return _report(plan, {**plan.facts, "devices": devices}, (facts, *phases), blame, times)


def report_unfit(plan: Plan | None, reason: str, times: tuple[float, float]) -> Report:
    """Report that no rank could be started, and why."""
    seconds = times[1] - times[0]
    line = _facts_line(plan) if plan else None
    at_fault = plan.unfit_phase if plan else "facts"
    phases = [Phase("facts", "pass", seconds, line)] if at_fault != "facts" else []
    phases.append(Phase(at_fault, "fail", seconds, None if phases else line, reason))
    phases += [
        Phase(name, "not run", reason=f"{at_fault} failed")
        for name in RANK_PHASES
        if name != at_fault
    ]
    values = {**plan.facts, "devices": []} if plan else {}
    return _report(plan, values, tuple(phases), None, times)


def with_phases(report: Report, phases: Sequence[Phase], seconds: float) -> Report:
    """Return the report with these phases; `seconds` is the time of the whole check."""
    return replace(
        report,
        verdict=_verdict(phases, report.mode),
        phases=tuple(phases),
        seconds=seconds,
    )


def _report(
    plan: Plan | None,
    facts: dict[str, Any],
    phases: tuple[Phase, ...],
    blame: Blame | None,
    times: tuple[float, float],
) -> Report:
    mode = "full" if plan is not None and plan.is_full else "quick"
    return Report(
        schema=SCHEMA,
        verdict=_verdict(phases, mode),
        mode=mode,
        label=plan.label if plan else None,
        world_size=plan.world_size if plan else None,
        backend=plan.backend if plan else None,
        seconds=times[1] - times[0],
        failed_rank=blame.rank if blame else None,
        phases=phases,
        facts=facts,
    )


def _is_required(phase: Phase, mode: str) -> bool:
    return find_spec(phase.name).is_required(is_full=mode == "full")


def _verdict(phases: Sequence[Phase], mode: str) -> str:
    missing = [
        phase
        for phase in phases
        if phase.outcome == "fail" or (phase.outcome != "pass" and _is_required(phase, mode))
    ]
    return "fail" if missing else "pass"


def render_json(report: Report) -> str:
    """Return the report as one JSON document; docs/ddp-check.md describes it."""
    document = asdict(report)
    for phase, values in zip(report.phases, document["phases"]):  # noqa: B905 - `strict` needs Python 3.10
        values["required"] = _is_required(phase, report.mode)
    return json.dumps(document, indent=2)


def render_table(report: Report) -> str:
    """Return the report as lines for people."""
    ranks = "" if report.world_size is None else f", {report.world_size} ranks"
    lines = [f"ddp-check: {report.label or 'not started'}{ranks}", *_hosts(report), ""]
    lines.append(f"{'phase':<12} {'outcome':<8} {'seconds':>7}  detail")
    for phase in report.phases:
        seconds = "-" if phase.seconds is None else f"{phase.seconds:.1f}"
        outcome = "FAIL" if phase.outcome == "fail" else phase.outcome
        text = phase.reason or phase.detail or ""
        lines.append(f"{phase.name:<12} {outcome:<8} {seconds:>7}  {text}")
    lines += ["", f"verdict: {report.verdict} ({report.label or 'not started'})"]
    return "\n".join(lines)


def _hosts(report: Report) -> list[str]:
    hosts = report.facts.get("hosts", ())
    if len(hosts) == 1:  # people know where they have started it
        return []
    return [
        f"node {host['node']}: {host['host']}, "
        + (f"ranks {', '.join(map(str, host['ranks']))}" if host["ranks"] else "nothing came back")
        for host in hosts
    ]


def _facts_line(plan: Plan) -> str:
    facts = plan.facts
    cuda = f"CUDA {facts['cuda']}" if facts["cuda"] else "no CUDA"
    nccl = f", NCCL {facts['nccl']}" if facts["nccl"] else ""
    unknown = f" (links unknown: {facts['nvml']['reason']})" if _has_unknown_links(facts) else ""
    return (
        f"torch {facts['torch']}, {cuda}{nccl}, {facts['gpus']} GPU{unknown}, "
        f"cores: {facts['cores']}, threads per rank: {facts['threads_per_rank']}, "
        f"{MANIFEST_TEXTS[facts['manifest']['agrees']]}"
    )


def _has_unknown_links(facts: dict[str, Any]) -> bool:
    return facts["gpus"] > 0 and facts["nvml"]["reason"] is not None
