"""The table of all phases, in the order in which they run.

A phase `name` is one function `check_name` in the module `ddp/name.py`.  It
returns a `Finding` when all is as it must be, raises `PhaseFailed(reason)` when
something is not, and `PhaseNotRun(reason)` where it can't be asked here.  To
add one, write the module and add its row below.  Where it runs:

- `LAUNCHER`: before any rank, in the process that holds the elastic agent.
- `RANKS`: in every rank, `check_name(context: Context) -> Finding`, within the
  group that the rendezvous made.  All ranks run it at the same time; what needs
  the other ranks stands under `context.journal.waiting("what")`, so that the
  rank to blame can be told.  `PhaseNotRun` must be raised by all ranks alike
  (decide from what all know), before the phase's first collective.  The report
  takes rank 0's `Finding`: what differs by rank, gather first.  No stretch
  in which other ranks wait may take more than `plan.GROUP_TIMEOUT` seconds.
- `SUPERVISOR`: after the ranks have gone, `check_name(job: JobContext) ->
  Finding`, in the supervisor, which must not import torch: such a phase starts
  ranks of a module of its own with `jobs.run_job`.

`context.is_full` and `job.is_full` tell --full from --quick; `context.folder`
and `job.folder` are one scratch folder, shared by all ranks of this host and
removed at the end.  A phase that has not run fails the check where it is
`required`: "always", or "full" (only with --full), or "never".  After a phase
that failed, those below it do not run.

`faults` are what `--inject RANK:FAULT` can have a phase do wrong: the rank whose
fault it is finds the name in `context.fault`, a supervisor phase finds rank and
name in `job.plan.inject`.  Such a check is to fail, and soon: it runs only the
phase with the fault, and the rendezvous.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from ddp.errors import PhaseNotRun

if TYPE_CHECKING:
    from ddp.arguments import Injection
    from ddp.context import Context
    from ddp.findings import Finding
    from ddp.jobs import JobContext

LAUNCHER, RANKS, SUPERVISOR = "launcher", "ranks", "supervisor"


@dataclass(frozen=True)
class Spec:
    """One phase: its name, where it runs, when it is required, what can be injected."""

    name: str
    where: str
    required: str = "always"
    faults: tuple[str, ...] = ()

    def is_required(self, *, is_full: bool) -> bool:
        """Whether the check fails when this phase has not run."""
        return self.required == "always" or (self.required == "full" and is_full)

    def excuse(self, inject: Injection | None) -> str | None:
        """Return why the phase needn't run when this is injected; None: it must."""
        if inject is None or inject.fault in self.faults or self.name in ("facts", "rendezvous"):
            return None
        return f"only what {inject.fault} is injected into is run"

    def run(self, context: Context | JobContext) -> Finding:
        """Import the phase's module and run its function; raises what that raises."""
        excuse = self.excuse(context.plan.inject)
        if excuse is not None:
            raise PhaseNotRun(excuse)
        check = getattr(import_module(f"ddp.{self.name}"), f"check_{self.name}")
        finding: Finding = check(context)
        return finding


SPECS = (
    Spec("facts", LAUNCHER),
    Spec("rendezvous", RANKS),
    Spec("memory", RANKS, faults=("small-shm",)),
    Spec("collectives", RANKS, faults=("wrong-sum", "wrong-max", "wrong-all-to-all")),
    Spec(
        "gradients",
        RANKS,
        faults=("wrong-gradient", "sync-early", "lost-unused", "unweighted", "drift"),
    ),
    Spec("data", RANKS, faults=("forget-epoch", "same-workers", "count-padding")),
    Spec(
        "training",
        RANKS,
        faults=("raise", "exit", "kill", "hang", "stuck", "diverge", "other-seed"),
    ),
    Spec(
        "checkpoint",
        RANKS,
        faults=(
            "wrapped-keys",
            "torn-save",
            "forget-random",
            "forget-optimizer",
            "forget-place",
            "lose-rank",
        ),
    ),
    Spec("scaling", RANKS, faults=("slow", "slow-loader")),
    Spec("faults", SUPERVISOR, required="full", faults=("overlooked", "forget-checkpoint")),
)

RANK_PHASES = tuple(spec.name for spec in SPECS if spec.where == RANKS)
FAULTS = tuple(fault for spec in SPECS for fault in spec.faults)


def find_spec(name: str) -> Spec:
    """Return the row of the phase `name`; KeyError where there is none."""
    return {spec.name: spec for spec in SPECS}[name]
