"""The whole run, from the command line to the last checkpoint."""

from __future__ import annotations

import hashlib
import math
import os
import sys
import time
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from ddp.errors import BAD_ARGUMENTS, DONE, FAILED, Refused
from trainer.arguments import parse
from trainer.checkpoint import NotSavedError, load, save
from trainer.data import Loader, listing_of, make_data
from trainer.files import UnreadableError
from trainer.group import join, on_all
from trainer.log import Line, Log
from trainer.metrics import Metrics, Sums
from trainer.models import make_model
from trainer.preemption import STOPPED, Preemption, StoppedError
from trainer.steps import evaluate, start_run, train_steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from trainer.arguments import Config
    from trainer.group import Group
    from trainer.steps import Run


class LostError(Exception):
    """The loss is no number any more: there is nothing to go on with."""


def main(argv: Sequence[str]) -> int:
    """Train as `argv` says; return the exit code.

    0 done, 2 bad arguments, 6 training failed, 143 stopped by SIGTERM and saved.
    """
    try:
        config = parse(argv)
        if config.deterministic:
            # cuBLAS reads this when it starts; it repeats its bits only so.
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            torch.use_deterministic_algorithms(mode=True)
            torch.backends.cudnn.benchmark = False
        train(config, join(config.timeout, config.threads))
        distributed.destroy_process_group()  # only here: with a lost rank it might wait for ever
    except Refused as refused:
        if os.environ.get("LOCAL_RANK", "0") == "0":  # the others of this host say the same
            print(refused, file=sys.stderr)
        return BAD_ARGUMENTS
    except (LostError, NotSavedError, UnreadableError) as error:
        print(f"error: rank {os.environ.get('RANK', '0')}: {error}", file=sys.stderr)
        return FAILED
    except StoppedError as stopped:
        if os.environ.get("RANK", "0") == "0":
            print(stopped, file=sys.stderr)
        return STOPPED
    return DONE


def train(config: Config, group: Group) -> Metrics:
    """Train to the end, from the checkpoint in `config.out` where there is one.

    Returns the metrics of the last validation.  Raises `StoppedError` on all ranks
    after a SIGTERM to any of them, with a checkpoint of the last step.
    """
    data, validation = _same_data(config, group)
    run = start_run(config, group, lambda: make_model(config, data.classes), data)
    checkpoint = config.out / "checkpoint.pt"
    has_resumed = load(checkpoint, run)
    log = _open_log(run, checkpoint if has_resumed else None) if group.is_first else None
    validator = Loader(config, group, validation, shuffle=False)
    epoch, saved = run.progress.epoch, run.progress.step
    sums, since = Sums(group.device), time.monotonic()
    metrics: Metrics | None = None
    is_stopped = False
    with Preemption(group, run.progress.step) as preemption:
        for done in train_steps(run):
            sums.merge(done)
            step = run.progress.step
            is_last = step == run.steps
            if log:
                log.progress(step)
            is_stopped = not is_last and preemption.is_agreed(step)
            if step % config.log_every == 0 or is_last or is_stopped:
                since = _tell(run, log, epoch, sums, since)
            if is_stopped:  # at once: a validation may take longer than there is time
                save(checkpoint, run)
                saved = step
            if run.progress.epoch > epoch or is_last:
                metrics = _validate(run, validator, log, epoch)
                epoch, since = run.progress.epoch, time.monotonic()
            if is_stopped:
                break
            if step - saved >= config.save_every or is_last:
                _check_loss(run, sums)
                save(checkpoint, run)
                saved = step
    if log:
        log.close()
    if is_stopped:
        raise StoppedError(
            f"stopped by SIGTERM after step {saved}; the same command goes on from {checkpoint}"
        )
    return metrics or evaluate(run, validator)  # it was at its end when it was resumed


def _validate(run: Run, validator: Loader, log: Log | None, epoch: int) -> Metrics:
    metrics, step = evaluate(run, validator), run.progress.step
    if log:
        log.write(Line(step, epoch, "validation", metrics.loss, metrics.accuracy, _rate(run), 0))
    return metrics


def _open_log(run: Run, resumed: Path | None) -> Log:
    folder = run.config.out
    try:
        folder.mkdir(parents=True, exist_ok=True)
        log = Log(folder, run.progress.step, run.steps)
    except OSError as error:
        raise NotSavedError(
            f"--out {folder}: {error}; give a folder that can be written"
        ) from error
    if resumed:
        print(f"goes on after step {run.progress.step}, from {resumed}", file=sys.stderr)
    return log


def _tell(run: Run, log: Log | None, epoch: int, sums: Sums, since: float) -> float:
    """Log the mean of all ranks since the line before; return the time of this one."""
    metrics = _mean(run, sums)
    now = time.monotonic()
    if log:
        speed = metrics.samples / max(1e-9, now - since)
        step = run.progress.step
        log.write(Line(step, epoch, "train", metrics.loss, metrics.accuracy, _rate(run), speed))
    return now


def _check_loss(run: Run, sums: Sums) -> None:
    """Raise `LostError` on all ranks when the loss since the last line is no number."""
    so_far = Sums(run.group.device)
    so_far.merge(sums)
    _mean(run, so_far)


def _mean(run: Run, sums: Sums) -> Metrics:
    metrics = sums.reduce(run.group)
    if not math.isfinite(metrics.loss):  # all ranks see the same number, and all stop
        raise LostError(
            f"the loss is {metrics.loss} at step {run.progress.step}; try a smaller --lr, "
            "or more --warmup"
        )
    return metrics


def _rate(run: Run) -> float:
    rate: float = run.scheduler.get_last_lr()[0]
    return rate


def _same_data(config: Config, group: Group) -> tuple[Any, Any]:
    """Return the data sets; raises `Refused` on all ranks when one sees others than rank 0."""

    def attempt() -> tuple[tuple[Any, Any], tuple[int, str]]:
        data, validation = make_data(config)
        listing = hashlib.sha256(repr(listing_of(data)).encode()).hexdigest()
        return (data, validation), (len(data), listing)

    found, everywhere = on_all(group, attempt, "the data's files")
    first = everywhere[0]
    for rank, other in enumerate(everywhere):
        if other != first:
            raise Refused(
                "--data",
                f"rank {rank} finds other files in {config.data} than rank 0: "
                f"{other[0]} samples and {first[0]}",
                "give every host the same files under the same path",
            )
    return found
