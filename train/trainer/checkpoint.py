"""What survives a run: all that it needs to go on as if nothing had happened."""

from __future__ import annotations

import os
from dataclasses import asdict
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from ddp.errors import Refused
from trainer.group import on_all
from trainer.seeding import random_state, restore_random_state, seed_all
from trainer.steps import Progress

if TYPE_CHECKING:
    from pathlib import Path

    from trainer.group import Group
    from trainer.steps import Run

FORMAT = "strata.trainer/1"


class NotSavedError(Exception):
    """A checkpoint could not or must not be written; the one before is still there."""


def capture(run: Run) -> dict[str, Any]:
    """Return the state of the run; every rank must call it.

    The random states are those of all ranks, by rank; everything else is the
    same on all of them.
    """
    states: list[Any] = [None] * run.group.world_size
    with run.group.waiting("all_gather of random states"):
        distributed.all_gather_object(
            states, random_state(run.group.device), group=run.group.processes
        )
    return {
        "format": FORMAT,
        "model": run.model.state_dict(),
        "optimizer": run.optimizer.state_dict(),
        "scheduler": run.scheduler.state_dict(),
        "progress": asdict(run.progress),
        "sampler": _sampler(run),
        "random": states,
    }


def write(file: Path, state: dict[str, Any]) -> None:
    """Write `state` to `file`, whole or not at all, also when the machine stops meanwhile."""
    part = file.with_name(f"{file.name}.part")
    with part.open("wb") as stream:
        torch.save(state, stream)
        stream.flush()
        os.fsync(stream.fileno())  # the bytes are on the disk before the name is
    part.replace(file)
    folder = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # and so is the name
    finally:
        os.close(folder)


def save(file: Path, run: Run) -> None:
    """Have rank 0 write a checkpoint while all wait; every rank must call it.

    Raises `NotSavedError` on all ranks when it can't be written, or when a
    parameter is no number any more: the checkpoint before is worth more then.
    """
    lost = [
        name for name, value in run.model.named_parameters() if not bool(value.isfinite().all())
    ]
    if lost:  # the same on all ranks, as the parameters are
        raise NotSavedError(
            f"parameter {lost[0]} has values that are no numbers after step {run.progress.step}; "
            "the checkpoint before, if any, is still there; try a smaller --lr, or more --warmup"
        )
    state = capture(run)
    problem: list[str | None] = [None]
    if run.group.is_first:
        try:
            write(file, state)
        except (OSError, RuntimeError) as error:  # RuntimeError: torch's own writer gives up
            hint = "see that there is room for it; the one before, if any, is still there"
            problem = [f"could not save {file}: {error}; {hint}"]
    _from_first(problem, run.group, "rank 0's checkpoint")
    if problem[0] is not None:
        raise NotSavedError(problem[0])


def load(file: Path, run: Run) -> bool:
    """Put the run where the checkpoint in `file` was; False where there is none on any rank.

    On more ranks than have saved, those that are new draw random numbers of
    their own.  Raises `Refused` on all ranks when the file is not there on some,
    is of another step on them, can't be read, or doesn't belong to this run.
    """
    state, everywhere = on_all(run.group, lambda: _find(file), "places in the run")
    if any(other != everywhere[0] for other in everywhere):
        steps = [None if other is None else other["step"] for other in everywhere]
        raise Refused(
            "--out",
            f"the ranks find different checkpoints in {file}: of the steps {steps}",
            "give a folder that all hosts share",
        )
    if state is None:
        return False
    _check(file, state, run)
    run.model.load_state_dict(state["model"])
    run.optimizer.load_state_dict(state["optimizer"])
    run.scheduler.load_state_dict(state["scheduler"])
    run.progress = Progress(**state["progress"])
    if run.group.rank < len(state["random"]):
        restore_random_state(state["random"][run.group.rank], run.group.device)
    else:
        seed_all(run.config.seed, "rank", run.group.rank, "step", run.progress.step)
    return True


def _find(file: Path) -> tuple[dict[str, Any] | None, dict[str, int] | None]:
    if not file.exists():
        return None, None
    state = read(file)
    return state, state["progress"]


def read(file: Path) -> dict[str, Any]:
    """Return the checkpoint in `file`, on the CPU; it holds data only, and runs no code.

    Raises `Refused` when it can't be read, or is none of the trainer's.
    """
    try:
        state = torch.load(file, map_location="cpu", weights_only=True)
    except Exception as error:  # what is damaged can raise anything
        why = str(error).partition("\n")[0] or type(error).__name__
        if isinstance(error, UnpicklingError):  # torch's text says how to run the file's code
            why = "it is no file of torch.save, or holds more than data"
        raise Refused(
            str(file), f"can't be read: {why}", "give another --out, or take the file away"
        ) from error
    if not isinstance(state, dict) or state.get("format") != FORMAT:
        raise Refused(str(file), f"is no checkpoint of {FORMAT}", "give another --out")
    return state


def _check(file: Path, state: dict[str, Any], run: Run) -> None:
    was, now = state["sampler"], _sampler(run)
    changed = [f"{name} {was[name]} -> {now[name]}" for name in now if was[name] != now[name]]
    if changed:
        raise Refused(
            str(file),
            f"is of a run with another order of samples: {', '.join(changed)}",
            "give what the run began with, or another --out",
        )
    shapes, ours = _shapes(state["model"]), _shapes(run.model.state_dict())
    names = [name for name in {**ours, **shapes} if shapes.get(name) != ours.get(name)]
    if names:
        raise Refused(
            str(file),
            f"is of another model: {len(names)} parameters differ, {names[0]} has the shape "
            f"{shapes.get(names[0], 'none')} there and {ours.get(names[0], 'none')} here",
            "give the --model, --length and data that the run began with, or another --out",
        )


def _shapes(parameters: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: tuple(value.shape) for name, value in parameters.items()}


def _sampler(run: Run) -> dict[str, int]:
    sampler = run.loader.sampler
    return {"size": sampler.size, "batch_size": sampler.batch_size, "seed": sampler.seed}


def _from_first(values: list[Any], group: Group, what: str) -> None:
    with group.waiting(what):
        distributed.broadcast_object_list(values, src=0, group=group.processes)
