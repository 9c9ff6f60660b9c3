"""One process' place among the ranks, and its share of the machine."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from torch import distributed

from ddp.cores import usable_cores
from ddp.errors import Refused
from trainer.threads import threads_per_rank

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

Made = TypeVar("Made")


def _unwatched(_what: str) -> AbstractContextManager[None]:
    return nullcontext()


@dataclass(frozen=True)
class Group:
    """The ranks that train together, seen from one of them.

    `processes` is torch's process group (None: the default one), in which
    global rank 0 must be the first.  `waiting(what)` surrounds everything that
    ends only when the other ranks come to it too: `ddp-check` keeps a journal of it.
    """

    rank: int
    world_size: int
    device: Any
    processes: Any = None
    waiting: Callable[[str], AbstractContextManager[None]] = _unwatched

    @property
    def is_first(self) -> bool:
        """Whether this rank speaks and writes for all."""
        return self.rank == 0


def join(timeout: float, threads: int) -> Group:
    """Join the group that torchrun's variables describe; without them, be alone.

    NCCL with one GPU a rank where torch sees GPUs, else gloo on the CPU.
    `timeout` in seconds is how long a rank waits for the others; `threads` 0
    means the rank's share of the usable cores.  Raises `Refused` on all ranks of
    this host when it has fewer GPUs than ranks.
    """
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    local_ranks = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if 0 < gpus < local_ranks:
        raise Refused(
            "torchrun --nproc-per-node",
            f"{local_ranks} ranks on {gpus} GPU: NCCL takes one rank a GPU",
            f"give at most {gpus}, or `gpu`; to train on the CPU, set CUDA_VISIBLE_DEVICES=",
        )
    torch.set_num_threads(threads or threads_per_rank(os.environ, usable_cores(), local_ranks))
    device = torch.device("cuda", local_rank) if gpus else torch.device("cpu")
    if gpus:
        torch.cuda.set_device(device)
    how: dict[str, Any] = {"timeout": timedelta(seconds=timeout)}
    if gpus:
        how["device_id"] = device  # NCCL connects now, and not in the first collective
    if "RANK" not in os.environ:
        how.update(store=distributed.HashStore(), rank=0, world_size=1)
    distributed.init_process_group("nccl" if gpus else "gloo", **how)
    return Group(distributed.get_rank(), distributed.get_world_size(), device)


def on_all(
    group: Group, attempt: Callable[[], tuple[Made, Any]], what: str
) -> tuple[Made, list[Any]]:
    """Have every rank attempt the same; return what this one made, and what each tells of it.

    `attempt` returns what it makes, and what it tells the other ranks.  Where it
    raises `Refused` on any rank, all raise it: none waits for a rank that has ended.
    """
    try:
        made, mine = attempt()
    except Refused as refused:
        _gather(group, refused, what)
        raise
    told = _gather(group, mine, what)
    for rank, theirs in enumerate(told):
        if isinstance(theirs, Refused):
            raise Refused(theirs.where, f"rank {rank}: {theirs.what}", theirs.fix)
    return made, told


def _gather(group: Group, mine: Any, what: str) -> list[Any]:  # noqa: ANN401 - any value
    told: list[Any] = [None] * group.world_size
    with group.waiting(f"all_gather of {what}"):
        distributed.all_gather_object(told, mine, group=group.processes)
    return told
