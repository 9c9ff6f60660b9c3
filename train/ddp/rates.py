"""From the times of steps to throughput and efficiency.  Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True)
class Step:
    """Seconds of one rank's step: with gradients reduced over all ranks, and without."""

    together: float
    alone: float


def rank_counts(ranks: int) -> tuple[int, ...]:
    """Return 1, 2, 4, ... and `ranks`."""
    counts = [1]
    while counts[-1] * 2 < ranks:
        counts.append(counts[-1] * 2)
    return tuple(counts) if ranks == 1 else (*counts, ranks)


def scaling_row(
    steps: Sequence[Step], batch: int, first: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Return a row of the report for these ranks, each with `batch` samples a step.

    `first` is the row of one rank, None where this is it.  `imbalance` is the
    slowest rank's time without reduction by the fastest one's.
    """
    slowest = max(step.together for step in steps)
    alone = [step.alone for step in steps]
    rate = len(steps) * batch / slowest
    one = rate if first is None else first["samples_per_s"]
    return {
        "ranks": len(steps),
        "samples_per_s": rate,
        "efficiency": rate / (len(steps) * one),
        # Of the slowest rank's step: what waits for a slow rank is no communication.
        "communication_share": max(0.0, 1.0 - max(alone) / slowest),
        "imbalance": max(alone) / min(alone),
    }
