"""ddp-check's phases data, training and checkpoint, each seen failing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.train.conftest import Trainer

# One process is a group of one rank.  What a checkpoint must hold is then spoilt, one thing
# after the other.
CONTENT = """
import json, sys, tempfile
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import torch
from torch import distributed
from ddp import checkpoint
from ddp.arguments import parse
from ddp.building import group_of, losses_of, small_config, small_run
from ddp.context import Context
from ddp.errors import PhaseFailed
from ddp.journal import Journal
from ddp.plan import Machine, make_plan
from trainer.checkpoint import capture

distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
plan = make_plan(parse(["--nproc", "1"]), Machine(0, 2, False, True), {})
with tempfile.TemporaryDirectory() as name:
    context = Context(0, 0, plan, torch.device("cpu"), Journal(Path(name) / "rank-0.jsonl"),
                      Path(name), None)
    config = small_config(1, max_steps=checkpoint.BEFORE + checkpoint.AFTER)
    run = small_run(config, group_of(context))
    losses_of(run, checkpoint.BEFORE)
    right = capture(run)
    some = dict(list(right["model"].items())[1:])

    def attempt(**spoilt):
        try:
            checkpoint._check_content(context, run, {**right, **spoilt})
        except PhaseFailed as failed:
            return str(failed)
        return None

    print(json.dumps({
        "right": attempt(),
        "model": attempt(model=some),
        "optimizer": attempt(optimizer={**right["optimizer"], "state": {}}),
        "scheduler": attempt(scheduler={**right["scheduler"], "last_epoch": 0}),
        "progress": attempt(progress={**right["progress"], "step": 0}),
        "sampler": attempt(sampler={**right["sampler"], "size": 1}),
        "random": attempt(random=[]),
        "compiled": attempt(model={**some, "_orig_mod.bias": right["model"]["bias"]}),
    }))
"""


@pytest.mark.parametrize(
    ("fault", "phase", "reason"),
    [
        ("1:forget-epoch", "data", "in epoch 1, 10 of 19 samples are not used exactly once"),
        ("1:same-workers", "data", "drew the same random number of NumPy"),
        ("1:count-padding", "data", "the metrics count 20 samples with mean 8.95, expected 19"),
        ("1:stuck", "training", "the accuracy after 40 steps is 0."),
        ("1:other-seed", "training", "the same seed gave another loss"),
        ("1:torn-save", "checkpoint", "killed in its middle has changed the checkpoint before"),
        ("1:forget-random", "checkpoint", "after loading, the loss in step 12 is"),
        ("1:forget-optimizer", "checkpoint", "after loading, the loss in step 13 is"),
        ("1:forget-place", "checkpoint", "after loading, the loss in step 12 is"),
        ("1:wrapped-keys", "checkpoint", "the key module.bias carries a wrapper's prefix"),
        ("0:lose-rank", "checkpoint", "saved on 2 ranks and loaded on 1, the losses differ by"),
    ],
)
def test_a_mistake_of_one_rank_is_found(
    trainer: Trainer, fault: str, phase: str, reason: str
) -> None:
    """A mistake that a training program can make fails the phase that looks for it."""
    result = trainer.check("--json", "--inject", fault)
    assert (result.code, result.left) == (6, [])
    failed = [found["name"] for found in result.document["phases"] if found["outcome"] == "fail"]
    assert failed == [phase]
    assert reason in result.phase(phase)["reason"]


def test_whatever_a_checkpoint_lacks_is_found(trainer: Trainer) -> None:
    """Each part of its content is looked at, and named."""
    result = trainer.python("-c", CONTENT, "{train}")
    assert result.code == 0, result.err
    found = json.loads(result.out)
    assert found.pop("right") is None
    assert found.pop("compiled") == "the key _orig_mod.bias carries a wrapper's prefix"
    assert found == {
        part: f"the checkpoint's {part} is not that of the run after 12 steps"
        for part in ("model", "optimizer", "scheduler", "progress", "sampler", "random")
    }
