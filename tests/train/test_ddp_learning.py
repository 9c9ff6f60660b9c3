"""ddp-check's phases data, training and checkpoint, each seen failing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.train.conftest import Trainer


@pytest.mark.parametrize(
    ("fault", "phase", "reason"),
    [
        ("forget-epoch", "data", "in epoch 1, 10 of 19 samples are not used exactly once"),
        ("same-workers", "data", "drew the same random number of NumPy"),
        ("count-padding", "data", "the metrics count 20 samples with mean 8.95, expected 19"),
        ("stuck", "training", "the accuracy after 40 steps is 0."),
        ("other-seed", "training", "the same seed gave another loss"),
        ("torn-save", "checkpoint", "killed in its middle has changed the checkpoint before"),
        ("forget-random", "checkpoint", "after loading, the loss in step 12 is"),
        ("forget-optimizer", "checkpoint", "after loading, the loss in step 13 is"),
    ],
)
def test_a_mistake_of_one_rank_is_found(
    trainer: Trainer, fault: str, phase: str, reason: str
) -> None:
    """A mistake that a training program can make fails the phase that looks for it."""
    result = trainer.check("--json", "--inject", f"1:{fault}")
    assert (result.code, result.left) == (6, [])
    failed = [found["name"] for found in result.document["phases"] if found["outcome"] == "fail"]
    assert failed == [phase]
    assert reason in result.phase(phase)["reason"]
