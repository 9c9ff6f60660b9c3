"""Shared memory for the workers of data loaders."""

import pytest

from ddp.errors import PhaseFailed
from ddp.shared_memory import Need, judge_shared_memory

MIB = 1 << 20
GIB = 1 << 30
BATCH = 16 * 3 * 224 * 224 * 4


@pytest.mark.parametrize(("ranks", "free"), [(1, 64 * MIB), (2, GIB), (16, GIB), (2, 10 * BATCH)])
def test_enough_is_enough(ranks: int, free: int) -> None:
    """Each rank needs five batches: two for each of two workers, and one in use."""
    assert Need(ranks, BATCH).bytes == ranks * 5 * BATCH
    judge_shared_memory(free, Need(ranks, BATCH))


@pytest.mark.parametrize(
    ("ranks", "free", "flag"),
    [
        (2, 64 * MIB, "--shm-size 1g"),
        (2, 10 * BATCH - 1, "--shm-size 1g"),
        (64, GIB, "--shm-size 3g"),
    ],
)
def test_too_little_is_told_with_size_and_remedy(ranks: int, free: int, flag: str) -> None:
    """Docker's 64 MiB are too little for two ranks (case D1)."""
    with pytest.raises(PhaseFailed) as failed:
        judge_shared_memory(free, Need(ranks, BATCH))
    assert str(failed.value).startswith(f"/dev/shm has {free // MIB} MiB free; {ranks} ranks")  # noqa: S108 - a text
    assert flag in str(failed.value)
