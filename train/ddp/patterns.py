"""Values of which every rank knows what a collective must make of them.  Pure.

All are integers that the type holds exactly, and so are all sums of them, in
whatever order the backend adds: what comes out must be equal, not near.
"""

from __future__ import annotations

LONGEST_PERIOD = 100
# A multiple of this does not fit into a float32: an integer sum that takes a
# detour through floating point is found out.
INTEGER_UNIT = 2**40 + 1
# The largest integer up to which the type holds all of them (IEEE 754: one more
# than the fraction's bits); for int64 what is left beside the unit.
EXACT = {"float32": 2**24, "float16": 2**11, "bfloat16": 2**8, "int64": 2**22}


def weights(ranks: int, dtype: str) -> tuple[int, ...]:
    """Return by what each rank multiplies the pattern: 1, 2, 3, ... as far as sums stay exact.

    Ranks beyond the number of exact integers give 0.
    """
    limit = EXACT[dtype]
    counted = min(ranks, limit)
    highest = counted
    while highest > 1 and _total(counted, highest) > limit:
        highest -= 1
    return tuple(rank % highest + 1 if rank < limit else 0 for rank in range(ranks))


def _total(ranks: int, highest: int) -> int:
    rounds, rest = divmod(ranks, highest)
    return rounds * highest * (highest + 1) // 2 + rest * (rest + 1) // 2


def period(ranks: int, dtype: str) -> int:
    """Return how many different values, 1, 2, ..., the pattern has before it repeats."""
    return max(1, min(LONGEST_PERIOD, EXACT[dtype] // sum(weights(ranks, dtype))))


def unit(dtype: str) -> int:
    """Return by what all values are multiplied."""
    return INTEGER_UNIT if dtype == "int64" else 1
