"""The check in full: passed once by two ranks and once by one; the phase faults seen failing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.train.conftest import Trainer


@pytest.mark.parametrize("nproc", ["2", "1"])
def test_everything_passes_in_full(trainer: Trainer, nproc: str) -> None:
    """Every fault is noticed within a minute, and a restarted job goes on."""
    result = trainer.check("--json", "--full", "--nproc", nproc)
    document = result.document
    outcomes = {phase["name"]: phase["outcome"] for phase in document["phases"]}
    assert set(outcomes.values()) == {"pass"}, result.out
    assert (result.code, document["verdict"], document["mode"]) == (0, "pass", "full")
    data = result.phase("faults")["data"]
    assert set(data["seconds"]) == {"raise", "exit", "kill", "hang"}
    assert max(data["seconds"].values()) < 60
    assert (data["restarted"]["attempts"], data["restarted"]["resumed_after_step"]) == (2, 4)
    assert result.left == []


def test_a_fault_that_nobody_notices_fails_the_phase(trainer: Trainer) -> None:
    """Here because the rank that is to fail does not."""
    result = trainer.check("--json", "--full", "--inject", "0:overlooked")
    phase = result.phase("faults")
    assert (result.code, phase["outcome"], result.left) == (6, "fail", [])
    assert phase["reason"].startswith("a rank that shall raise on ")
    assert phase["reason"].endswith("was not noticed: its job ended with 0")


def test_a_restarted_job_that_forgets_its_checkpoint_fails_the_phase(trainer: Trainer) -> None:
    """A job that finishes is not enough: it must go on from where it was."""
    result = trainer.check("--json", "--full", "--inject", "0:forget-checkpoint")
    phase = result.phase("faults")
    assert (result.code, phase["outcome"], result.left) == (6, "fail", [])
    assert phase["reason"] == (
        "a job whose rank was killed after step 6 had 2 attempts and went on after step 0"
    )
