"""Algorithm and bus bandwidth, by the definitions of nccl-tests (doc/PERFORMANCE.md).  Pure."""

from __future__ import annotations

KIB, MIB = 1 << 10, 1 << 20
GIGA = 1e9


def bus_factor(operation: str, ranks: int) -> float:
    """Return what the algorithm bandwidth is multiplied by to get the bus bandwidth.

    It makes the number comparable with the speed of the slowest link, whatever
    the number of ranks; with one rank nothing crosses a link, and it is 0 for
    all but broadcast.
    """
    share = (ranks - 1) / ranks
    return {
        "all_reduce": 2 * share,
        "all_gather": share,
        "reduce_scatter": share,
        "all_to_all": share,
        "broadcast": 1.0,
    }[operation]


def measure(operation: str, size_bytes: int, seconds: float, ranks: int) -> dict[str, float]:
    """Return what one size has taken, as a row of the report; GB/s are 1e9 bytes a second.

    `size_bytes` is nccl-tests' S: the rank's buffer for all_reduce and
    broadcast, the data of all ranks together for the others.
    """
    algorithm = size_bytes / seconds / GIGA
    return {
        "size_bytes": size_bytes,
        "seconds": seconds,
        "algbw_gb_per_s": algorithm,
        "busbw_gb_per_s": algorithm * bus_factor(operation, ranks),
    }


def sizes(largest: int, *, is_full: bool) -> tuple[int, ...]:
    """Return sizes in bytes, from 1 KiB to `largest`: 4 times the one before, or 16 times."""
    step = 4 if is_full else 16
    found = [largest]
    while found[0] > KIB:
        found.insert(0, max(KIB, found[0] // step))
    return tuple(found)
