"""What ddp-check's phase data says of samples that were loaded wrongly."""

from dataclasses import replace

import pytest

from ddp.dealt import Loaded, judge_epochs
from ddp.errors import PhaseFailed

SIZE = 3


def epoch(order: list[int], first_draw: int) -> list[Loaded]:
    """Return what two ranks load in this order, with padding at the end."""
    rows = [
        Loaded(place % 2, index, is_real=True, worker=0, draws=(first_draw + place,) * 3)
        for place, index in enumerate(order)
    ]
    return [*rows, Loaded(1, order[0], is_real=False, worker=0, draws=(first_draw + 9,) * 3)]


ZERO, ONE = epoch([0, 1, 2], 100), epoch([2, 0, 1], 200)


def test_right_epochs_pass() -> None:
    """Each sample once, another order and other draws in epoch 1, and epoch 0 twice the same."""
    judge_epochs([ZERO, ONE, ZERO], SIZE)


@pytest.mark.parametrize(
    ("epochs", "reason"),
    [
        ([ZERO[1:], ONE, ZERO], "epoch 0, 1 of 3 samples are not used exactly once: sample 0 is"),
        ([ZERO, [*ONE, ONE[0]], ZERO], "epoch 1, 1 of 3 samples .* sample 2 is used 2 times"),
        (
            [[replace(row, is_real=True) for row in ZERO], ONE, ZERO],
            "epoch 0, 1 of 3 samples .* sample 0 is used 2 times",
        ),
        ([ZERO, ONE, [*ZERO, replace(ZERO[0], index=3)]], "sample 3 is used 1 times"),
        ([ZERO, epoch([0, 1, 2], 200), ZERO], "epochs 0 and 1 have the same order"),
        ([ZERO, ONE, epoch([1, 0, 2], 100)], "the same seed and epoch gave another order"),
        ([ZERO, ONE, epoch([0, 1, 2], 300)], "gave workers other random numbers of torch"),
        ([ZERO, epoch([2, 0, 1], 100), ZERO], "epochs 0 and 1 have random numbers of torch"),
        (
            [[ZERO[0], replace(ZERO[1], draws=(101, 101, 100)), *ZERO[2:]], ONE, ZERO],
            "worker 0 of rank 1 and worker 0 of rank 0 drew the same random number of NumPy",
        ),
    ],
)
def test_a_wrong_epoch_fails(epochs: list[list[Loaded]], reason: str) -> None:
    """Every rule has a set of samples that breaks it, and says so."""
    with pytest.raises(PhaseFailed, match=reason):
        judge_epochs(epochs, SIZE)
