"""Phase: every sample once, another order in each epoch, workers with seeds of their own."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import distributed
from torch.utils.data import DistributedSampler, get_worker_info

from ddp.building import group_of, small_config
from ddp.dealt import Loaded, judge_epochs
from ddp.errors import PhaseFailed
from ddp.findings import Finding
from trainer.data import Loader
from trainer.metrics import Sums
from trainer.sampler import StepSampler

if TYPE_CHECKING:
    from ddp.context import Context

WORKERS = 2
BATCH_PER_RANK = 4
BIG = 2**62


class Numbered:
    """Samples that are their own numbers; with what their worker has drawn as targets."""

    def __init__(self, size: int, *, is_seeded_alike: bool) -> None:
        """Make `size` samples; all workers may draw the same on purpose."""
        self._size = size
        self._is_seeded_alike = is_seeded_alike

    def __len__(self) -> int:
        """Return the number of samples."""
        return self._size

    def set_epoch(self, epoch: int) -> None:
        """Do nothing: the samples are the same in every epoch."""

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """Return the index, and the worker with its draws of torch, Python and NumPy."""
        if self._is_seeded_alike:
            np.random.seed(0)  # noqa: NPY002 - the mistake that is to be found
        draws = [
            int(torch.randint(BIG, ())),
            random.randrange(BIG),  # noqa: S311 - no secret is made of it
            int(np.random.randint(BIG)),  # noqa: NPY002 - the global one is to be seen
        ]
        return torch.tensor(index), torch.tensor([get_worker_info().id, *draws])


def check_data(context: Context) -> Finding:
    """Load epochs 0, 1 and 0 again with workers on all ranks, and compare all that came.

    The number of samples is one more than a multiple of the ranks, so that all
    but one of them have padding.
    """
    ranks = context.world_size
    size = 2 * BATCH_PER_RANK * ranks + ranks + 1
    config = small_config(ranks, batch_size=BATCH_PER_RANK * ranks, workers=WORKERS)
    data = Numbered(size, is_seeded_alike=context.fault == "same-workers")
    loader = Loader(config, group_of(context), data)
    epochs = []
    for epoch in (0, 1, 0):
        with context.journal.waiting("all_gather of the samples loaded"):
            epochs.append(_gather(context, _load(context, loader, epoch)))
    judge_epochs(epochs, size)
    counted = _count(context, epochs[0], size)
    _compare_with_torch(context)
    emitted = len(DistributedSampler(data, ranks, context.rank)) * ranks
    workers = len({(row.rank, row.worker) for row in epochs[0]})
    return Finding(
        f"{size} samples on {ranks} ranks: each used once an epoch and counted once (torch's "
        f"DistributedSampler would count {emitted}), another order in each epoch, {workers} "
        "workers with seeds of their own, all of it the same a second time",
        {
            "samples": size,
            "samples_loaded": len(epochs[0]),
            "samples_counted": counted,
            "samples_of_distributed_sampler": emitted,
            "workers": workers,
        },
    )


def _load(context: Context, loader: Loader, epoch: int) -> list[Loaded]:
    """Return what this rank loads in an epoch."""
    if context.fault == "forget-epoch":
        epoch = 0
    rows = []
    for inputs, targets, is_real in loader.begin(epoch):
        for index, (worker, *draws), real in zip(  # noqa: B905 - `strict` needs Python 3.10
            inputs.tolist(), targets.tolist(), is_real.tolist()
        ):
            rows.append(Loaded(context.rank, index, real, worker, tuple(draws)))
    return rows


def _gather(context: Context, rows: list[Loaded]) -> list[Loaded]:
    everywhere: list[Any] = [None] * context.world_size
    distributed.all_gather_object(everywhere, rows)
    return [row for theirs in everywhere for row in theirs]


def _count(context: Context, rows: list[Loaded], size: int) -> int:
    """Return how many samples the trainer's metrics count; their mean must be exact too."""
    sums = Sums(context.device)
    mine = [row for row in rows if row.rank == context.rank]
    indices = torch.tensor([row.index for row in mine], device=context.device)
    is_real = torch.tensor([row.is_real for row in mine], device=context.device)
    if context.fault == "count-padding":
        is_real = torch.ones_like(is_real)
    sums.add(indices.double(), torch.zeros(len(mine), 1, device=context.device), indices, is_real)
    metrics = sums.reduce(group_of(context))
    expected = (size - 1) / 2
    if (metrics.samples, metrics.loss) != (size, expected):
        raise PhaseFailed(
            f"the metrics count {metrics.samples} samples with mean {metrics.loss:g}, expected "
            f"{size} with mean {expected:g}"
        )
    return metrics.samples


def _compare_with_torch(context: Context) -> None:
    """Raise `PhaseFailed` unless the order is that of torch's sampler, where it pads nothing."""
    ranks = context.world_size
    data = range(3 * BATCH_PER_RANK * ranks)
    ours = StepSampler(data, BATCH_PER_RANK * ranks, context.rank, ranks, seed=5)
    theirs = DistributedSampler(data, ranks, context.rank, seed=5)
    ours.set_epoch(2)
    theirs.set_epoch(2)
    if [index for batch in ours for index in batch] != list(theirs):
        raise PhaseFailed("the order of samples is not that of torch's DistributedSampler")
