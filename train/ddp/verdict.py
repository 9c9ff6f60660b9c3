"""From journals and exit codes to the outcome of every phase.  Pure."""

from __future__ import annotations

import signal
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from ddp.phases import RANK_PHASES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ddp.findings import Finding
    from ddp.journal import RankState

# A rank that waited this part of the group's timeout has been waiting for a
# rank that hangs: one that ends closes its connections at once.
TIMED_OUT = 0.9


@dataclass(frozen=True)
class Phase:
    """One phase: "pass", "fail" or "not run"; `seconds` None when it has not run."""

    name: str
    outcome: str
    seconds: float | None = None
    detail: str | None = None
    reason: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def passed(cls, name: str, seconds: float, finding: Finding) -> Phase:
        """Return a phase that has passed with this finding."""
        return cls(name, "pass", seconds, finding.detail, data=finding.data)


@dataclass(frozen=True)
class Blame:
    """The rank that is the cause, or None when none stands out, and the reason."""

    rank: int | None
    reason: str
    host: str | None = None


def judge_ranks(
    states: Sequence[RankState],
    ends: Mapping[int, int],
    ended_at: float,
    late: str | None,
    group_timeout: float,
) -> tuple[tuple[Phase, ...], Blame | None]:
    """Return the outcome of every phase that ranks run, and who is to blame.

    `ends` holds the exit codes of the ranks that failed, `late` says that and
    why the launcher did not end by itself.  Times in seconds.
    """
    blame = None
    if late is not None or ends or not all(state.is_done for state in states):
        blame = _with_host(find_blame(states, ends, late, group_timeout), states)
    phases: list[Phase] = []
    failed: str | None = None
    for name in RANK_PHASES:
        is_last = name == RANK_PHASES[-1]
        is_through = bool(states) and all(_is_through(state, name) for state in states)
        if failed is not None:
            phases.append(Phase(name, "not run", reason=f"{failed} failed"))
        elif not is_through or (is_last and blame):
            began = [state.began[name] for state in states if name in state.began]
            seconds = ended_at - min(began) if began else None
            reason = _sentence(blame) if blame is not None else "no rank has run it"
            phases.append(Phase(name, "fail", seconds, None, reason))
            failed = name
        else:
            phases.append(_judge_through(name, states))
    return tuple(phases), blame


def _is_through(state: RankState, name: str) -> bool:
    return name in state.passed or name in state.not_run


def _judge_through(name: str, states: Sequence[RankState]) -> Phase:
    """Return the outcome of a phase that every rank has come through."""
    done = [state.passed[name] for state in states if name in state.passed]
    without = [state for state in states if name in state.not_run]
    if not without:
        return Phase.passed(name, max(seconds for seconds, _ in done), done[0][1])
    reason = without[0].not_run[name]
    if not done:
        return Phase(name, "not run", reason=reason)
    ranks = ", ".join(str(state.rank) for state in without)
    return Phase(name, "fail", None, None, f"the others ran it, but not rank {ranks}: {reason}")


def find_blame(
    states: Sequence[RankState],
    ends: Mapping[int, int],
    late: str | None,
    group_timeout: float,
) -> Blame:
    """Find the rank that is the cause; ranks that failed while waiting for it are not.

    In this order: a rank that failed on its own, one that went with its host,
    one that was killed, one that ended with an error, one that is behind the
    others, the first one whose waiting failed.
    """
    failures = sorted(
        (state for state in states if state.failure is not None),
        key=lambda state: state.failed_at or 0.0,
    )
    own = [state for state in failures if not state.is_waiting]
    if own:
        return Blame(own[0].rank, own[0].failure or "")
    lost = [state for state in states if state.is_lost]
    if lost:
        return Blame(lost[0].rank, "went with its host, of which nothing came back")
    has_timed_out = late is not None or any(
        _timed_out(state, ends.get(state.rank, 0), group_timeout) for state in states
    )
    silent = [state for state in states if state.failure is None]
    for state in silent:
        text = _death(state, ends.get(state.rank, 0), has_timed_out=has_timed_out)
        if text is not None:
            return Blame(state.rank, f"{text} {_place(state)}")
    behind = _behind(states, [state for state in silent if not state.is_done])
    if behind is not None:
        text = _silence(behind, ends, late, has_timed_out=has_timed_out)
        return Blame(behind.rank, f"{text} {_place(behind)}")
    if failures:
        return Blame(failures[0].rank, f"{failures[0].failure} {_place(failures[0])}")
    places = [f"rank {state.rank} {_place(state)}" for state in states]
    where = "; ".join(places) or "no rank has begun"
    return Blame(None, f"{late or 'the ranks ended without an error'}: {where}")


def _timed_out(state: RankState, code: int, group_timeout: float) -> bool:
    if state.failed_at is not None and state.since is not None:
        return state.is_waiting and state.failed_at - state.since >= TIMED_OUT * group_timeout
    return _gave_up(state, code)


def _gave_up(state: RankState, code: int) -> bool:
    """Whether NCCL has aborted the rank, which is its way to give up waiting."""
    return state.is_waiting and -code == signal.SIGABRT


def _death(state: RankState, code: int, *, has_timed_out: bool) -> str | None:
    if code > 0:
        return f"ended with exit code {code}"
    if code == 0 or -code == signal.SIGTERM:  # the agent's way to end the others
        return None
    if -code == signal.SIGKILL and has_timed_out:  # the agent's way, when SIGTERM does nothing
        return None
    if _gave_up(state, code):
        return None
    hint = " (out of memory?)" if -code == signal.SIGKILL else ""
    return f"was killed by {signal.Signals(-code).name}{hint}"


def _behind(states: Sequence[RankState], silent: Sequence[RankState]) -> RankState | None:
    if not silent:
        return None
    last = min(silent, key=lambda state: state.position)
    return last if any(state.position > last.position for state in states) else None


def _silence(
    state: RankState, ends: Mapping[int, int], late: str | None, *, has_timed_out: bool
) -> str:
    if late is not None:
        return f"hangs ({late})"
    if has_timed_out and state.rank in ends:  # the agent had to end it
        return "hangs"
    if has_timed_out:
        return "exited early or hangs"
    return "exited early, without an error,"


def _place(state: RankState) -> str:
    if state.phase is None:
        return "before its first phase"
    if state.last is None:
        return f"in {state.phase}"
    return f"in {state.phase}, {'waiting for' if state.is_waiting else 'after'} {state.last}"


def _with_host(blame: Blame, states: Sequence[RankState]) -> Blame:
    host = next((state.host for state in states if state.rank == blame.rank), None)
    return replace(blame, host=host)


def _sentence(blame: Blame) -> str:
    if blame.rank is None:
        return blame.reason
    place = "" if blame.host is None else f" on {blame.host}"
    return f"rank {blame.rank}{place}: {blame.reason}"
