"""What the user demands of a machine."""

from __future__ import annotations

from typing import Any

import pytest

from ddp.arguments import parse
from ddp.errors import Refused
from ddp.thresholds import Thresholds, judge_thresholds
from ddp.verdict import Phase

ROWS = [
    {"label": "all_reduce (sum)", "busbw_gb_per_s": 20.0},
    {"label": "all_reduce (sum)", "busbw_gb_per_s": 60.0},
    {"label": "broadcast", "busbw_gb_per_s": 90.0},
]
COLLECTIVES = Phase("collectives", "pass", 1.0, "fine", data={"bandwidth": ROWS})
SCALING = Phase("scaling", "pass", 1.0, "fine", data={"efficiency": 0.8})


@pytest.mark.parametrize(
    ("thresholds", "outcomes"),
    [
        (Thresholds(), ["pass", "pass"]),
        (Thresholds(min_busbw=60.0, min_efficiency=0.8), ["pass", "pass"]),
        (Thresholds(min_busbw=60.1), ["fail", "pass"]),
        (Thresholds(min_efficiency=0.81), ["pass", "fail"]),
    ],
)
def test_a_phase_that_passed_but_not_well_enough_has_failed(
    thresholds: Thresholds, outcomes: list[str]
) -> None:
    """Bandwidth is the best of all_reduce; the threshold itself is enough."""
    judged = judge_thresholds([COLLECTIVES, SCALING], thresholds)
    assert [phase.outcome for phase in judged] == outcomes


def test_the_reason_names_the_argument_and_both_numbers() -> None:
    """So nobody has to look for them."""
    judged = judge_thresholds([COLLECTIVES], Thresholds(min_busbw=100.0))
    assert judged[0].reason == "--min-busbw demands 100: 60 GB/s of bus bandwidth is less"


def test_what_has_not_run_reaches_no_threshold() -> None:
    """A demand on a phase that was not run is not met."""
    phase = Phase("scaling", "not run", reason="no time")
    judged = judge_thresholds([phase], Thresholds(min_efficiency=0.5))
    assert judged[0].outcome == "fail"
    assert judged[0].reason == "--min-efficiency demands 0.5, and this has not run: no time"


def test_no_number_reaches_no_threshold() -> None:
    """Not-a-number is less than everything."""
    data: dict[str, Any] = {"efficiency": float("nan")}
    phase = Phase("scaling", "pass", 1.0, "fine", data=data)
    assert judge_thresholds([phase], Thresholds(min_efficiency=0.1))[0].outcome == "fail"


def test_thresholds_come_from_the_command_line() -> None:
    """Each has its argument."""
    argv = ["--min-gpus", "8", "--min-efficiency", "0.9", "--min-busbw", "250"]
    assert parse(argv).thresholds == Thresholds(8, 0.9, 250.0)


@pytest.mark.parametrize(
    "argv",
    [
        ["--min-gpus", "many"],
        ["--min-efficiency", "0"],
        ["--min-efficiency", "nan"],
        ["--min-busbw", "fast"],
        ["--min-busbw", "inf"],
    ],
)
def test_nonsense_is_refused_by_name(argv: list[str]) -> None:
    """With the argument that is wrong."""
    with pytest.raises(Refused) as refused:
        parse(argv)
    assert refused.value.where == argv[0]
