"""The phases gradients and faults in full, and each broken once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.train.conftest import Trainer


def test_every_fault_is_noticed_and_a_restarted_job_finishes(trainer: Trainer) -> None:
    """A fault that is to be injected and isn't fails the phase; so does a forgotten checkpoint."""
    result = trainer.check("--json", "--full", "--inject", "0:overlooked")
    phase = result.phase("faults")
    assert (result.code, phase["outcome"], result.left) == (6, "fail", [])
    assert phase["reason"].startswith("a rank that shall raise on ")
    assert phase["reason"].endswith("was not noticed: its job ended with 0")
    result = trainer.check("--json", "--full", "--inject", "0:forget-checkpoint")
    phase = result.phase("faults")
    assert (result.code, phase["outcome"], result.left) == (6, "fail", [])
    assert phase["reason"] == (
        "a job whose rank was killed after step 6 had 2 attempts and went on after step 0"
    )
