"""The command line, as frozen values."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ddp.errors import Refused
from ddp.nodes import ONE_HOST, Nodes, add_arguments, take_nodes
from ddp.phases import FAULTS
from ddp.thresholds import (
    NO_THRESHOLDS,
    Thresholds,
    add_threshold_arguments,
    take_thresholds,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

# Twice what it takes on two busy cores: a rank that hangs is noticed long before.
QUICK_TIMEOUT, FULL_TIMEOUT = 120.0, 600.0


@dataclass(frozen=True)
class Injection:
    """A fault that one rank shall have, to see that the check notices."""

    rank: int
    fault: str


@dataclass(frozen=True)
class Arguments:
    """What was asked for; `nproc` None means as many ranks as suit the machine."""

    nproc: int | None
    as_json: bool
    require_gpu: bool
    is_full: bool
    timeout: float
    inject: Injection | None
    nodes: Nodes = ONE_HOST
    thresholds: Thresholds = NO_THRESHOLDS
    plot: Path | None = None
    logs: Path | None = None


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise Refused("ddp-check", message, "ddp-check --help shows every argument")


def _nproc(text: str) -> int | None:
    if text == "auto":
        return None
    if text.isascii() and text.isdecimal() and int(text) > 0:
        return int(text)
    raise Refused(
        "--nproc",
        f"{text!r} is not a number of ranks",
        "give a number from 1 on, or `auto`: one rank a GPU, or two on a CPU",
    )


def _timeout(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if math.isfinite(seconds) and seconds > 0:
        return seconds
    raise Refused("--timeout", f"{text!r} is not a time", "give seconds, such as 60")


def _injection(text: str) -> Injection:
    rank, _, fault = text.partition(":")
    if rank.isascii() and rank.isdecimal() and fault in FAULTS:
        return Injection(int(rank), fault)
    raise Refused(
        "--inject",
        f"{text!r} is not RANK:FAULT",
        f"give a rank and one of {', '.join(FAULTS)}, such as 1:kill",
    )


def parse(argv: Sequence[str]) -> Arguments:
    """Return what `argv` asks for; raises `Refused` when it makes no sense."""
    parser = _Parser(
        prog="ddp-check",
        description="Prove that data-parallel training works here, on GPUs or on CPU cores.",
        epilog="Exit codes: 0 every phase passed, 2 bad arguments, 6 failed.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--nproc",
        type=_nproc,
        default=None,
        metavar="N|auto",
        help="ranks; auto (default) is one a GPU, or two on a CPU",
    )
    parser.add_argument(
        "--json", action="store_true", dest="as_json", help="one JSON document on stdout"
    )
    parser.add_argument("--require-gpu", action="store_true", help="fail where there is no GPU")
    parser.add_argument(
        "--timeout",
        type=_timeout,
        default=None,
        metavar="S",
        help="seconds for the whole check "
        f"(default {QUICK_TIMEOUT:.0f}, with --full {FULL_TIMEOUT:.0f})",
    )
    parser.add_argument(
        "--inject",
        type=_injection,
        default=None,
        metavar="RANK:FAULT",
        help=f"give a rank a fault, to see the check fail: {', '.join(FAULTS)}",
    )
    parser.add_argument(
        "--plot",
        type=Path,
        default=None,
        metavar="FILE",
        help="draw bandwidth by message size and throughput by ranks, as SVG",
    )
    parser.add_argument(
        "--logs",
        type=Path,
        default=None,
        metavar="FOLDER",
        help="keep what each rank writes in this folder, too",
    )
    add_arguments(parser)
    add_threshold_arguments(parser)
    extent = parser.add_mutually_exclusive_group()
    extent.add_argument(
        "--quick", action="store_false", dest="is_full", help="what takes seconds (default)"
    )
    extent.add_argument(
        "--full", action="store_true", dest="is_full", help="everything; takes minutes"
    )
    parser.set_defaults(is_full=False)
    values = vars(parser.parse_args(argv))
    if values["timeout"] is None:
        values["timeout"] = FULL_TIMEOUT if values["is_full"] else QUICK_TIMEOUT
    nodes, thresholds = take_nodes(values), take_thresholds(values)
    return Arguments(**values, nodes=nodes, thresholds=thresholds)
