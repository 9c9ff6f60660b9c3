"""What happens in which step: the learning rate, and when ranks ask each other."""

from __future__ import annotations

import math

ASK_EVERY = 0.5  # seconds between two questions whether any rank got SIGTERM
MOST_STEPS = 100  # however quick they are: they may become slower


def rate(step: int, warmup: int, last: int) -> float:
    """Return the part of the learning rate in a step: a line up, then a cosine down to 0."""
    if step < warmup:
        return (step + 1) / (warmup + 1)
    return 0.5 * (1 + math.cos(math.pi * min(1.0, (step - warmup) / max(1, last - warmup))))


def steps_between(pace: float) -> int:
    """Return how many steps of `pace` seconds fit between two questions, one at least."""
    return max(1, min(MOST_STEPS, int(ASK_EVERY / max(pace, 1e-9))))
