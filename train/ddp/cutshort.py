"""A save that is killed in its middle, by the kernel, in a process of its own."""

from __future__ import annotations

import os
import resource
import signal
import sys
import warnings
from typing import TYPE_CHECKING, Any

import torch

from ddp.errors import PhaseFailed
from trainer.checkpoint import read, write

if TYPE_CHECKING:
    from pathlib import Path

    from ddp.context import Context

SECONDS = 10


def cut_short(context: Context, state: dict[str, Any]) -> int:
    """Save twice over a checkpoint, killed the first time; return the file's size in bytes.

    `state` must be on the CPU.  Each rank does it with a file of its own.
    """
    file = context.folder / f"cut-short-{context.rank}.pt"
    write(file, state)
    before = file.read_bytes()
    if _save_and_die(file, state, len(before) // 2, in_place=context.fault == "torn-save") == 0:
        raise PhaseFailed("the save that was to be killed in its middle ended well")
    if file.read_bytes() != before:
        raise PhaseFailed("a save that was killed in its middle has changed the checkpoint before")
    read(file)
    write(file, state)
    read(file)
    return len(before)


def _save_and_die(file: Path, state: dict[str, Any], most: int, *, in_place: bool) -> int:
    """Save in a child that the kernel ends at byte `most`; return its wait status."""
    sys.stdout.flush()
    sys.stderr.flush()
    with warnings.catch_warnings():
        # Python 3.12 warns of threads: the child starts none and waits for none.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            signal.alarm(SECONDS)  # it would rather die than hang
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
            if in_place:
                torch.save(state, file)
            else:
                write(file, state)
            os._exit(0)
        finally:  # the rank is the parent: nothing here may go on as one
            os._exit(1)
    return os.waitpid(child, 0)[1]
