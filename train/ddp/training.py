"""Phase: a small real task, trained twice from the same seed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import distributed
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

from ddp.errors import PhaseFailed
from ddp.gradients import device_ids

if TYPE_CHECKING:
    from ddp.context import Context

SEED = 30
FEATURES = 8
SAMPLES_PER_RANK = 64
BATCH_PER_RANK = 16
EPOCHS = 10
LEARNING_RATE = 0.1
STRIKE_STEP = 3
# The last epoch's mean loss must be at most this part of the first one's.
LOSS_FACTOR = 0.5


def check_training(context: Context) -> str:
    """Train twice; loss falls, parameters are bit-equal, both runs are the same."""
    losses, parameters = _train(context)
    if context.fault == "diverge":  # by the smallest step that float32 has
        parameters[0] = torch.nextafter(parameters[0], parameters[0] + 1)
    _compare_ranks(context, parameters)
    steps = len(losses) // EPOCHS
    first, last = sum(losses[:steps]) / steps, sum(losses[-steps:]) / steps
    if not last <= LOSS_FACTOR * first:  # in this form, not-a-number fails too
        raise PhaseFailed(
            f"the mean loss went from {first:.4g} in the first epoch to {last:.4g} in the last, "
            f"which is more than {LOSS_FACTOR:g} of it"
        )
    again, parameters_again = _train(context)
    if again != losses:
        step = next(step for step, loss in enumerate(losses) if again[step] != loss)
        raise PhaseFailed(
            f"the same seed gave another loss: {again[step]!r} instead of {losses[step]!r} "
            f"in step {step}"
        )
    if not torch.equal(_bits(parameters_again), _bits(parameters)):
        raise PhaseFailed("the same seed gave other parameters after the last step")
    return (
        f"mean loss of an epoch {first:.4g} -> {last:.4g} in {len(losses)} steps, parameters "
        "bit-equal on all ranks, the same losses in a second run"
    )


def _train(context: Context) -> tuple[list[float], Any]:
    """Return the loss of every step, averaged over all ranks, and the parameters."""
    data, model = _data(context), _model(context)
    with context.journal.waiting("DDP's start"):
        replica = DistributedDataParallel(model, **device_ids(context))
    sampler = DistributedSampler(data, context.world_size, context.rank, seed=SEED)
    loader = DataLoader(data, BATCH_PER_RANK, sampler=sampler)
    optimizer = torch.optim.SGD(model.parameters(), lr=LEARNING_RATE, momentum=0.9)
    losses: list[float] = []
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        for inputs, targets in loader:
            if len(losses) == STRIKE_STEP:
                context.strike()
            prediction = replica(inputs.to(context.device))
            loss = torch.nn.functional.mse_loss(prediction, targets.to(context.device))
            optimizer.zero_grad()
            losses.append(_backward(context, loss, len(losses)))
            optimizer.step()
    return losses, torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def _backward(context: Context, loss: Any, step: int) -> float:  # noqa: ANN401 - a tensor
    """Leave the averaged gradients in the model; return the loss averaged over all ranks."""
    with context.journal.waiting(f"all_reduce of gradients, step {step}"):
        loss.backward()
        mean = loss.detach() / context.world_size
        distributed.all_reduce(mean)
        return float(mean.item())


def _data(context: Context) -> Any:  # noqa: ANN401 - a data set
    """Return a smooth function of the inputs, the same on every rank."""
    generator = torch.Generator().manual_seed(SEED)
    size = context.world_size * SAMPLES_PER_RANK
    inputs = torch.randn(size, FEATURES, generator=generator)
    weights = torch.randn(FEATURES, 1, generator=generator)
    return TensorDataset(inputs, torch.sin(inputs @ weights / 2))


def _model(context: Context) -> Any:  # noqa: ANN401 - a module
    # Every rank starts from other parameters: only DDP makes them equal.
    torch.manual_seed(SEED + context.rank)
    return torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1)
    ).to(context.device)


def _compare_ranks(context: Context, parameters: Any) -> None:  # noqa: ANN401 - a tensor
    reference = _bits(parameters).clone()
    with context.journal.waiting("broadcast of rank 0's parameters"):
        distributed.broadcast(reference, src=0)
        differing = int((_bits(parameters) != reference).sum())
    if differing > 0:
        raise PhaseFailed(
            f"after training, {differing} of {len(reference)} parameters are not bit-equal to "
            "rank 0's"
        )


def _bits(parameters: Any) -> Any:  # noqa: ANN401 - tensors
    return parameters.view(torch.int32)
