"""Phase: a small real task, trained by the trainer's own parts, twice from the same seed."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from ddp.bits import bits_of, compare_ranks
from ddp.building import group_of, losses_of, small_config, small_run
from ddp.compiling import why_not_compiled
from ddp.errors import PhaseFailed
from ddp.findings import Finding
from trainer.data import GeneratedTokens, Loader
from trainer.steps import evaluate, train_steps

if TYPE_CHECKING:
    from ddp.context import Context
    from trainer.arguments import Config
    from trainer.metrics import Metrics
    from trainer.steps import Run

STEPS = 40
# Of 32 symbols one is right: without learning, the accuracy is 0.03.
ACCURACY = 0.9
STRIKE_STEP = 3
# Compiled kernels add the same values in another order.
COMPILED_STEPS = 4
COMPILED_LIMIT = 1e-4


def check_training(context: Context) -> Finding:
    """Reach `ACCURACY` on samples never trained on, in `STEPS` steps, and the same twice.

    Then, where that is supported, once with bfloat16 autocast and, with --full,
    some steps with torch.compile.
    """
    config = small_config(context.world_size, max_steps=STEPS)
    run = small_run(config, group_of(context))
    losses = _train(context, run)
    metrics = _validate(run)
    _check_accuracy(metrics, "")
    bits = bits_of(run.model)
    if context.fault == "diverge":  # by the smallest step that float32 has
        bits[0] += 1
    compare_ranks(context, bits, "training")
    again = small_run(_second(context, config), group_of(context))
    _compare_runs(losses, losses_of(again), bits, bits_of(again.model))
    variants = {
        "bfloat16": _variant(context, replace(config, bf16=True), _why_not_bf16(context)),
        "compile": _compiled(context, config, why_not_compiled(context)),
    }
    return Finding(
        f"accuracy {metrics.accuracy:.3f} in {STEPS} steps (limit {ACCURACY:g}), parameters "
        "bit-equal on all ranks, the same losses in a second run; "
        + "; ".join(f"{name} {found['detail']}" for name, found in variants.items()),
        {
            "steps": STEPS,
            "accuracy": metrics.accuracy,
            "accuracy_limit": ACCURACY,
            "samples_validated": metrics.samples,
            "first_loss": losses[0],
            "last_loss": losses[-1],
            "variants": variants,
        },
    )


def _train(context: Context, run: Run) -> list[float]:
    """Return the loss of every step, averaged over all ranks' samples."""
    if context.fault == "stuck":  # as if this rank's optimizer had no say
        run.scheduler.base_lrs = [0.0]
    losses = []
    for sums in train_steps(run):
        losses.append(sums.reduce(run.group).loss)
        if len(losses) == STRIKE_STEP:
            context.strike()
    return losses


def _second(context: Context, config: Config) -> Config:
    return replace(config, seed=1) if context.fault == "other-seed" else config


def _validate(run: Run) -> Metrics:
    config = run.config
    data = GeneratedTokens(config.samples // 10, config.length, config.seed, "validation")
    return evaluate(run, Loader(config, run.group, data, shuffle=False))


def _check_accuracy(metrics: Metrics, variant: str) -> None:
    if not metrics.accuracy >= ACCURACY:  # in this form, not-a-number fails too
        raise PhaseFailed(
            f"{variant}the accuracy after {STEPS} steps is {metrics.accuracy:.3f}, "
            f"expected {ACCURACY:g} at least"
        )


def _variant(context: Context, config: Config, why_not: str | None) -> dict[str, Any]:
    """Return what another way to train has reached, or why it has not run."""
    if why_not is not None:
        return {"outcome": "not run", "reason": why_not, "detail": f"not run: {why_not}"}
    run = small_run(config, group_of(context))
    losses_of(run)
    metrics = _validate(run)
    _check_accuracy(metrics, "with bfloat16, ")
    compare_ranks(context, bits_of(run.model), "training")
    return {
        "outcome": "pass",
        "accuracy": metrics.accuracy,
        "detail": f"accuracy {metrics.accuracy:.3f}",
    }


def _compiled(context: Context, config: Config, why_not: str | None) -> dict[str, Any]:
    """Compare the first losses of a compiled model with those of the model as it is.

    All steps have the same shape, so that it is compiled once; without dropout,
    which the compiler draws in its own way.
    """
    if why_not is not None:
        return {"outcome": "not run", "reason": why_not, "detail": f"not run: {why_not}"}
    steady = replace(config, dropout=0.0, accumulate=1, samples=4 * config.batch_size)
    expected, got = (
        losses_of(
            small_run(replace(steady, compile=is_compiled), group_of(context)), COMPILED_STEPS
        )
        for is_compiled in (False, True)
    )
    worst = max(abs(loss / wanted - 1) for loss, wanted in zip(got, expected))  # noqa: B905
    if not worst <= COMPILED_LIMIT:
        raise PhaseFailed(
            f"with torch.compile, the losses of {COMPILED_STEPS} steps differ by {worst:.1e} "
            f"relative, limit {COMPILED_LIMIT:.0e}"
        )
    return {
        "outcome": "pass",
        "relative_difference": worst,
        "detail": f"the same losses within {worst:.1e}",
    }


def _why_not_bf16(context: Context) -> str | None:
    """Return why bfloat16 can't be tried; GPUs of one kind are taken for granted."""
    if context.device.type != "cuda":
        return None
    major, minor = torch.cuda.get_device_capability(context.device)
    return None if major >= 8 else f"compute capability {major}.{minor} is below 8.0"  # noqa: PLR2004


def _compare_runs(losses: list[float], again: list[float], bits: Any, bits_again: Any) -> None:  # noqa: ANN401
    if again != losses:
        step = next(step for step, loss in enumerate(losses) if again[step] != loss)
        raise PhaseFailed(
            f"the same seed gave another loss: {again[step]!r} instead of {losses[step]!r} "
            f"in step {step}"
        )
    if not torch.equal(bits, bits_again):
        raise PhaseFailed("the same seed gave other parameters after the last step")
