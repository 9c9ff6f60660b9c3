"""Every collective as a trial: a call, where its result lies, and what must lie there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from ddp.patterns import LONGEST_PERIOD, period, unit, weights

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK_STEP, RANK_STEP = 7, 3
# torch 2.13 has new names for these two, and warns of the old ones.
_gather: Any = getattr(distributed, "all_gather_single", None) or (
    distributed.all_gather_into_tensor
)
_scatter: Any = getattr(distributed, "reduce_scatter_single", None) or (
    distributed.reduce_scatter_tensor
)


@dataclass(frozen=True)
class Trial:
    """One collective on one size; `size_bytes` is nccl-tests' S."""

    call: Callable[[], Any]
    result: Any
    expected: Any
    size_bytes: int


@dataclass(frozen=True)
class Values:
    """What one rank needs to make its trials: `size_bytes` is S at most, `dtype` torch's name."""

    rank: int
    ranks: int
    dtype: str
    device: Any
    size_bytes: int

    @property
    def itemsize(self) -> int:
        """Bytes of a value."""
        return int(torch.empty(0, dtype=getattr(torch, self.dtype)).element_size())

    @property
    def whole(self) -> int:
        """Values in a buffer of S bytes."""
        return max(1, self.size_bytes // self.itemsize)

    @property
    def block(self) -> int:
        """Values of one rank, where S is the data of all ranks together."""
        return max(1, self.whole // self.ranks)

    def pattern(self, count: int, start: int, longest: int) -> Any:  # noqa: ANN401 - a tensor
        """Return `count` values 1, 2, ..., `longest`, 1, ... that begin at the place `start`."""
        places = torch.arange(start, start + longest, device=self.device)
        once = (places % longest + 1).to(getattr(torch, self.dtype)) * unit(self.dtype)
        return once.repeat(count // longest + 1)[:count]


def _all_reduce_sum(values: Values) -> Trial:
    shares = weights(values.ranks, values.dtype)
    pattern = values.pattern(values.whole, 0, period(values.ranks, values.dtype))
    buffer = pattern * shares[values.rank]
    expected = pattern * sum(shares)
    return Trial(lambda: distributed.all_reduce(buffer), buffer, expected, _bytes(buffer))


def _all_reduce_max(values: Values) -> Trial:
    # At every place another rank has the largest value; the others have less.
    expected = values.pattern(values.whole, 0, LONGEST_PERIOD)
    lack = values.pattern(values.whole, values.rank, values.ranks) - unit(values.dtype)
    buffer = expected - lack
    maximum = distributed.ReduceOp.MAX
    return Trial(lambda: distributed.all_reduce(buffer, maximum), buffer, expected, _bytes(buffer))


def _broadcast(values: Values) -> Trial:
    source = values.ranks - 1
    expected = values.pattern(values.whole, 0, LONGEST_PERIOD)
    buffer = expected.clone() if values.rank == source else torch.zeros_like(expected)
    return Trial(
        lambda: distributed.broadcast(buffer, src=source), buffer, expected, _bytes(buffer)
    )


def _all_gather(values: Values) -> Trial:
    parts = [
        values.pattern(values.block, RANK_STEP * rank, LONGEST_PERIOD)
        for rank in range(values.ranks)
    ]
    sent, expected = parts[values.rank], torch.cat(parts)
    result = torch.zeros_like(expected)
    return Trial(lambda: _gather(result, sent), result, expected, _bytes(result))


def _reduce_scatter(values: Values) -> Trial:
    shares = weights(values.ranks, values.dtype)
    longest = period(values.ranks, values.dtype)
    parts = [
        values.pattern(values.block, BLOCK_STEP * block, longest) for block in range(values.ranks)
    ]
    sent = torch.cat(parts) * shares[values.rank]
    result = torch.zeros_like(parts[0])
    expected = parts[values.rank] * sum(shares)
    return Trial(lambda: _scatter(result, sent), result, expected, _bytes(sent))


def _all_to_all(values: Values) -> Trial:
    def part(source: int, target: int) -> Any:  # noqa: ANN401 - a tensor
        start = RANK_STEP * source + BLOCK_STEP * target
        return values.pattern(values.block, start, LONGEST_PERIOD)

    sent = torch.cat([part(values.rank, target) for target in range(values.ranks)])
    expected = torch.cat([part(source, values.rank) for source in range(values.ranks)])
    result = torch.zeros_like(expected)
    return Trial(
        lambda: distributed.all_to_all_single(result, sent), result, expected, _bytes(result)
    )


def _bytes(tensor: Any) -> int:  # noqa: ANN401 - a tensor
    return int(tensor.numel() * tensor.element_size())


# By the report's label: nccl-tests' operation, which has the bus factor, and how a
# trial of it is made.
TRIALS: dict[str, tuple[str, Callable[[Values], Trial]]] = {
    "all_reduce (sum)": ("all_reduce", _all_reduce_sum),
    "all_reduce (max)": ("all_reduce", _all_reduce_max),
    "broadcast": ("broadcast", _broadcast),
    "all_gather": ("all_gather", _all_gather),
    "reduce_scatter": ("reduce_scatter", _reduce_scatter),
    "all_to_all": ("all_to_all", _all_to_all),
}
