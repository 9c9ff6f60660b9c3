"""SIGTERM: all ranks end after the same step, with a checkpoint to go on from."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from trainer.schedule import steps_between

if TYPE_CHECKING:
    from typing import Self

    from trainer.group import Group

# 128 and the signal's number, as a shell says it.  It is a failure to torchrun: one
# that ends the other ranks too, and starts all of them again where restarts are allowed.
STOPPED = 128 + signal.SIGTERM


class StoppedError(Exception):
    """The run was asked to end, and is saved."""


class Preemption:
    """Notes a SIGTERM to this rank, as long as it is entered; enter it in the main thread.

    `docker stop`, Slurm and Kubernetes send it, and torchrun hands it on to all
    ranks of its host; ranks of other hosts learn of it here.
    """

    def __init__(self, group: Group, step: int) -> None:
        """Watch a run that has done `step` steps."""
        self._group = group
        self._is_asked = self._is_stopping = False
        self._step = self._next = step
        self._since = time.monotonic()
        self._before: Any = signal.SIG_DFL
        self._is_over = multiprocessing.Event()  # shared with the loading workers

    def __enter__(self) -> Self:
        """Take SIGTERM, which ended this process until now."""
        self._before = signal.signal(signal.SIGTERM, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        """Leave SIGTERM to whoever had it, unless the run stops.

        torchrun sends it to ranks that are a little later than the first to end:
        it must not change how they end.
        """
        self._is_over.set()
        if not self._is_stopping:
            signal.signal(signal.SIGTERM, self._before)

    def _note(self, _number: int, _frame: object) -> None:
        self._is_asked = True

    def note_in_worker(self, _number: int, _frame: object) -> None:
        """End a loading worker, but only where the run is over: torch ends its workers so."""
        if self._is_over.is_set():
            os._exit(0)

    def is_agreed(self, step: int) -> bool:
        """Tell whether any rank was asked to end; every rank must call it after each step.

        To ask the others costs a GPU its queue of work, so they are asked every
        few steps: as many as the slowest rank does in `schedule.ASK_EVERY` seconds,
        the same number on all ranks.
        """
        if step < self._next:
            return False
        now = time.monotonic()
        pace = (now - self._since) / max(1, step - self._step)
        values = torch.tensor([float(self._is_asked), pace], device=self._group.device)
        with self._group.waiting("all_reduce of SIGTERM"):
            distributed.all_reduce(values, op=distributed.ReduceOp.MAX, group=self._group.processes)
            asked, slowest = values.tolist()
        self._step, self._since = step, now
        self._next = step + steps_between(slowest)
        self._is_stopping = bool(asked)
        return self._is_stopping


def leave_to_rank(_worker: int) -> None:
    """Have a loading worker ignore SIGTERM while its rank takes it.

    torchrun sends it to a rank's whole process group; a worker that died of it
    would end the step that is to be finished.  It ends with its rank.
    """
    owner = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    if isinstance(owner, Preemption):
        signal.signal(signal.SIGTERM, owner.note_in_worker)
