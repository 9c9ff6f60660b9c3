"""Phase: DDP's averaged gradients beside one process' gradients on the same batches."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed
from torch.distributed.algorithms.join import Join
from torch.nn.parallel import DistributedDataParallel

from ddp.bits import bits_of, compare_ranks
from ddp.findings import Finding
from ddp.gradient_compare import LIMITS, compare, gradients, name_of, parameters
from ddp.gradient_model import SEED, BranchedModel, Model, loss_sum, make_batch, make_model

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ddp.context import Context

SAMPLES_PER_RANK = 4
MICRO_BATCHES = 2
STEPS = 3
FULL_STEPS = 50
LEARNING_RATE = 0.05
# Small enough for several buckets: the model has 5 KiB in float32.
BUCKET_MEBIBYTES = 1 / 1024


def check_gradients(context: Context) -> Finding:
    """Compare gradients in float64 and float32, and parameters after some steps.

    For equal shards, for accumulation under `no_sync`, for parameters that some
    ranks or none use, and for ranks that run out of batches.  Every rank
    computes what one process gets on the global batch, and compares with that.
    """
    with _full_precision():
        worst = {
            dtype: max(
                _check_equal_shards(context, dtype),
                _check_accumulation(context, dtype),
                _check_unused(context, dtype),
                _check_uneven(context, dtype),
            )
            for dtype in LIMITS
        }
        steps = FULL_STEPS if context.is_full else STEPS
        _check_bits(context, steps)
    found = ", ".join(
        f"{name_of(dtype)} {worst[dtype]:.1e} (limit {limit:.0e})"
        for dtype, limit in LIMITS.items()
    )
    data = {
        f"{name_of(dtype)}_relative_difference": difference for dtype, difference in worst.items()
    }
    return Finding(
        "equal shards, no_sync, unused parameters and uneven batches: largest relative "
        f"difference {found}; after {steps} steps parameters are bit-equal on all ranks",
        {**data, "steps": steps},
    )


@contextlib.contextmanager
def _full_precision() -> Iterator[None]:
    """Have float32 computed in float32.

    On GPUs TF32 is the default for convolutions, and for matrices where
    TORCH_ALLOW_TF32_CUBLAS_OVERRIDE is set.
    """
    switches = (torch.backends.cudnn, torch.backends.cuda.matmul)
    before = [switch.allow_tf32 for switch in switches]
    for switch in switches:
        switch.allow_tf32 = False
    try:
        yield
    finally:
        for switch, value in zip(switches, before):  # noqa: B905 - needs Python 3.10
            switch.allow_tf32 = value


def _check_equal_shards(context: Context, dtype: Any) -> float:  # noqa: ANN401 - torch's types
    tokens, targets = make_batch(context.world_size * SAMPLES_PER_RANK, context.device)
    alone = _model(context, Model, dtype)
    _mean_loss(alone, tokens, targets).backward()
    replica = _replica(context, Model, dtype, bucket_cap_mb=BUCKET_MEBIBYTES)
    if context.fault == "wrong-gradient":
        # A lambda: DDP refuses a hook whose annotations are texts.
        replica.register_comm_hook(None, lambda _, bucket: _doubled_mean(bucket))
    mine = _shard(context.rank)
    _backward(context, _mean_loss(replica, tokens[mine], targets[mine]))
    return compare("", dtype, gradients(replica.module), gradients(alone))


def _check_accumulation(context: Context, dtype: Any) -> float:  # noqa: ANN401 - torch's types
    tokens, targets = make_batch(context.world_size * SAMPLES_PER_RANK, context.device)
    alone = _model(context, Model, dtype)
    _mean_loss(alone, tokens, targets).backward()
    replica = _replica(context, Model, dtype, gradient_as_bucket_view=True)
    mine = _shard(context.rank)
    sent = 1 if context.fault == "sync-early" else MICRO_BATCHES
    parts = zip(tokens[mine].chunk(MICRO_BATCHES), targets[mine].chunk(MICRO_BATCHES))  # noqa: B905 - needs Python 3.10
    for number, (some_tokens, some_targets) in enumerate(parts, start=1):
        is_sent = number == sent
        with contextlib.nullcontext() if is_sent else replica.no_sync():
            loss = _mean_loss(replica, some_tokens, some_targets) / MICRO_BATCHES
            if is_sent:
                _backward(context, loss)
            else:
                loss.backward()
    return compare(" accumulated under no_sync", dtype, gradients(replica.module), gradients(alone))


def _check_unused(context: Context, dtype: Any) -> float:  # noqa: ANN401 - torch's types
    """Even ranks' samples use the side layer, odd ranks' don't, nobody uses the idle one."""
    tokens, targets = make_batch(context.world_size * SAMPLES_PER_RANK, context.device)
    ranks = torch.arange(context.world_size, device=context.device)
    has_side = (ranks % 2 == 0).repeat_interleave(SAMPLES_PER_RANK)
    alone = _model(context, BranchedModel, dtype)
    _mean_loss(alone, tokens, targets, has_side).backward()
    replica = _replica(context, BranchedModel, dtype, find_unused_parameters=True)
    mine = _shard(context.rank)
    _backward(context, _mean_loss(replica, tokens[mine], targets[mine], has_side[mine]))
    if context.fault == "lost-unused":
        replica.module.side.weight.grad.zero_()
    what = " with unused parameters"
    return compare(what, dtype, gradients(replica.module), gradients(alone))


def _check_uneven(context: Context, dtype: Any) -> float:  # noqa: ANN401 - torch's types
    """Train where rank 0 has most batches and the last rank the smallest; compare parameters.

    A step's loss is the mean over all samples that the ranks have in that step,
    so each rank's sum is weighted by world size / samples: DDP divides by the
    world size, also when ranks have run out (`divide_by_initial_world_size`).
    """
    plan = uneven_batches(context.world_size)
    alone = _model(context, Model, dtype)
    optimizer = torch.optim.SGD(alone.parameters(), lr=LEARNING_RATE)
    for step, sizes in enumerate(plan):
        optimizer.zero_grad()
        tokens, targets = make_batch(sum(sizes), context.device, SEED + step)
        _mean_loss(alone, tokens, targets).backward()
        optimizer.step()
    replica = _replica(context, Model, dtype)
    optimizer = torch.optim.SGD(replica.parameters(), lr=LEARNING_RATE)
    with context.journal.waiting("the ranks that have more batches"), Join([replica]):
        for step, sizes in enumerate(plan):
            if sizes[context.rank] == 0:
                break
            optimizer.zero_grad()
            tokens, targets = make_batch(sum(sizes), context.device, SEED + step)
            start = sum(sizes[: context.rank])
            mine = slice(start, start + sizes[context.rank])
            samples = sizes[context.rank] * context.world_size
            if context.fault != "unweighted":
                samples = sum(sizes)
            loss = loss_sum(replica(tokens[mine]), targets[mine]) * context.world_size / samples
            loss.backward()
            optimizer.step()
    what = " after uneven batches"
    return compare(what, dtype, parameters(replica.module), parameters(alone), "parameter")


def uneven_batches(world_size: int) -> tuple[tuple[int, ...], ...]:
    """Return the samples of every rank, for each step; 0 where a rank has run out."""
    full, few = SAMPLES_PER_RANK, 1
    last = (full,) * (world_size - 1) + (few,)
    return ((full,) * world_size, last, (full,) + (0,) * (world_size - 1))


def _check_bits(context: Context, steps: int) -> None:
    """Train some steps from other parameters on every rank; all must end with rank 0's bits."""
    replica = _replica(context, Model, torch.float32, seed=SEED + context.rank)
    optimizer = torch.optim.AdamW(replica.parameters(), lr=LEARNING_RATE)
    mine = _shard(context.rank)
    for step in range(steps):
        samples = context.world_size * SAMPLES_PER_RANK
        tokens, targets = make_batch(samples, context.device, SEED + step)
        optimizer.zero_grad()
        _backward(context, _mean_loss(replica, tokens[mine], targets[mine]))
        optimizer.step()
    bits = bits_of(replica)
    if context.fault == "drift":  # by the smallest step that float32 has
        bits[0] += 1
    compare_ranks(context, bits, f"{steps} steps")


def _doubled_mean(bucket: Any) -> Any:  # noqa: ANN401 - torch's types
    """Reduce as a wrong communication hook does: as if every share were counted twice."""
    mean = bucket.buffer().div_(distributed.get_world_size())
    work = distributed.all_reduce(mean, async_op=True)
    return work.get_future().then(lambda future: future.value()[0] * 2)


def _model(context: Context, kind: type[Model], dtype: Any, seed: int = SEED) -> Model:  # noqa: ANN401
    return make_model(kind, context.device, dtype, seed)


def _replica(
    context: Context,
    kind: type[Model],
    dtype: Any,  # noqa: ANN401 - torch's types
    seed: int = SEED,
    **options: Any,  # noqa: ANN401 - DDP's
) -> Any:  # noqa: ANN401 - a module
    model = _model(context, kind, dtype, seed)
    with context.journal.waiting("DDP's start"):
        return DistributedDataParallel(model, **device_ids(context), **options)


def device_ids(context: Context) -> dict[str, Any]:
    """Return DDP's argument for the rank's device, as its documentation asks."""
    return {"device_ids": [context.device]} if context.device.type == "cuda" else {}


def _shard(rank: int) -> slice:
    return slice(rank * SAMPLES_PER_RANK, (rank + 1) * SAMPLES_PER_RANK)


def _mean_loss(model: Any, tokens: Any, targets: Any, *more: Any) -> Any:  # noqa: ANN401 - tensors
    return loss_sum(model(tokens, *more), targets) / len(tokens)


def _backward(context: Context, loss: Any) -> None:  # noqa: ANN401 - a tensor
    with context.journal.waiting("all_reduce of gradients"):
        loss.backward()
        loss.item()  # NCCL's calls return before they are done
