"""What ddp-check says, as a table and as JSON."""

import json

from ddp.arguments import parse
from ddp.journal import RankState
from ddp.plan import Machine, Plan, make_plan
from ddp.report import render_json, render_table, report_ranks, report_unfit
from ddp.verdict import RANK_PHASES

FACTS = {"torch": "2.13.0", "cuda": None, "nccl": None, "gpus": 0}
TIMES = (100.0, 110.0)


def cpu_plan(*argv: str) -> Plan:
    """Plan for four cores without a GPU."""
    machine = Machine(gpus=0, cores=4, has_nccl=False, has_gloo=True)
    return make_plan(parse(argv), machine, FACTS)


def done(rank: int) -> RankState:
    """Return a rank that went through all phases, from second 104 on."""
    return RankState(
        rank,
        began=dict.fromkeys(RANK_PHASES, 104.0),
        passed=dict.fromkeys(RANK_PHASES, (1.5, "fine")),
        is_done=True,
    )


def test_a_pass_names_label_ranks_and_phases() -> None:
    """The document of a pass has the schema, the label and a pass for every phase."""
    report = report_ranks(cpu_plan(), [done(0), done(1)], {}, TIMES, None)
    document = json.loads(render_json(report))
    assert document["schema"] == "strata.ddp-check/1"
    assert (document["verdict"], document["label"]) == ("pass", "CPU, gloo")
    assert (document["world_size"], document["backend"], document["seconds"]) == (2, "gloo", 10.0)
    assert [phase["name"] for phase in document["phases"]] == ["facts", *RANK_PHASES]
    assert {phase["outcome"] for phase in document["phases"]} == {"pass"}
    assert document["facts"] == {**FACTS, "cores": 4, "threads_per_rank": 2, "devices": []}
    assert document["failed_rank"] is None


def test_a_failed_rank_fails_the_whole_check() -> None:
    """One rank that is not done is enough, and both forms name it."""
    report = report_ranks(cpu_plan(), [done(0), RankState(1)], {1: -9}, TIMES, None)
    assert not report.has_passed
    assert report.failed_rank == 1
    table = render_table(report).splitlines()
    assert table[-1] == "verdict: fail (CPU, gloo)"
    assert any("FAIL" in line and "rank 1: was killed by SIGKILL" in line for line in table)


def test_what_could_not_start_fails_with_its_reason() -> None:
    """A machine that is not fit fails the facts; nothing that follows has run."""
    plan = cpu_plan("--require-gpu")
    report = report_unfit(plan, plan.unfit or "", TIMES)
    assert report.verdict == "fail"
    assert report.phases[0].reason == plan.unfit
    assert {phase.outcome for phase in report.phases[1:]} == {"not run"}


def test_what_was_never_planned_has_no_label() -> None:
    """Without a plan the report claims neither backend nor label."""
    report = report_unfit(None, "no temporary folder", TIMES)
    assert (report.verdict, report.label, report.backend) == ("fail", None, None)
    assert render_table(report).splitlines()[-1] == "verdict: fail (not started)"
