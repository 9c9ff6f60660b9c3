"""How many threads a rank shall use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


def threads_per_rank(environ: Mapping[str, str], cores: int, local_ranks: int) -> int:
    """Return how many threads a rank shall use: OMP_NUM_THREADS, or its share of the cores.

    torchrun sets OMP_NUM_THREADS=1 for several ranks when nobody has set it, so
    that value counts as not set.
    """
    given = environ.get("OMP_NUM_THREADS", "")
    if given.isdecimal() and int(given) > 0 and not (local_ranks > 1 and given == "1"):
        return int(given)
    return max(1, cores // local_ranks)
