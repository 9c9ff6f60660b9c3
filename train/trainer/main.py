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
from trainer.data import Loader, make_data
from trainer.group import join
from trainer.log import Line, Log
from trainer.metrics import Metrics, Sums
from trainer.models import make_model
from trainer.steps import evaluate, start_run, train_steps

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trainer.arguments import Config
    from trainer.group import Group
    from trainer.steps import Run


class LostError(Exception):
    """The loss is no number any more: there is nothing to go on with."""


def main(argv: Sequence[str]) -> int:
    """Train as `argv` says; return the exit code: 0, 2 bad arguments, 6 training failed."""
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
        if os.environ.get("RANK", "0") == "0":  # the others would say the same
            print(refused, file=sys.stderr)
        return BAD_ARGUMENTS
    except (LostError, NotSavedError) as error:
        print(f"error: rank {os.environ.get('RANK', '0')}: {error}", file=sys.stderr)
        return FAILED
    return DONE


def train(config: Config, group: Group) -> Metrics:
    """Train to the end, from the checkpoint in `config.out` where there is one.

    Returns the metrics of the last validation.
    """
    data, validation = make_data(config)
    _compare_data(config, group, data)
    run = start_run(config, group, lambda: make_model(config, data.classes), data)
    checkpoint = config.out / "checkpoint.pt"
    has_resumed = load(checkpoint, run)
    log = _open_log(run) if group.is_first else None
    if log and has_resumed:
        print(f"goes on after step {run.progress.step}, from {checkpoint}", file=sys.stderr)
    validator = Loader(config, group, validation, shuffle=False)
    epoch, saved = run.progress.epoch, run.progress.step
    sums, since = Sums(group.device), time.monotonic()
    metrics: Metrics | None = None
    for done in train_steps(run):
        sums.merge(done)
        step = run.progress.step
        is_last = step == run.steps
        if log:
            log.progress(step)
        if step % config.log_every == 0 or is_last:
            since = _tell(run, log, epoch, sums, since)
        if run.progress.epoch > epoch or is_last:
            metrics = evaluate(run, validator)
            if log:
                log.write(
                    Line(step, epoch, "validation", metrics.loss, metrics.accuracy, _rate(run), 0)
                )
            epoch, since = run.progress.epoch, time.monotonic()
        if step - saved >= config.save_every or is_last:
            save(checkpoint, run)
            saved = step
    if log:
        log.close()
    return metrics or evaluate(run, validator)  # it was at its end when it was resumed


def _open_log(run: Run) -> Log:
    folder = run.config.out
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return Log(folder, run.progress.step, run.steps)
    except OSError as error:
        raise NotSavedError(
            f"--out {folder}: {error}; give a folder that can be written"
        ) from error


def _tell(run: Run, log: Log | None, epoch: int, sums: Sums, since: float) -> float:
    """Log the mean of all ranks since the line before; return the time of this one."""
    metrics = sums.reduce(run.group)
    if not math.isfinite(metrics.loss):  # all ranks see the same number, and all stop
        raise LostError(
            f"the loss is {metrics.loss} at step {run.progress.step}; try a smaller --lr, "
            "or more --warmup"
        )
    now = time.monotonic()
    if log:
        speed = metrics.samples / max(1e-9, now - since)
        step = run.progress.step
        log.write(Line(step, epoch, "train", metrics.loss, metrics.accuracy, _rate(run), speed))
    return now


def _rate(run: Run) -> float:
    rate: float = run.scheduler.get_last_lr()[0]
    return rate


def _compare_data(config: Config, group: Group, data: Any) -> None:  # noqa: ANN401 - a data set
    """Raise `Refused` on all ranks when a rank sees other data than rank 0."""
    items = getattr(data, "items", None) or len(data)
    mine = (len(data), hashlib.sha256(repr(items).encode()).hexdigest())
    everywhere: list[Any] = [None] * group.world_size
    with group.waiting("all_gather of the data's size"):
        distributed.all_gather_object(everywhere, mine, group=group.processes)
    other = [rank for rank, theirs in enumerate(everywhere) if theirs != everywhere[0]]
    if other:
        raise Refused(
            "--data",
            f"rank {other[0]} finds other samples in {config.data} than rank 0: "
            f"{everywhere[other[0]][0]} and {everywhere[0][0]}",
            "give every host the same files under the same path",
        )
