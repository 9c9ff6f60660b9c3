"""Who is to blame, and what that makes of the phases."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from ddp.findings import Finding
from ddp.journal import RankState
from ddp.phases import RANK_PHASES
from ddp.verdict import find_blame, judge_ranks

TIMEOUT = 15.0
LAST = RANK_PHASES[-1]
BEGAN = {phase: float(at) for at, phase in enumerate(RANK_PHASES)}
PASSED = dict.fromkeys(RANK_PHASES, (1.0, Finding("fine")))
DONE = RankState(0, 20, "the end", 4.0, BEGAN, PASSED, is_done=True)
RUNNING = RankState(0, 10, "step 2", 5.0, BEGAN, {name: PASSED[name] for name in RANK_PHASES[:-1]})
WAITING = replace(RUNNING, position=11, last="step 3", since=5.0)
LEFT_ALONE = replace(WAITING, failure="RuntimeError: closed", failed_at=5.1)
TIMED_OUT = replace(WAITING, failure="RuntimeError: timed out", failed_at=20.0)
LATE = "the check did not end within 60 s"


def ranks(*states: RankState) -> list[RankState]:
    """Return the states as ranks 0, 1 and so on."""
    return [replace(state, rank=rank) for rank, state in enumerate(states)]


@pytest.mark.parametrize(
    ("states", "ends", "late", "rank", "text"),
    [
        ([LEFT_ALONE, replace(RUNNING, failure="wrong", failed_at=6.0)], {0: 1}, None, 1, "wrong"),
        ([LEFT_ALONE, RUNNING], {0: 1, 1: -9}, None, 1, "killed by SIGKILL (out of memory?) in"),
        ([WAITING, RUNNING], {0: -15, 1: -11}, None, 1, "killed by SIGSEGV"),
        ([WAITING, RUNNING], {0: -15, 1: 3}, None, 1, "ended with exit code 3"),
        ([LEFT_ALONE, RUNNING], {0: 1}, None, 1, "exited early, without an error, in"),
        ([TIMED_OUT, RUNNING], {0: 1, 1: -15}, None, 1, f"hangs in {LAST}, after step 2"),
        ([TIMED_OUT, RUNNING], {0: 1, 1: -9}, None, 1, f"hangs in {LAST}, after step 2"),
        ([TIMED_OUT, RUNNING], {0: 1}, None, 1, "exited early or hangs"),
        ([WAITING, RUNNING], {0: -6, 1: -15}, None, 1, f"hangs in {LAST}"),
        ([WAITING, RUNNING], {0: -6}, None, 1, "exited early or hangs"),
        ([WAITING, RUNNING], {}, LATE, 1, f"hangs ({LATE}) in {LAST}"),
        ([WAITING, WAITING], {}, LATE, None, f"rank 1 in {LAST}, waiting for step 3"),
        ([TIMED_OUT, TIMED_OUT], {0: 1, 1: 1}, None, 0, f"timed out in {LAST}"),
        ([DONE, RUNNING], {}, None, 1, "exited early, without an error, in"),
        ([DONE, DONE], {1: -11}, None, 1, "killed by SIGSEGV"),
        ([RankState(0), RankState(0)], {0: 1, 1: -15}, None, 0, "code 1 before its first phase"),
    ],
)
def test_the_cause_is_blamed_and_not_its_victims(
    states: Sequence[RankState],
    ends: Mapping[int, int],
    late: str | None,
    rank: int | None,
    text: str,
) -> None:
    """A rank that failed because it waited for another one is not the one to blame."""
    blame = find_blame(ranks(*states), ends, late, TIMEOUT)
    assert blame.rank == rank
    assert text in blame.reason


def test_all_ranks_done_is_a_pass() -> None:
    """When every rank has come to its end and none failed, nobody is to blame."""
    phases, blame = judge_ranks(ranks(DONE, DONE), {}, 9.0, None, TIMEOUT)
    assert [(phase.name, phase.outcome) for phase in phases] == [
        (name, "pass") for name in RANK_PHASES
    ]
    assert blame is None


def test_phases_after_a_failed_one_have_not_run() -> None:
    """One rank's failure fails its phase for all; what follows says why it has not run."""
    failed = RankState(
        0,
        began={name: BEGAN[name] for name in RANK_PHASES[:2]},
        passed={"rendezvous": (1.0, Finding("fine"))},
        failure="sum is wrong",
        failed_at=2.0,
    )
    phases, _ = judge_ranks(ranks(RUNNING, failed), {1: 1}, 3.0, None, TIMEOUT)
    assert [phase.outcome for phase in phases[:2]] == ["pass", "fail"]
    assert {phase.outcome for phase in phases[2:]} == {"not run"}
    assert phases[1].reason == "rank 1: sum is wrong"
    assert phases[1].seconds == 2.0
    assert phases[2].reason == f"{RANK_PHASES[1]} failed"


def test_a_phase_that_no_rank_could_run_is_not_run() -> None:
    """It has a reason, is no pass, and those after it have their own outcomes."""
    name = RANK_PHASES[1]
    passed = {other: PASSED[other] for other in RANK_PHASES if other != name}
    skipped = replace(DONE, passed=passed, not_run={name: "no such thing here"})
    phases, blame = judge_ranks(ranks(skipped, skipped), {}, 9.0, None, TIMEOUT)
    assert [phase.outcome for phase in phases[:3]] == ["pass", "not run", "pass"]
    assert (phases[1].reason, phases[1].seconds, blame) == ("no such thing here", None, None)


def test_a_phase_that_only_some_ranks_ran_has_failed() -> None:
    """Ranks that disagree on what can be checked have checked nothing."""
    name = RANK_PHASES[1]
    passed = {other: PASSED[other] for other in RANK_PHASES if other != name}
    skipped = replace(DONE, passed=passed, not_run={name: "no such thing here"})
    phases, _ = judge_ranks(ranks(DONE, skipped), {}, 9.0, None, TIMEOUT)
    assert phases[1].outcome == "fail"
    assert phases[1].reason == "the others ran it, but not rank 1: no such thing here"


@pytest.mark.parametrize(
    ("states", "ends", "late"),
    [
        ([DONE, RUNNING], {}, None),
        ([DONE, replace(DONE, is_done=False)], {}, None),
        ([DONE, DONE], {0: 1}, None),
        ([DONE, DONE], {}, LATE),
        ([RankState(0), RankState(0)], {}, None),
        ([], {}, None),
        ([], {}, LATE),
    ],
)
def test_anything_short_of_done_is_no_pass(
    states: Sequence[RankState], ends: Mapping[int, int], late: str | None
) -> None:
    """An unfinished rank, an exit code or a launcher that was ended each fail a phase."""
    phases, _ = judge_ranks(ranks(*states), ends, 9.0, late, TIMEOUT)
    assert [phase.outcome for phase in phases].count("fail") == 1


def test_a_launcher_without_ranks_is_told_by_what_it_waited_for() -> None:
    """Such as one of several hosts whose time was up before its ranks could start."""
    phases, blame = judge_ranks([], {}, 9.0, LATE, TIMEOUT)
    assert (phases[0].name, phases[0].outcome) == ("rendezvous", "fail")
    assert phases[0].reason == f"{LATE}: no rank has begun"
    assert blame is not None
    assert blame.rank is None
