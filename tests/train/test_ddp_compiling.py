"""The variants of the training phase, in one process: each right, and each seen failing."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

from tests.train.conftest import IMAGE, PYTHON, Trainer

if TYPE_CHECKING:
    from collections.abc import Iterator

# What an image needs for torch.compile, and strata's leave out for their size.
COMPILING = "strata-test-compiling"
DOCKERFILE = f"""
FROM {IMAGE}
USER 0
RUN apt-get update && apt-get install --yes --no-install-recommends g++ libpython3-dev
"""

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
def compiling(trainer: Trainer) -> Iterator[Trainer]:
    """Return the given Python, or that of an image with a compiler, built here."""
    if os.environ.get(PYTHON):
        yield trainer
        return
    build = ["docker", "build", "--quiet", "--tag", COMPILING, "-"]
    done = subprocess.run(build, input=DOCKERFILE, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # It loads the libraries that it has compiled there.
    yield Trainer(COMPILING, tmp="/tmp:exec")  # noqa: S108 - of the container
    subprocess.run(["docker", "image", "rm", COMPILING], check=True, capture_output=True)


@pytest.fixture(scope="module")
def found(compiling: Trainer) -> dict[str, Any]:
    """Run each variant as it is, and so that it does not learn."""
    result = compiling.python("-c", SCRIPT, "{train}")
    assert result.code == 0, result.err
    answers: dict[str, Any] = json.loads(result.out)
    return answers


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
    right, _ = found["compile"]
    assert right["outcome"] == "pass", right
    assert 0 <= right["relative_difference"] <= 1e-4


def test_a_compiled_model_that_computes_otherwise_is_found(found: dict[str, Any]) -> None:
    """By how much its losses differ, and the limit."""
    _, wrong = found["compile"]
    assert wrong.startswith("with torch.compile, the losses of 4 steps differ by ")
    assert wrong.endswith(" relative, limit 1e-04")
