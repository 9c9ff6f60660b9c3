"""Whether torch.compile can be tried here, decided by all ranks alike."""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Any

import torch
from torch import distributed

from ddp.compiler import why_no_compiler

if TYPE_CHECKING:
    from ddp.context import Context


def why_not_compiled(context: Context) -> str | None:
    """Return why torch.compile is not tried; prepare its environment where it is.

    Every rank must call it.  It takes half a minute, so only with --full; and
    it needs a compiler and Python's headers, which images may lack.
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
        on_gpu = context.device.type == "cuda"
        capability = torch.cuda.get_device_capability(context.device) if on_gpu else None
        distributed.all_gather_object(reasons, why_no_compiler(capability))
    return next((reason for reason in reasons if reason is not None), None)
