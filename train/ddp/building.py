"""The trainer's own parts, made small: what the phases data, training and checkpoint train."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trainer.arguments import Config
from trainer.data import VOCABULARY, GeneratedTokens
from trainer.group import Group
from trainer.models import Shape, Transformer
from trainer.steps import start_run, train_steps

if TYPE_CHECKING:
    from ddp.context import Context
    from trainer.steps import Run

SAMPLES = 501  # the last step of an epoch is a smaller one, and pads on an even number of ranks
LENGTH = 8


def small_config(world_size: int, **changes: Any) -> Config:  # noqa: ANN401 - as Config has them
    """Return a configuration for a run of seconds, in two micro-batches a step."""
    config = {
        "samples": SAMPLES,
        "length": LENGTH,
        "batch_size": max(32, 4 * world_size),
        "accumulate": 2,
        "epochs": 100,
        "lr": 1e-2,
        "warmup": 5,
        "workers": 0,
    }
    return Config(**{**config, **changes})


def group_of(context: Context) -> Group:
    """Return the trainer's group; waiting for other ranks is noted in the journal."""
    return Group(context.rank, context.world_size, context.device, waiting=context.journal.waiting)


def small_run(config: Config, group: Group) -> Run:
    """Return a run of a small transformer on generated tokens."""
    data = GeneratedTokens(config.samples, config.length, config.seed, "train")
    return start_run(config, group, lambda: _small_model(config), data)


def _small_model(config: Config) -> Any:  # noqa: ANN401 - a module
    shape = Shape(VOCABULARY, config.length, width=64, heads=2, depth=1)
    return Transformer(shape, is_causal=True, dropout=config.dropout)


def losses_of(run: Run, steps: int | None = None) -> list[float]:
    """Train so many steps, or to the end; return each step's mean loss over all ranks."""
    losses = []
    for sums in train_steps(run):
        losses.append(sums.reduce(run.group).loss)
        if len(losses) == steps:
            break
    return losses
