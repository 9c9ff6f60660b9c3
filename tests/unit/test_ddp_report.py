"""What ddp-check says, as a table and as JSON."""

import json
from dataclasses import replace
from typing import Any

from ddp.arguments import parse
from ddp.findings import Finding
from ddp.journal import RankState
from ddp.nodes import Meeting
from ddp.phases import RANK_PHASES
from ddp.plan import Machine, Plan, make_plan
from ddp.report import render_json, render_table, report_ranks, report_unfit, with_phases
from ddp.verdict import Phase

FACTS: dict[str, Any] = {
    "torch": "2.13.0",
    "cuda": None,
    "nccl": None,
    "gpus": 0,
    "nvml": {"driver": None, "links": [], "reason": "there is no GPU"},
    "manifest": {"agrees": True, "reason": None, "disagreements": []},
}
NOTHING = "no manifest to compare with"
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
        passed=dict.fromkeys(RANK_PHASES, (1.5, Finding("fine", {"values": 3}))),
        is_done=True,
    )


def test_a_pass_names_label_ranks_and_phases() -> None:
    """The document of a pass has the schema, the label and a pass for every phase."""
    report = report_ranks(cpu_plan(), [done(0), done(1)], {}, TIMES, None)
    document = json.loads(render_json(report))
    assert document["schema"] == "strata.ddp-check/2"
    assert (document["verdict"], document["label"]) == ("pass", "CPU, gloo")
    assert (document["world_size"], document["backend"], document["seconds"]) == (2, "gloo", 10.0)
    assert [phase["name"] for phase in document["phases"]] == ["facts", *RANK_PHASES]
    assert {phase["outcome"] for phase in document["phases"]} == {"pass"}
    assert document["facts"] == {**FACTS, "cores": 4, "threads_per_rank": 2, "devices": []}
    assert document["phases"][1]["data"] == {"values": 3}
    assert document["failed_rank"] is None


def test_facts_say_what_is_not_known() -> None:
    """Whether the manifest agrees, and on GPUs why their links are unknown."""
    lines = []
    for gpus, agrees in [(0, True), (8, None)]:
        nvml: dict[str, Any] = {"driver": None, "links": [], "reason": "no nvidia-ml-py"}
        facts = {**FACTS, "gpus": gpus, "nvml": nvml, "manifest": {"agrees": agrees}}
        plan = replace(cpu_plan(), facts={**facts, "cores": 4, "threads_per_rank": 2})
        lines.append(report_ranks(plan, [done(0), done(1)], {}, TIMES, None).phases[0].detail)
    place = "cores: 4, threads per rank: 2"
    assert lines == [
        f"torch 2.13.0, no CUDA, 0 GPU, {place}, packages as in the manifest",
        f"torch 2.13.0, no CUDA, 8 GPU (links unknown: no nvidia-ml-py), {place}, {NOTHING}",
    ]


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


def test_a_port_that_is_taken_fails_the_rendezvous() -> None:
    """What was found before it stays a pass."""
    plan = replace(cpu_plan(), unfit="port 29500 is taken", unfit_phase="rendezvous")
    report = report_unfit(plan, plan.unfit or "", TIMES)
    assert [phase.outcome for phase in report.phases[:3]] == ["pass", "fail", "not run"]
    assert report.phases[1].reason == "port 29500 is taken"
    assert report.phases[2].reason == "rendezvous failed"
    assert [phase.name for phase in report.phases] == ["facts", *RANK_PHASES]


def test_only_what_is_required_must_have_run() -> None:
    """A phase that is not required may be left out, and a failed one never."""
    report = report_ranks(cpu_plan(), [done(0), done(1)], {}, TIMES, None)
    left_out = Phase("collectives", "not run", reason="no such thing here")
    phases = [left_out if phase.name == "collectives" else phase for phase in report.phases]
    assert with_phases(report, phases, 12.0).verdict == "fail"
    assert with_phases(report, report.phases, 12.0).verdict == "pass"
    assert with_phases(report, report.phases, 12.0).seconds == 12.0


def test_what_was_never_planned_has_no_label() -> None:
    """Without a plan the report claims neither backend nor label."""
    report = report_unfit(None, "no temporary folder", TIMES)
    assert (report.verdict, report.label, report.backend) == ("fail", None, None)
    assert render_table(report).splitlines()[-1] == "verdict: fail (not started)"


def test_the_hosts_are_facts_and_only_several_are_in_the_table() -> None:
    """People know where they have started a check of one host; a kept document doesn't."""
    one = cpu_plan().with_hosts(Meeting({0: "alpha"}, {0: [0, 1]}))
    two = cpu_plan().with_hosts(Meeting({0: "alpha", 1: "beta"}, {0: [0], 1: [1]}))
    reports = [report_ranks(plan, [done(0), done(1)], {}, TIMES, None) for plan in (one, two)]
    assert reports[0].facts["hosts"] == [{"node": 0, "host": "alpha", "ranks": [0, 1]}]
    assert [render_table(report).splitlines()[1:3] for report in reports] == [
        ["", "phase        outcome  seconds  detail"],
        ["node 0: alpha, ranks 0", "node 1: beta, ranks 1"],
    ]
