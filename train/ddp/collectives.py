"""Phase: what all_reduce and broadcast give, beside what they must give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from ddp.errors import PhaseFailed

if TYPE_CHECKING:
    from ddp.context import Context

VALUES = 65536
PERIOD = 100
# A multiple of this does not fit into a float32: an integer sum that takes a
# detour through floating point is found out.
INTEGER_UNIT = 2**40 + 1


def check_collectives(context: Context) -> str:
    """Sum known values over all ranks and broadcast rank 0's; all must be exact.

    Rank r gives (r + 1) * p, so with R ranks the sum is R (R + 1) / 2 * p; the
    float32 values stay under 2**24 and the int64 ones under 2**63 up to 400 ranks.
    """
    ranks = context.world_size
    for dtype, unit in ((torch.float32, 1), (torch.int64, INTEGER_UNIT)):
        pattern = _pattern(context, dtype) * unit
        values = pattern * (context.rank + 1)
        with context.journal.waiting(f"all_reduce of {_name(dtype)}"):
            distributed.all_reduce(values)
            _finish(context)
        if context.fault == "wrong-sum":
            values[-1] += 1
        _compare(values, pattern * (ranks * (ranks + 1) // 2), f"all_reduce of {_name(dtype)}")
        values = pattern.clone() if context.rank == 0 else torch.zeros_like(pattern)
        with context.journal.waiting(f"broadcast of {_name(dtype)}"):
            distributed.broadcast(values, src=0)
            _finish(context)
        _compare(values, pattern, f"broadcast of {_name(dtype)}")
    return f"all_reduce and broadcast of {VALUES} float32 and int64 values are exact"


def _pattern(context: Context, dtype: Any) -> Any:  # noqa: ANN401 - torch's types
    return (torch.arange(VALUES, device=context.device) % PERIOD + 1).to(dtype)


def _finish(context: Context) -> None:
    if context.device.type == "cuda":  # NCCL's calls return before they are done
        torch.cuda.synchronize(context.device)


def _compare(got: Any, expected: Any, what: str) -> None:  # noqa: ANN401 - tensors
    wrong = (got != expected).nonzero().flatten()
    if len(wrong) > 0:
        first = int(wrong[0])
        raise PhaseFailed(
            f"{what} is wrong in {len(wrong)} of {len(got)} values: value {first} is "
            f"{got[first].item()}, expected {expected[first].item()}"
        )


def _name(dtype: object) -> str:
    return str(dtype).removeprefix("torch.")
