"""What a phase works with: one rank's place in the group."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    from ddp.journal import Journal
    from ddp.plan import Plan


class InjectedError(Exception):
    """The error that `--inject RANK:raise` raises."""


@dataclass(frozen=True)
class Context:
    """One rank: its number, its device, its journal, and the fault that it shall have.

    `folder` is the scratch folder that all ranks of this host share.
    """

    rank: int
    local_rank: int
    plan: Plan
    device: Any
    journal: Journal
    folder: Path
    fault: str | None

    @property
    def world_size(self) -> int:
        """The number of ranks."""
        return self.plan.world_size

    @property
    def is_full(self) -> bool:
        """Whether --full was asked for."""
        return self.plan.is_full

    def strike(self) -> None:
        """Raise, exit, die or hang, if that is this rank's fault."""
        if self.fault == "raise":
            raise InjectedError("injected by --inject")
        if self.fault == "exit":
            sys.exit(0)
        if self.fault == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        while self.fault == "hang":
            time.sleep(1)
