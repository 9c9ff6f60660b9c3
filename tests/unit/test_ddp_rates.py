"""From the times of steps to throughput and efficiency."""

import pytest

from ddp.rates import Step, rank_counts, scaling_row


@pytest.mark.parametrize(
    ("ranks", "counts"),
    [(1, (1,)), (2, (1, 2)), (3, (1, 2, 3)), (4, (1, 2, 4)), (6, (1, 2, 4, 6)), (8, (1, 2, 4, 8))],
)
def test_ranks_are_doubled_up_to_all(ranks: int, counts: tuple[int, ...]) -> None:
    """The last count is always that of all ranks."""
    assert rank_counts(ranks) == counts


def test_one_rank_is_the_measure_of_all() -> None:
    """Its efficiency is 1."""
    row = scaling_row([Step(0.5, 0.5)], 8, None)
    assert row == {
        "ranks": 1,
        "samples_per_s": 16.0,
        "efficiency": 1.0,
        "communication_share": 0.0,
        "imbalance": 1.0,
    }


def test_efficiency_is_throughput_by_that_of_as_many_single_ranks() -> None:
    """The slowest rank counts; what it computes itself is no communication."""
    row = scaling_row([Step(1.0, 0.25), Step(0.9, 0.75)], 8, {"samples_per_s": 16.0})
    assert row == {
        "ranks": 2,
        "samples_per_s": 16.0,
        "efficiency": 0.5,
        "communication_share": 0.25,
        "imbalance": 3.0,
    }
