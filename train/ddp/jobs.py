"""Ranks outside of the main group: for phases that need a job, or several, of their own."""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ddp.processes import module_argv, supervise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddp.plan import Plan


@dataclass(frozen=True)
class JobContext:
    """What a supervisor phase works with.

    `folder` is the scratch folder of the whole check, `deadline` when the
    check must end, in seconds of the monotonic clock.
    """

    plan: Plan
    folder: Path
    deadline: float

    @property
    def is_full(self) -> bool:
        """Whether --full was asked for."""
        return self.plan.is_full

    @property
    def remaining(self) -> float:
        """Seconds that the check has left, at least 0."""
        return max(0.0, self.deadline - time.monotonic())


@dataclass(frozen=True)
class JobResult:
    """How a job ended.

    `code` is the agent's exit code, None when its time was up; `ends` holds the
    exit codes (negative: signals) of the ranks that failed in the last attempt;
    `left` the processes that the kernel could not end; `output` what the agent
    and all ranks wrote.
    """

    code: int | None
    ends: Mapping[int, int]
    left: tuple[int, ...]
    seconds: float
    output: str

    @property
    def has_passed(self) -> bool:
        """Whether every rank ended with 0 in time, and no process is left."""
        return self.code == 0 and not self.ends and not self.left


def run_job(
    module: str,
    words: Sequence[str],
    *,
    nproc: int,
    folder: Path,
    timeout: float,
    max_restarts: int = 0,
    env: Mapping[str, str] | None = None,
) -> JobResult:
    """Run `nproc` ranks of `module` (importable from train/) on this host, as torchrun does.

    It ends after `timeout` seconds at the latest, and leaves no process.  What
    is kept of it is in a new folder below `folder`.  `env` comes on top of
    this process' environment.
    """
    started = time.monotonic()
    own = Path(tempfile.mkdtemp(prefix="job-", dir=folder))
    job = {"module": module, "words": list(words), "nproc": nproc, "max_restarts": max_restarts}
    (own / "job.json").write_text(json.dumps(job))
    with (own / "output.log").open("w") as output:
        ending = supervise(
            module_argv("ddp.agent", str(own)),
            timeout,
            started,
            output=output,
            env={**os.environ, **(env or {})},
        )
    ends = own / "ends.json"
    codes = json.loads(ends.read_text()) if ends.exists() else {}
    return JobResult(
        code=ending.code,
        ends={int(rank): code for rank, code in codes.items()},
        left=ending.left,
        seconds=ending.ended_at - started,
        output=(own / "output.log").read_text(errors="replace"),
    )
