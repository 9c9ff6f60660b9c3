"""Values whose sums every type holds exactly."""

import pytest

from ddp.patterns import EXACT, period, unit, weights


@pytest.mark.parametrize(
    ("ranks", "dtype", "shares", "longest"),
    [
        (2, "float32", (1, 2), 100),
        (2, "bfloat16", (1, 2), 85),
        (8, "bfloat16", (1, 2, 3, 4, 5, 6, 7, 8), 7),
        (4, "float16", (1, 2, 3, 4), 100),
        (1, "int64", (1,), 100),
    ],
)
def test_ranks_give_different_shares(
    ranks: int, dtype: str, shares: tuple[int, ...], longest: int
) -> None:
    """So a rank that was counted twice, or left out, changes the sum."""
    assert weights(ranks, dtype) == shares
    assert period(ranks, dtype) == longest


@pytest.mark.parametrize("dtype", EXACT)
@pytest.mark.parametrize("ranks", [1, 2, 3, 22, 23, 64, 255, 256, 257, 1000, 4096])
def test_every_sum_is_an_integer_that_the_type_holds(ranks: int, dtype: str) -> None:
    """The largest sum stays within what the type counts exactly; for int64, with its unit."""
    total = sum(weights(ranks, dtype)) * period(ranks, dtype)
    limit = {"float32": 2**24, "float16": 2048, "bfloat16": 256, "int64": 2**63 - 1}[dtype]
    assert 0 < total * unit(dtype) <= limit


def test_an_integer_that_went_through_float32_is_another() -> None:
    """The unit of int64 has more bits than float32's fraction."""
    assert unit("int64") == 2**40 + 1
    assert unit("float32") == 1
