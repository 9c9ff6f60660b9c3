"""What the samples that ranks and workers loaded must look like.  Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ddp.errors import PhaseFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

LIBRARIES = ("torch", "Python's random", "NumPy")


@dataclass(frozen=True)
class Loaded:
    """One sample that one rank loaded.

    `is_real`: not there as padding; `draws`: the number that the worker then
    drew from each of `LIBRARIES`.
    """

    rank: int
    index: int
    is_real: bool
    worker: int
    draws: tuple[int, ...]


def judge_epochs(epochs: Sequence[Sequence[Loaded]], size: int) -> None:
    """Raise `PhaseFailed` unless epochs 0, 1 and 0 again are as they must be.

    `size` is the number of samples in the data set.
    """
    for epoch, rows in zip((0, 1, 0), epochs):  # noqa: B905 - `strict` needs Python 3.10
        _each_once(rows, size, epoch)
        _no_draw_twice(rows)
    first, second, again = ([(row.rank, row.index) for row in rows] for rows in epochs)
    if first == second:
        raise PhaseFailed("epochs 0 and 1 have the same order of samples")
    if first != again:
        raise PhaseFailed("the same seed and epoch gave another order of samples")
    for number, library in enumerate(LIBRARIES):
        draws = [[row.draws[number] for row in rows] for rows in epochs]
        if draws[0] != draws[2]:
            raise PhaseFailed(f"the same seed gave workers other random numbers of {library}")
        if set(draws[0]) & set(draws[1]):
            raise PhaseFailed(f"epochs 0 and 1 have random numbers of {library} in common")


def _each_once(rows: Sequence[Loaded], size: int, epoch: int) -> None:
    times = Counter(row.index for row in rows if row.is_real)
    right = dict.fromkeys(range(size), 1)
    wrong = [index for index in sorted({*right, *times}) if times[index] != right.get(index, 0)]
    if wrong:
        raise PhaseFailed(
            f"in epoch {epoch}, {len(wrong)} of {size} samples are not used exactly once: sample "
            f"{wrong[0]} is used {times[wrong[0]]} times"
        )


def _no_draw_twice(rows: Sequence[Loaded]) -> None:
    for number, library in enumerate(LIBRARIES):
        seen: dict[int, Loaded] = {}
        for row in rows:
            other = seen.setdefault(row.draws[number], row)
            if other is not row:
                raise PhaseFailed(
                    f"worker {row.worker} of rank {row.rank} and worker {other.worker} of rank "
                    f"{other.rank} drew the same random number of {library}"
                )
