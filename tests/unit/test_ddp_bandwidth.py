"""Bandwidths by nccl-tests' definitions."""

import pytest

from ddp.bandwidth import MIB, bus_factor, measure, sizes


@pytest.mark.parametrize(
    ("operation", "ranks", "factor"),
    [
        ("all_reduce", 2, 1.0),
        ("all_reduce", 8, 1.75),
        ("all_gather", 4, 0.75),
        ("reduce_scatter", 8, 0.875),
        ("all_to_all", 2, 0.5),
        ("broadcast", 8, 1.0),
        ("all_reduce", 1, 0.0),
    ],
)
def test_bus_factors_are_those_of_nccl_tests(operation: str, ranks: int, factor: float) -> None:
    """They are in its doc/PERFORMANCE.md."""
    assert bus_factor(operation, ranks) == factor


def test_a_gigabyte_is_a_billion_bytes() -> None:
    """1e9 bytes in half a second are 2 GB/s, and 3.5 GB/s on the bus of 8 ranks."""
    assert measure("all_reduce", 10**9, 0.5, 8) == {
        "size_bytes": 10**9,
        "seconds": 0.5,
        "algbw_gb_per_s": 2.0,
        "busbw_gb_per_s": 3.5,
    }


@pytest.mark.parametrize(
    ("largest", "is_full", "expected"),
    [
        (16 * MIB, False, (1024, 4096, 65536, MIB, 16 * MIB)),
        (256 * MIB, False, (1024, 4096, 65536, MIB, 16 * MIB, 256 * MIB)),
        (4 * MIB, True, (1024, 4096, 16384, 65536, 262144, MIB, 4 * MIB)),
    ],
)
def test_sizes_go_from_a_kibibyte_to_the_largest(
    largest: int, *, is_full: bool, expected: tuple[int, ...]
) -> None:
    """In steps of 16, or of 4 in the full check."""
    assert sizes(largest, is_full=is_full) == expected
