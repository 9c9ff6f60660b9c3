"""What one process got beside what DDP got, within the limits of each type."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from ddp.errors import PhaseFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

# Largest difference, relative to the largest entry of a parameter's gradient.
LIMITS = {torch.float64: 1e-12, torch.float32: 1e-5}


def gradients(model: Any) -> list[tuple[str, Any]]:  # noqa: ANN401 - a module
    """Return name and gradient of every parameter; None where there is none."""
    return [(name, parameter.grad) for name, parameter in model.named_parameters()]


def parameters(model: Any) -> list[tuple[str, Any]]:  # noqa: ANN401 - a module
    """Return name and values of every parameter."""
    return [(name, parameter.detach()) for name, parameter in model.named_parameters()]


def compare(
    where: str,
    dtype: Any,  # noqa: ANN401 - torch's types
    got: Sequence[tuple[str, Any]],
    expected: Sequence[tuple[str, Any]],
    what: str = "gradient",
) -> float:
    """Return the largest relative difference; raise `PhaseFailed` where one is over the limit."""
    worst = 0.0
    for (name, ours), (_, truth) in zip(got, expected):  # noqa: B905 - needs Python 3.10
        difference = relative_difference(ours, truth)
        if not difference <= LIMITS[dtype]:  # in this form, not-a-number fails too
            raise PhaseFailed(
                f"DDP's {what} of {name}{where} differs from one process' by {difference:.1e} "
                f"relative in {name_of(dtype)}, limit {LIMITS[dtype]:.0e}"
            )
        worst = max(worst, difference)
    return worst


def relative_difference(got: Any, expected: Any) -> float:  # noqa: ANN401 - tensors, or None
    """Return the largest difference relative to the largest expected entry.

    None is the gradient of a parameter that nobody used: 0.0 where both are
    None, infinite where one is.
    """
    if got is None or expected is None:
        return 0.0 if got is expected else math.inf
    difference, scale = (float(t.abs().max()) for t in (got - expected, expected))
    if scale == 0.0:
        return 0.0 if difference == 0.0 else math.inf
    return difference / scale


def name_of(dtype: object) -> str:
    """Return a type's name, such as float32."""
    return str(dtype).removeprefix("torch.")
