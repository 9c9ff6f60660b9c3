"""The command line, as frozen values."""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from ddp.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Sequence

FAULTS = ("raise", "exit", "kill", "hang", "wrong-sum", "wrong-gradient", "diverge")
TIMEOUT = 60.0


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
    timeout: float
    inject: Injection | None


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
        default=TIMEOUT,
        metavar="S",
        help=f"seconds for the whole check (default {TIMEOUT:.0f})",
    )
    parser.add_argument(
        "--inject",
        type=_injection,
        default=None,
        metavar="RANK:FAULT",
        help=f"give a rank a fault, to see the check fail: {', '.join(FAULTS)}",
    )
    return Arguments(**vars(parser.parse_args(argv)))
