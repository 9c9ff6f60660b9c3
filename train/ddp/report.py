"""What the check says: one frozen value, as a table for people or as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ddp.verdict import RANK_PHASES, Blame, Phase, judge_ranks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddp.journal import RankState
    from ddp.plan import Plan

SCHEMA = "strata.ddp-check/1"


@dataclass(frozen=True)
class Report:
    """The whole check; `failed_rank` is the rank to blame, where one stands out."""

    schema: str
    verdict: str
    label: str | None
    world_size: int | None
    backend: str | None
    seconds: float
    failed_rank: int | None
    phases: tuple[Phase, ...]
    facts: dict[str, Any]

    @property
    def has_passed(self) -> bool:
        """Whether every phase has passed."""
        return self.verdict == "pass"


def report_ranks(
    plan: Plan,
    states: Sequence[RankState],
    ends: Mapping[int, int],
    times: tuple[float, float],
    late: str | None,
) -> Report:
    """Report on ranks that ran; `times` are start and end of the check in seconds."""
    started, ended_at = times
    phases, blame = judge_ranks(states, ends, ended_at, late, plan.group_timeout)
    began = [began for state in states for began in state.began.values()]
    devices = [state.device for state in states if state.device is not None]
    facts = Phase("facts", "pass", min([*began, ended_at]) - started, _facts_line(plan))
    return _report(plan, {**plan.facts, "devices": devices}, (facts, *phases), blame, times)


def report_unfit(plan: Plan | None, reason: str, times: tuple[float, float]) -> Report:
    """Report that no rank could be started, and why."""
    seconds = times[1] - times[0]
    phases = (
        Phase("facts", "fail", seconds, _facts_line(plan) if plan else None, reason),
        *(Phase(name, "not run", reason="facts failed") for name in RANK_PHASES),
    )
    facts = {**plan.facts, "devices": []} if plan else {}
    return _report(plan, facts, phases, None, times)


def _report(
    plan: Plan | None,
    facts: dict[str, Any],
    phases: tuple[Phase, ...],
    blame: Blame | None,
    times: tuple[float, float],
) -> Report:
    has_passed = all(phase.outcome == "pass" for phase in phases)
    return Report(
        schema=SCHEMA,
        verdict="pass" if has_passed else "fail",
        label=plan.label if plan else None,
        world_size=plan.world_size if plan else None,
        backend=plan.backend if plan else None,
        seconds=times[1] - times[0],
        failed_rank=blame.rank if blame else None,
        phases=phases,
        facts=facts,
    )


def render_json(report: Report) -> str:
    """Return the report as one JSON document; docs/ddp-check.md describes it."""
    return json.dumps(asdict(report), indent=2)


def render_table(report: Report) -> str:
    """Return the report as lines for people."""
    ranks = "" if report.world_size is None else f", {report.world_size} ranks"
    lines = [f"ddp-check: {report.label or 'not started'}{ranks}", ""]
    lines.append(f"{'phase':<12} {'outcome':<8} {'seconds':>7}  detail")
    for phase in report.phases:
        seconds = "-" if phase.seconds is None else f"{phase.seconds:.1f}"
        outcome = "FAIL" if phase.outcome == "fail" else phase.outcome
        text = phase.reason or phase.detail or ""
        lines.append(f"{phase.name:<12} {outcome:<8} {seconds:>7}  {text}")
    lines += ["", f"verdict: {report.verdict} ({report.label or 'not started'})"]
    return "\n".join(lines)


def _facts_line(plan: Plan) -> str:
    facts = plan.facts
    cuda = f"CUDA {facts['cuda']}" if facts["cuda"] else "no CUDA"
    nccl = f", NCCL {facts['nccl']}" if facts["nccl"] else ""
    return (
        f"torch {facts['torch']}, {cuda}{nccl}, {facts['gpus']} GPU, cores: {facts['cores']}, "
        f"threads per rank: {facts['threads_per_rank']}"
    )
