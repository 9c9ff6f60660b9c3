"""How long training waits for its data loader."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed
from torch.utils.data import DataLoader, Dataset

if TYPE_CHECKING:
    from ddp.context import Context
    from ddp.workload import Workload

WORKERS = 1
WARM_BATCHES = 2
QUICK_BATCHES, FULL_BATCHES = 10, 60
# Seconds that --inject RANK:slow-loader adds to the loading of all batches: many steps' time,
# and less than the other ranks wait.
SLOWNESS = 6.0


class _Tokens(Dataset):  # type: ignore[misc]  # torch is not typed here
    def __init__(self, size: int, workload: Workload, delay: float) -> None:
        self._size = size
        self._shape = workload.shape
        self._delay = delay

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, index: int) -> Any:  # noqa: ANN401 - a tensor
        time.sleep(self._delay)
        generator = torch.Generator().manual_seed(index)
        shape = self._shape
        return torch.randint(shape.vocabulary, (shape.length + 1,), generator=generator)


def loader_wait_share(context: Context, workload: Workload) -> float:
    """Return the largest share, over all ranks, of its time that a rank waits for batches.

    The workers' start is not counted.
    """
    batches = FULL_BATCHES if context.is_full else QUICK_BATCHES
    samples = (WARM_BATCHES + batches) * workload.batch
    delay = SLOWNESS / samples if context.fault == "slow-loader" else 0.0
    data = _Tokens(samples, workload, delay)
    loader = DataLoader(
        data, workload.batch, num_workers=WORKERS, pin_memory=workload.device.type == "cuda"
    )
    model = workload.make_model()
    waited, began = 0.0, time.perf_counter()
    asked = began
    for number, tokens in enumerate(loader):
        now = time.perf_counter()
        if number == WARM_BATCHES:
            waited, began = 0.0, now
        elif number > WARM_BATCHES:
            waited += now - asked
        workload.step(model, tokens)
        workload.finish()
        asked = time.perf_counter()
    share = torch.tensor([waited / (asked - began)], device=context.device)
    with context.journal.waiting("all_reduce of the waiting for data"):
        distributed.all_reduce(share, distributed.ReduceOp.MAX)
        return float(share.item())
