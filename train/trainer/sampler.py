"""Which rank gets which samples in which step: every sample once, on any number of ranks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sized


def share_of(chunk: list[int], rank: int, world_size: int) -> list[int]:
    """Return a rank's part of one batch; padding is marked by `~index`, which is negative.

    DDP needs as many samples' worth of work on every rank, so a rank that comes
    out one short repeats a sample, which then has no weight.
    """
    longest = -(-len(chunk) // world_size)
    mine = chunk[rank::world_size]
    return mine + [~(mine or chunk)[0]] * (longest - len(mine))


class StepSampler:
    """A batch sampler for DataLoader: yields micro-batches, `accumulate` of them a step.

    Like torch's DistributedSampler it shuffles by `seed + epoch` (the order is
    the same one) and deals the samples to the ranks in turn.  Unlike it, it
    marks what it repeats, so that nothing is counted twice; a batch holds the
    same samples on any number of ranks; and it can begin in the middle of an
    epoch.  So a run goes on where it was, also on more or fewer ranks.
    """

    def __init__(
        self,
        data: Sized,
        batch_size: int,
        rank: int,
        world_size: int,
        *,
        accumulate: int = 1,
        seed: int = 0,
        shuffle: bool = True,
    ) -> None:
        """Split `data` into steps of `batch_size` samples of all ranks together."""
        self.size = len(data)
        self.batch_size = batch_size
        self.seed = seed
        self._rank = rank
        self._world_size = world_size
        self._accumulate = accumulate
        self._shuffle = shuffle
        self._epoch = 0
        self._start = 0

    @property
    def steps(self) -> int:
        """The number of steps in a whole epoch."""
        return -(-self.size // self.batch_size)

    def set_epoch(self, epoch: int, start: int = 0) -> None:
        """Choose the order; begin at step `start`.  Call it before each epoch."""
        self._epoch = epoch
        self._start = start

    def real_samples(self, step: int) -> int:
        """Return how many samples a step has on all ranks together, padding left out."""
        return min(self.batch_size, self.size - step * self.batch_size)

    def micro_batches(self, step: int) -> int:
        """Return how many micro-batches a step has; the same on all ranks."""
        share = -(-self.real_samples(step) // self._world_size)
        return -(-share // -(-share // self._accumulate))

    def __len__(self) -> int:
        """Return how many micro-batches are left in the epoch."""
        return sum(self.micro_batches(step) for step in range(self._start, self.steps))

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the micro-batches from step `start` to the epoch's end."""
        order = self._order()
        for step in range(self._start, self.steps):
            chunk = order[step * self.batch_size : (step + 1) * self.batch_size]
            share = share_of(chunk, self._rank, self._world_size)
            length = -(-len(share) // self._accumulate)
            for first in range(0, len(share), length):
                yield share[first : first + length]

    def _order(self) -> list[int]:
        if not self._shuffle:
            return list(range(self.size))
        import torch  # noqa: PLC0415 - the dealing itself is tested without it

        generator = torch.Generator().manual_seed(self.seed + self._epoch)
        order: list[int] = torch.randperm(self.size, generator=generator).tolist()
        return order


class Marked:
    """A data set whose items say whether they are real or padding of `StepSampler`'s."""

    def __init__(self, data: Any) -> None:  # noqa: ANN401 - any data set
        """Wrap a data set of (inputs, targets)."""
        self._data = data

    def __len__(self) -> int:
        """Return the number of real samples."""
        return len(self._data)

    def __getitem__(self, index: int) -> tuple[Any, Any, bool]:
        """Return inputs, targets, and whether the sample counts."""
        is_real = index >= 0
        inputs, targets = self._data[index if is_real else ~index]
        return inputs, targets, is_real
