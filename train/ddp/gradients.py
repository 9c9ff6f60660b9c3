"""Phase: DDP's averaged gradient beside one process' gradient on the same batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch.nn.parallel import DistributedDataParallel

from ddp.errors import PhaseFailed

if TYPE_CHECKING:
    from ddp.context import Context

SEED = 20
SAMPLES_PER_RANK = 8
FEATURES = 16
LIMIT = 1e-12


def check_gradients(context: Context) -> str:
    """Compare every parameter's gradient in float64, within `LIMIT` relative.

    The difference is relative to the largest entry of the parameter's gradient.
    All shards have the same size, so the mean of their mean losses' gradients
    is the gradient of the global batch's mean loss.
    """
    torch.manual_seed(SEED)
    size = context.world_size * SAMPLES_PER_RANK
    inputs = torch.randn(size, FEATURES, dtype=torch.float64).to(context.device)
    targets = torch.randn(size, 1, dtype=torch.float64).to(context.device)
    alone, shared = _model(context), _model(context)
    shared.load_state_dict(alone.state_dict())

    torch.nn.functional.mse_loss(alone(inputs), targets).backward()
    _backward_together(context, shared, inputs, targets)

    worst = 0.0
    for (name, one), other in zip(  # noqa: B905 - `strict` needs Python 3.10
        alone.named_parameters(), shared.parameters()
    ):
        difference = _difference(other.grad, one.grad)
        if not difference <= LIMIT:  # in this form, not-a-number fails too
            raise PhaseFailed(
                f"DDP's gradient of {name} differs from one process' by {difference:.1e} "
                f"relative, limit {LIMIT:.0e}"
            )
        worst = max(worst, difference)
    return f"float64, largest relative difference {worst:.1e}, limit {LIMIT:.0e}"


def _model(context: Context) -> Any:  # noqa: ANN401 - a module
    return torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)
    ).to(context.device, torch.float64)


def _backward_together(context: Context, model: Any, inputs: Any, targets: Any) -> None:  # noqa: ANN401
    mine = slice(context.rank * SAMPLES_PER_RANK, (context.rank + 1) * SAMPLES_PER_RANK)
    with context.journal.waiting("DDP's start"):
        replica = DistributedDataParallel(model, **device_ids(context))
    loss = torch.nn.functional.mse_loss(replica(inputs[mine]), targets[mine])
    with context.journal.waiting("all_reduce of gradients"):
        loss.backward()
        loss.item()
    if context.fault == "wrong-gradient":  # as if this rank's share had been counted twice
        for parameter in model.parameters():
            parameter.grad *= 2


def device_ids(context: Context) -> dict[str, Any]:
    """Return DDP's argument for the rank's device, as its documentation asks."""
    return {"device_ids": [context.device]} if context.device.type == "cuda" else {}


def _difference(got: Any, expected: Any) -> float:  # noqa: ANN401 - tensors
    return float((got - expected).abs().max() / expected.abs().max())
