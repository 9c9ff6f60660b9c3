"""Phase: what the trainer saves is whole, complete, and enough to go on exactly."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from ddp.building import group_of, losses_of, small_config, small_run
from ddp.cutshort import cut_short
from ddp.errors import PhaseFailed
from ddp.findings import Finding
from trainer.checkpoint import load, read, save
from trainer.group import Group
from trainer.seeding import seed_all

if TYPE_CHECKING:
    from pathlib import Path

    from ddp.context import Context
    from trainer.arguments import Config
    from trainer.steps import Run

# Saved in the middle of an epoch; what is compared goes over its end, and half of it too:
# the last step of an epoch is the one with padding, which one rank less has otherwise.
BEFORE, AFTER = 12, 12
# Another number of ranks adds the same values in another order.
LIMIT = 1e-4
PREFIXES = ("module.", "_orig_mod.")  # DistributedDataParallel's, torch.compile's


def check_checkpoint(context: Context) -> Finding:
    """Save, go on; load, and go on in the same way, also on other numbers of ranks."""
    config = small_config(context.world_size, max_steps=BEFORE + AFTER)
    file = context.folder / "checkpoint.pt"
    run = small_run(config, group_of(context))
    losses_of(run, BEFORE)
    save(file, run)
    _to_all_hosts(context, file)
    state = read(file)
    if context.fault == "wrapped-keys":
        state["model"] = run.replica.state_dict()
    _check_content(context, run, state)
    _check_exact(context, config, file, run)
    size = cut_short(context, state)
    others = _check_other_ranks(context, replace(config, dropout=0.0), file)
    return Finding(
        f"{AFTER} steps after loading are bit for bit those of the run that was not "
        f"interrupted; a save that is killed leaves the one before; {others['detail']}",
        {
            "size_bytes": size,
            "steps_compared": AFTER,
            "parameters": len(state["model"]),
            "other_ranks": others,
        },
    )


def _to_all_hosts(context: Context, file: Path) -> None:
    """Bring rank 0's file to the hosts that don't share its folder."""
    content = [file.read_bytes() if context.rank == 0 else None]
    with context.journal.waiting("broadcast of the checkpoint"):
        distributed.broadcast_object_list(content, src=0)
    if context.rank > 0 and context.local_rank == 0:
        file.write_bytes(content[0] or b"")
    with context.journal.waiting("the checkpoint on all hosts"):
        distributed.barrier()


def _check_content(context: Context, run: Run, state: dict[str, Any]) -> None:
    keys = set(state["model"])
    wrapped = sorted(key for key in keys if key.startswith(PREFIXES))
    if wrapped:
        raise PhaseFailed(f"the key {wrapped[0]} carries a wrapper's prefix")
    places = {
        "model": keys == set(run.model.state_dict()),
        "optimizer": len(state["optimizer"]["state"]) == len(list(run.model.parameters())),
        "scheduler": state["scheduler"]["last_epoch"] == BEFORE,
        "progress": state["progress"]["step"] == BEFORE,
        "sampler": state["sampler"]["size"] == run.config.samples,
        "random": len(state["random"]) == context.world_size,
    }
    for name, is_right in places.items():
        if not is_right:
            raise PhaseFailed(
                f"the checkpoint's {name} is not that of the run after {BEFORE} steps"
            )


def _check_exact(context: Context, config: Config, file: Path, run: Run) -> None:
    expected = losses_of(run)
    second = small_run(config, group_of(context))
    if context.world_size > 2:  # noqa: PLR2004 - two numbers have the same sum in any order
        # After its first step DDP arranges its buckets anew, and three or more ranks
        # add in another order from then on: have that behind us, as `run` has.
        losses_of(second, 2)
    if not load(file, second):
        raise PhaseFailed("the checkpoint that was saved is not found")
    if context.fault == "forget-random":
        seed_all("elsewhere")
    if context.fault == "forget-optimizer":
        second.optimizer.state.clear()
    if context.fault == "forget-place":
        second.progress = replace(second.progress, epoch=0, step_in_epoch=0)
    got = losses_of(second)
    for step, (loss, wanted) in enumerate(zip(got, expected), BEFORE):  # noqa: B905 - Python 3.9
        if loss != wanted:
            raise PhaseFailed(
                f"after loading, the loss in step {step} is {loss!r}, and {wanted!r} in the run "
                "that was not interrupted"
            )
    ours, theirs = second.model.state_dict(), run.model.state_dict()
    differing = [name for name, value in ours.items() if not torch.equal(value, theirs[name])]
    if differing or len(got) != len(expected):
        raise PhaseFailed(f"after loading, {differing or 'the number of steps'} is another one")


def _check_other_ranks(context: Context, config: Config, file: Path) -> dict[str, Any]:
    """Go on from `file` on one rank less, save there, and go on from that on all ranks.

    Without dropout, which each rank draws for itself: then only rounding differs.
    """
    fewer = context.world_size - 1
    if fewer == 0:
        return {"detail": "other numbers of ranks not run: there is one", "outcome": "not run"}
    with context.journal.waiting("a group of fewer ranks"):
        processes = distributed.new_group(
            range(fewer), timeout=timedelta(seconds=context.plan.group_timeout)
        )
    group = group_of(context)
    reference = losses_of(_resume(config, group, file))
    other = context.folder / "checkpoint-of-fewer.pt"
    half = AFTER // 2
    losses: list[float] = []
    if context.rank < fewer:
        part = Group(context.rank, fewer, context.device, processes, context.journal.waiting)
        run = _resume(config, part, file)
        _lose_rank(context, run)
        losses = losses_of(run, half)
        save(other, run)
        _compare(losses, reference[:half], context.world_size, fewer)
    _to_all_hosts(context, other)
    run = _resume(config, group, other)
    _lose_rank(context, run)
    _compare(losses_of(run), reference[half:], fewer, context.world_size)
    return {
        "outcome": "pass",
        "detail": f"{context.world_size} -> {fewer} -> {context.world_size} ranks give the same "
        f"losses within {LIMIT:.0e}",
        "ranks": [context.world_size, fewer, context.world_size],
    }


def _resume(config: Config, group: Group, file: Path) -> Run:
    run = small_run(config, group)
    load(file, run)
    return run


def _lose_rank(context: Context, run: Run) -> None:
    """Shrink the batch by one rank's share, as who counts it by rank does, if that is the fault."""
    if context.fault == "lose-rank":
        run.loader.sampler.batch_size -= run.config.batch_size // context.world_size


def _compare(got: list[float], expected: list[float], before: int, after: int) -> None:
    pairs = list(zip(got, expected))  # noqa: B905 - `strict` needs Python 3.10
    worst = max((abs(loss / wanted - 1) for loss, wanted in pairs), default=math.inf)
    if len(got) != len(expected) or not worst <= LIMIT:
        raise PhaseFailed(
            f"saved on {before} ranks and loaded on {after}, the losses differ by {worst:.1e} "
            f"relative, limit {LIMIT:.0e}"
        )
