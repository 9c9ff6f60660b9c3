"""The learning rate, step by step."""

from __future__ import annotations

import math


def rate(step: int, warmup: int, last: int) -> float:
    """Return the part of the learning rate in a step: a line up, then a cosine down to 0."""
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, last - warmup))))
