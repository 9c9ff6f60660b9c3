"""A run and its steps: what happens between two updates of the parameters."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel

from trainer.data import Loader
from trainer.metrics import Metrics, Sums, sample_losses
from trainer.schedule import rate
from trainer.seeding import seed_all

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from trainer.arguments import Config
    from trainer.group import Group


@dataclass(frozen=True)
class Progress:
    """Where a run is: steps done in all, and the next step's epoch and place in it."""

    step: int = 0
    epoch: int = 0
    step_in_epoch: int = 0


@dataclass
class Run:
    """All that changes while training.  `model` is the bare one: its keys have no prefix."""

    config: Config
    group: Group
    model: Any
    replica: Any
    forward: Callable[[Any], Any]
    optimizer: Any
    scheduler: Any
    loader: Loader
    progress: Progress

    @property
    def steps(self) -> int:
        """The step at which the run ends."""
        return _last_step(self.config, self.loader)


def start_run(config: Config, group: Group, make: Callable[[], Any], data: Any) -> Run:  # noqa: ANN401
    """Return a run at its first step, the same on all ranks but for dropout.

    `make` makes the model, on the CPU and with the seed set.
    """
    seed_all(config.seed, "parameters")
    model = make().to(group.device)
    seed_all(config.seed, "rank", group.rank)
    on_gpu = group.device.type == "cuda"
    with group.waiting("DDP's start"):
        replica = DistributedDataParallel(
            model,
            device_ids=[group.device] if on_gpu else None,
            process_group=group.processes,
        )
    # In this order, as torch's documentation asks: the compiler then keeps the
    # graph open where DDP begins to send.
    forward = torch.compile(replica) if config.compile else replica
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=config.lr, weight_decay=config.weight_decay
    )
    loader = Loader(config, group, data)
    last = _last_step(config, loader)
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: rate(step, config.warmup, last)
    )
    return Run(config, group, model, replica, forward, optimizer, scheduler, loader, Progress())


def _last_step(config: Config, loader: Loader) -> int:
    steps = config.epochs * loader.sampler.steps
    return min(steps, config.max_steps) if config.max_steps else steps


def train_steps(run: Run) -> Iterator[Sums]:
    """Train to the run's end; yield this rank's sums after each step.

    `run.progress` is already that of the next step then: what is saved there
    goes on there.
    """
    while run.progress.step < run.steps:
        epoch = run.progress.epoch
        run.replica.train()
        batches = run.loader.begin(epoch, run.progress.step_in_epoch)
        for number in range(run.progress.step_in_epoch, run.loader.sampler.steps):
            sums = train_step(run, list(islice(batches, run.loader.sampler.micro_batches(number))))
            is_last = number + 1 == run.loader.sampler.steps
            run.progress = Progress(
                run.progress.step + 1,
                epoch + 1 if is_last else epoch,
                0 if is_last else number + 1,
            )
            yield sums
            if run.progress.step == run.steps:
                return


def train_step(run: Run, batches: list[Any]) -> Sums:
    """Update the parameters once, by the mean loss over the real samples of all ranks.

    DDP averages gradients over ranks; so each rank's loss is the sum over its
    real samples, times the ranks, divided by the real samples of them all.
    """
    group = run.group
    real = run.loader.sampler.real_samples(run.progress.step_in_epoch)
    sums = Sums(group.device)
    for number, batch in enumerate(batches):
        inputs, targets, is_real = (part.to(group.device, non_blocking=True) for part in batch)
        is_last = number + 1 == len(batches)
        # Only the last part's backward sends; the others add up in this rank.
        with nullcontext() if is_last else run.replica.no_sync():
            with _autocast(run):
                logits = run.forward(inputs)
            losses = sample_losses(logits, targets)
            loss = (losses * is_real).sum() * (group.world_size / real)
            if is_last:
                with group.waiting(f"all_reduce of gradients, step {run.progress.step}"):
                    loss.backward()
            else:
                loss.backward()
        sums.add(losses, logits, targets, is_real)
    if run.config.clip:
        torch.nn.utils.clip_grad_norm_(run.model.parameters(), run.config.clip)
    run.optimizer.step()
    run.scheduler.step()
    run.optimizer.zero_grad()
    return sums


def evaluate(run: Run, loader: Loader) -> Metrics:
    """Return the metrics over all samples of another data set, each counted once."""
    sums = Sums(run.group.device)
    with run.group.waiting("broadcast of buffers"):  # a normalisation's, which each rank has seen
        for buffer in run.model.buffers():
            distributed.broadcast(buffer, src=0, group=run.group.processes)
    run.model.eval()
    with torch.no_grad(), _autocast(run):
        for batch in loader.begin(0):
            inputs, targets, is_real = (part.to(run.group.device) for part in batch)
            logits = run.model(inputs)
            sums.add(sample_losses(logits, targets), logits, targets, is_real)
    run.model.train()
    return sums.reduce(run.group)


def _autocast(run: Run) -> Any:  # noqa: ANN401 - a context manager
    return torch.autocast(run.group.device.type, torch.bfloat16, enabled=run.config.bf16)
