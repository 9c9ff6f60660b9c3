"""Whether parameters are the same on all ranks, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from ddp.errors import PhaseFailed

if TYPE_CHECKING:
    from ddp.context import Context


def bits_of(model: Any) -> Any:  # noqa: ANN401 - torch's types
    """Return a module's float32 parameters as one flat int32 tensor."""
    flat = torch.cat([parameter.detach().flatten() for parameter in model.parameters()])
    return flat.view(torch.int32)


def compare_ranks(context: Context, bits: Any, when: str) -> None:  # noqa: ANN401 - a tensor
    """Compare with rank 0's; raises `PhaseFailed` for a rank that differs, `when` first."""
    reference = bits.clone()
    with context.journal.waiting("broadcast of rank 0's parameters"):
        distributed.broadcast(reference, src=0)
        differing = int((bits != reference).sum())
    if differing > 0:
        raise PhaseFailed(
            f"after {when}, {differing} of {len(reference)} parameters are not bit-equal to "
            "rank 0's"
        )
