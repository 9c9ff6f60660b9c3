"""What the user demands of this machine: part of the verdict.  Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ddp.errors import Refused

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from ddp.verdict import Phase


@dataclass(frozen=True)
class Thresholds:
    """What must be reached at least; None or 0: anything will do.

    `min_efficiency` is a share of 1, of the scaling at the largest number of
    ranks; `min_busbw` GB/s (1e9 bytes), of the best all_reduce.
    """

    min_gpus: int = 0
    min_efficiency: float | None = None
    min_busbw: float | None = None


NO_THRESHOLDS = Thresholds()


def add_threshold_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that demand something."""
    group = parser.add_argument_group("what must be reached")
    group.add_argument("--min-gpus", default="0", metavar="N", help="fail with fewer GPUs")
    group.add_argument(
        "--min-efficiency",
        default=None,
        metavar="X",
        help="fail where scaling to all ranks is less efficient, as 0.8",
    )
    group.add_argument(
        "--min-busbw",
        default=None,
        metavar="GBps",
        help="fail where no all_reduce has this bus bandwidth in GB/s (1e9 bytes)",
    )


def take_thresholds(values: dict[str, Any]) -> Thresholds:
    """Take the values of our arguments out of `values`; raises `Refused` for nonsense."""
    gpus = values.pop("min_gpus")
    if not (gpus.isascii() and gpus.isdecimal()):
        raise Refused("--min-gpus", f"{gpus!r} is not a number of GPUs", "give a number, such as 8")
    return Thresholds(
        int(gpus),
        _amount("--min-efficiency", values.pop("min_efficiency"), "a share", "0.8"),
        _amount("--min-busbw", values.pop("min_busbw"), "a bandwidth in GB/s", "100"),
    )


def _amount(where: str, text: str | None, what: str, example: str) -> float | None:
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value) and value > 0:
        return value
    raise Refused(where, f"{text!r} is not {what}", f"give a number above 0, such as {example}")


def judge_thresholds(phases: Sequence[Phase], thresholds: Thresholds) -> tuple[Phase, ...]:
    """Return the phases; those that passed, but not well enough, have failed."""
    demands = {
        "collectives": (thresholds.min_busbw, "--min-busbw", _busbw, "GB/s of bus bandwidth"),
        "scaling": (thresholds.min_efficiency, "--min-efficiency", _efficiency, "efficiency"),
    }
    judged = []
    for phase in phases:
        least, where, measure, what = demands.get(phase.name, (None, "", None, ""))
        reason = None
        if least is not None and measure is not None and phase.outcome == "pass":
            reached = measure(phase.data)
            if not reached >= least:  # in this form, not-a-number fails too
                reason = f"{where} demands {least:g}: {reached:.3g} {what} is less"
        elif least is not None and phase.outcome == "not run":
            reason = f"{where} demands {least:g}, and this has not run: {phase.reason}"
        judged.append(phase if reason is None else replace(phase, outcome="fail", reason=reason))
    return tuple(judged)


def best_busbw(rows: Sequence[Mapping[str, Any]]) -> float:
    """Return the best bus bandwidth of all_reduce in GB/s."""
    return max(float(row["busbw_gb_per_s"]) for row in rows if row["label"] == "all_reduce (sum)")


def _busbw(data: Mapping[str, Any]) -> float:
    return best_busbw(data["bandwidth"])


def _efficiency(data: Mapping[str, Any]) -> float:
    return float(data["efficiency"])
