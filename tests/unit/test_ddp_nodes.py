"""The hosts of a check: arguments, what they agree on, and who was lost."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from ddp.arguments import parse
from ddp.errors import Refused
from ddp.journal import RankState
from ddp.nodes import Hello, Meeting, Nodes, disagreement, place_ranks
from ddp.plan import Machine, make_plan
from ddp.verdict import judge_ranks

if TYPE_CHECKING:
    from pathlib import Path

TWO = ["--nnodes", "2", "--node-rank", "1", "--rdzv", "alpha:29400"]
HELLO = Hello(node=0, host="alpha", nproc=2, is_full=False, torch="2.13.0", unfit=None)
OTHER = replace(HELLO, node=1, host="beta")


def test_one_host_is_the_default() -> None:
    """It meets nobody, and takes a free port unless one is given."""
    assert parse([]).nodes == Nodes(1, 0, None, 0)
    assert parse(["--rdzv", "localhost:29400"]).nodes.port == 29400


def test_several_hosts_meet_at_one_place() -> None:
    """Every argument ends in its own field."""
    assert parse(TWO).nodes == Nodes(2, 1, "alpha", 29400)
    assert parse(TWO).nodes.endpoint == "alpha:29400"


@pytest.mark.parametrize(
    ("argv", "where"),
    [
        (["--nnodes", "0"], "--nnodes"),
        (["--nnodes", "1:2"], "--nnodes"),
        (["--node-rank", "1"], "--node-rank"),
        (["--nnodes", "2", "--rdzv", "a:1"], "--node-rank"),
        (["--nnodes", "2", "--node-rank", "2", "--rdzv", "a:1"], "--node-rank"),
        (["--nnodes", "2", "--node-rank", "0"], "--rdzv"),
        (["--rdzv", "alpha"], "--rdzv"),
        (["--rdzv", "alpha:0"], "--rdzv"),
        (["--rdzv", "alpha:65536"], "--rdzv"),
        (["--rdzv", ":29400"], "--rdzv"),
    ],
)
def test_hosts_that_cannot_meet_are_refused_by_name(argv: list[str], where: str) -> None:
    """With the argument that is wrong or missing."""
    with pytest.raises(Refused) as refused:
        parse(argv)
    assert refused.value.where == where


def test_ranks_are_counted_over_all_hosts_and_threads_on_one() -> None:
    """Two hosts of three ranks are six; each host's cores are shared by three."""
    machine = Machine(gpus=0, cores=6, has_nccl=False, has_gloo=True)
    plan = make_plan(parse([*TWO, "--nproc", "3"]), machine, {})
    assert (plan.world_size, plan.nproc, plan.threads) == (6, 3, 2)


def test_each_host_needs_gpus_for_its_own_ranks_only() -> None:
    """Two hosts of four GPUs take eight ranks."""
    machine = Machine(gpus=4, cores=8, has_nccl=True, has_gloo=True)
    plan = make_plan(parse(TWO), machine, {})
    assert (plan.world_size, plan.label) == (8, "8 GPU, nccl")


def test_hosts_alike_agree() -> None:
    """Their names may differ."""
    assert disagreement([HELLO, OTHER]) is None


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (replace(OTHER, nproc=3), "node 1 (beta) has nproc 3, node 0 (alpha) has 2"),
        (replace(OTHER, torch="2.4.1"), "node 1 (beta) has torch 2.4.1, node 0 (alpha) has 2.13.0"),
        (replace(OTHER, is_full=True), "node 1 (beta) has is_full True"),
        (replace(OTHER, unfit="no GPU"), "node 1 (beta): no GPU"),
    ],
)
def test_what_differs_is_named_with_its_host(other: Hello, said: str) -> None:
    """Before any rank waits for one that can't come."""
    assert (disagreement([HELLO, other]) or "").startswith(said)


def test_a_meeting_is_read_as_it_was_written(tmp_path: Path) -> None:
    """What the launcher writes is what the supervisor reads."""
    meeting = Meeting({0: "alpha", 1: "beta"}, {0: [2, 3]})
    meeting.write(tmp_path / "meeting.json")
    assert Meeting.read(tmp_path / "meeting.json") == meeting
    assert meeting.facts() == [
        {"node": 0, "host": "alpha", "ranks": [2, 3]},
        {"node": 1, "host": "beta", "ranks": []},
    ]


def test_ranks_of_a_host_that_was_lost_are_its() -> None:
    """What is on no other host was on the one that told nothing."""
    meeting = Meeting({0: "alpha", 1: "beta"}, {0: [1]})
    placed = place_ranks([RankState(0), RankState(1)], meeting)
    assert [(state.host, state.is_lost) for state in placed] == [
        ("beta (node 1)", True),
        ("alpha (node 0)", False),
    ]


def test_of_two_lost_hosts_none_can_be_told() -> None:
    """Then the rank is lost, and nobody guesses where."""
    placed = place_ranks([RankState(0)], Meeting({0: "alpha", 1: "beta", 2: "c"}, {0: [1]}))
    assert [(state.host, state.is_lost) for state in placed] == [(None, True)]


def test_a_lost_host_is_blamed_and_not_who_waited_for_it() -> None:
    """The sentence names rank, host and node."""
    waited = RankState(
        0, 1, "step 3", 5.0, {"rendezvous": 1.0}, failure="RuntimeError: closed", failed_at=6.0
    )
    meeting = Meeting({0: "alpha", 1: "beta"}, {0: [0]})
    states = place_ranks([waited, RankState(1)], meeting)
    phases, blame = judge_ranks(states, {0: 1}, 9.0, None, 15.0)
    assert blame is not None
    assert (blame.rank, blame.host) == (1, "beta (node 1)")
    assert phases[0].reason == (
        "rank 1 on beta (node 1): went with its host, of which nothing came back"
    )
