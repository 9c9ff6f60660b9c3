"""Phase: a rank that fails is noticed and named, and a restarted job finishes.

It starts jobs of its own, with the very parts that this check and torchrun are
made of: ranks that run the training phase, of which one raises, exits early,
is killed or hangs.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ddp.addresses import host_name
from ddp.arguments import Injection
from ddp.errors import PhaseFailed, PhaseNotRun
from ddp.findings import Finding
from ddp.jobs import run_job
from ddp.journal import journal_file, read_journal
from ddp.nodes import ONE_HOST
from ddp.verdict import find_blame

if TYPE_CHECKING:
    from ddp.jobs import JobContext, JobResult
    from ddp.plan import Plan

# How a rank fails, and what the reason must say of it.
FAULTS = {
    "raise": "InjectedError",
    "exit": "exited early",
    "kill": "was killed by SIGKILL",
    "hang": "hangs",
}
RANKS = 2  # one that fails and one that waits for it
NOTICED_WITHIN = 60.0  # seconds from the fault to the end of the job
STARTED_WITHIN = 60.0  # seconds for torch to be imported by all, on a busy machine
GROUP_TIMEOUT = 5.0  # seconds that a rank waits for one that hangs
RESTARTED_WITHIN = 120.0
LAST_LINES = 10


def check_faults(job: JobContext) -> Finding:
    """Have a rank fail in every way, then once with a restart allowed."""
    if not job.is_full:
        raise PhaseNotRun("takes about a minute: only with --full")
    faults = () if _injects(job, "forget-checkpoint") else FAULTS
    seconds = {fault: round(_check_noticed(job, fault), 1) for fault in faults}
    restarted = _check_restarted(job)
    slowest = max(seconds.values(), default=0.0)
    return Finding(
        f"a rank that raises, exits early, is killed or hangs ends its job within {slowest:.0f} s "
        f"and is named; a job whose rank was killed after step {restarted['killed_after_step']} "
        f"goes on from step {restarted['resumed_after_step']} and ends as one that nothing befell",
        {
            "host": host_name(),
            "backend": plan_noticed(job.plan).backend,
            "seconds": seconds,
            "restarted": restarted,
        },
    )


def plan_noticed(plan: Plan) -> Plan:
    """Return the plan of a job in which a rank is to fail: of two ranks, on this host.

    Where there is but one rank (one GPU), on the CPU: nobody would wait for it.
    """
    return replace(
        plan,
        backend=plan.backend if plan.nproc >= RANKS else "gloo",
        world_size=RANKS,
        nodes=ONE_HOST,
        logs=None,
        is_full=False,
        group_timeout=GROUP_TIMEOUT,
    )


def _injects(job: JobContext, fault: str) -> bool:
    return job.plan.inject is not None and job.plan.inject.fault == fault


def _check_noticed(job: JobContext, fault: str) -> float:
    """Run a job whose last rank fails so; return the seconds from the fault to its end."""
    victim = RANKS - 1
    folder = Path(tempfile.mkdtemp(prefix=f"fault-{fault}-", dir=job.folder))
    plan = replace(
        plan_noticed(job.plan),
        # To see this phase fail, nobody has the fault.
        inject=Injection(victim + RANKS if _injects(job, "overlooked") else victim, fault),
    )
    plan.write(folder / "plan.json")
    timeout = min(STARTED_WITHIN + NOTICED_WITHIN, job.remaining)
    started = time.monotonic()
    result = run_job("ddp.rank", [str(folder)], nproc=RANKS, folder=folder, timeout=timeout)
    what = f"a rank that shall {fault} on {host_name()}"
    _check_left(result, what)
    if result.code is None:
        raise PhaseFailed(f"{what} was not noticed within {timeout:.0f} s")
    states = [read_journal(journal_file(folder, rank), rank) for rank in range(RANKS)]
    if not result.ends and all(state.is_done for state in states):
        raise PhaseFailed(f"{what} was not noticed: its job ended with 0")
    blame = find_blame(states, result.ends, None, GROUP_TIMEOUT)
    if blame.rank != victim or FAULTS[fault] not in blame.reason:
        raise PhaseFailed(
            f"{what} was taken for another: rank {blame.rank}, not {victim}, {blame.reason}"
        )
    seconds = started + result.seconds - (states[victim].since or started)
    if seconds > NOTICED_WITHIN:
        raise PhaseFailed(f"{what} was noticed after {seconds:.0f} s, limit {NOTICED_WITHIN:.0f} s")
    return seconds


def _check_restarted(job: JobContext) -> dict[str, Any]:
    """Run a job whose rank is killed once; return how it went on."""
    folder = Path(tempfile.mkdtemp(prefix="restarted-", dir=job.folder))
    timeout = min(RESTARTED_WITHIN, job.remaining)
    words = [str(folder), "forget" if _injects(job, "forget-checkpoint") else "keep"]
    ranks = min(RANKS, job.plan.nproc)  # its backend is what torch sees: at most a rank a GPU
    result = run_job(
        "ddp.restarted", words, nproc=ranks, folder=folder, timeout=timeout, max_restarts=1
    )
    _check_left(result, "a job that was restarted")
    if result.code is None:
        raise PhaseFailed(f"a job that was restarted did not end within {timeout:.0f} s")
    if not result.has_passed:
        last = "\n".join(result.output.splitlines()[-LAST_LINES:])
        raise PhaseFailed(f"a job that may restart once has failed: ranks {result.ends}\n{last}")
    found: dict[str, Any] = json.loads((folder / "finding.json").read_text())
    if found["attempts"] != 2 or found["resumed_after_step"] == 0:  # noqa: PLR2004 - one restart
        raise PhaseFailed(
            f"a job whose rank was killed after step {found['killed_after_step']} had "
            f"{found['attempts']} attempts and went on after step {found['resumed_after_step']}"
        )
    if found["relative_difference"] > found["limit"]:
        raise PhaseFailed(
            f"a job that was restarted ends with a loss that differs by "
            f"{found['relative_difference']:.1e} relative from one that was not, limit "
            f"{found['limit']:.0e}"
        )
    return found


def _check_left(result: JobResult, what: str) -> None:
    if result.left:
        left = ", ".join(map(str, result.left))
        raise PhaseFailed(f"{what} has left processes: {left}")
