"""The variants of the training phase, in one process: each right, and each seen failing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.train.conftest import Trainer

# One process is a group of one rank.  Runs of one variant are then made that do not learn.
SCRIPT = """
import json, sys, tempfile
from dataclasses import replace
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
from torch import distributed
from ddp import building, training
from ddp.arguments import parse
from ddp.compiling import why_not_compiled
from ddp.context import Context
from ddp.errors import PhaseFailed
from ddp.journal import Journal
from ddp.plan import Machine, make_plan

torch.set_num_threads(1)
distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
plan = make_plan(parse(["--full", "--nproc", "1"]), Machine(0, 2, False, True), {})

def idle(variant):
    def small_run(config, group):
        run = building.small_run(config, group)
        if getattr(config, variant):
            run.scheduler.base_lrs = [0.0]
        return run
    return small_run

with tempfile.TemporaryDirectory() as name:
    context = Context(0, 0, plan, torch.device("cpu"), Journal(Path(name) / "rank-0.jsonl"),
                      Path(name), None)
    config = building.small_config(1, max_steps=training.STEPS)
    why_not = why_not_compiled(context)
    def attempt(variant, small_run):
        training.small_run = small_run
        try:
            if variant == "compile":
                return training._compiled(context, config, why_not)
            return training._variant(context, replace(config, bf16=True), None)
        except PhaseFailed as failed:
            return str(failed)
    print(json.dumps({
        variant: [attempt(variant, building.small_run), attempt(variant, idle(variant))]
        for variant in ("bf16", "compile")
    }))
"""


@pytest.fixture(scope="module")
def found(trainer: Trainer) -> dict[str, Any]:
    """Run each variant as it is, and so that it does not learn."""
    result = trainer.python("-c", SCRIPT, "{train}")
    assert result.code == 0, result.err
    answers: dict[str, Any] = json.loads(result.out)
    return answers


def skip_without_compiler(found: dict[str, Any]) -> None:
    """Skip where this Python has torch and no compiler, as in strata's images."""
    compiled = found["compile"][0]
    if compiled["outcome"] == "not run":
        assert compiled["reason"].startswith("there is no ")
        pytest.skip(
            f"torch.compile: {compiled['reason']}; STRATA_TRAIN_PYTHON names a Python with "
            "torch beside a compiler"
        )


def test_bfloat16_learns_as_well(found: dict[str, Any]) -> None:
    """It is judged by the accuracy that float32 must reach."""
    right, _ = found["bf16"]
    assert right["outcome"] == "pass"
    assert right["accuracy"] >= 0.9


def test_bfloat16_that_does_not_learn_is_found(found: dict[str, Any]) -> None:
    """With the accuracy, the limit, and the variant's name."""
    _, wrong = found["bf16"]
    assert wrong.startswith("with bfloat16, the accuracy after 40 steps is 0.")
    assert wrong.endswith(", expected 0.9 at least")


def test_a_compiled_model_gives_the_same_losses(found: dict[str, Any]) -> None:
    """With --full, in a Python that has torch and a C++ compiler, `torch.compile` is tried."""
    skip_without_compiler(found)
    right, _ = found["compile"]
    assert right["outcome"] == "pass"
    assert 0 <= right["relative_difference"] <= 1e-4


def test_a_compiled_model_that_computes_otherwise_is_found(found: dict[str, Any]) -> None:
    """By how much its losses differ, and the limit."""
    skip_without_compiler(found)
    _, wrong = found["compile"]
    assert wrong.startswith("with torch.compile, the losses of 4 steps differ by ")
    assert wrong.endswith(" relative, limit 1e-04")
