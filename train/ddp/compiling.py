"""Whether torch.compile can be tried here, decided by all ranks alike."""

from __future__ import annotations

import logging
import os
import shutil
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

if TYPE_CHECKING:
    from ddp.context import Context


def why_not_compiled(context: Context) -> str | None:
    """Return why torch.compile is not tried; prepare its environment where it is.

    Every rank must call it.  It takes half a minute, so only with --full; and
    it needs a C++ compiler and Python's headers, which images may lack.
    """
    if not context.is_full:
        return "only with --full"
    # Its cache and its helpers belong to this check and end with it.
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(context.folder / f"inductor-{context.rank}")
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    # It warns of DDP's own profiler marks, which it leaves out.
    torch._logging.set_logs(dynamo=logging.ERROR)  # noqa: SLF001 - documented by this name
    reasons: list[Any] = [None] * context.world_size
    with context.journal.waiting("all_gather of what a compiler needs"):
        distributed.all_gather_object(reasons, _missing(on_gpu=context.device.type == "cuda"))
    return next((reason for reason in reasons if reason is not None), None)


def _missing(*, on_gpu: bool) -> str | None:
    # Triton, for GPUs, compiles its launcher as C; the CPU's kernels are C++.
    names = ("cc", "gcc", "clang") if on_gpu else ("g++", "c++", "clang++")
    chosen = os.environ.get("CC" if on_gpu else "CXX")
    if not any(shutil.which(name) for name in ((chosen,) if chosen else names)):
        return f"there is no {'C' if on_gpu else 'C++'} compiler ({', '.join(names)})"
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return None if header.exists() else f"there is no {header}"
