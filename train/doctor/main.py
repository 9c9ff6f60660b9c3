"""The command line of strata-doctor."""

from __future__ import annotations

import argparse
import os
import pwd
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from doctor.checks import CHECKS, judge
from doctor.facts import CONTAINER, Facts, Unknown
from doctor.findings import is_fit
from doctor.probe_limits import probe_limits
from doctor.probe_network import probe_network
from doctor.probe_nvidia import probe_nvidia
from doctor.probe_settings import probe_blocked, probe_settings
from doctor.probe_torch import probe_torch
from doctor.report import render_json, render_table

if TYPE_CHECKING:
    from collections.abc import Sequence

DONE = 0
BAD_ARGUMENTS = 2
UNFIT = 8
NOT_HERE = Unknown("PyTorch is in the images, not on the host")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        fix = "strata-doctor --help shows every argument"
        print(f"error: strata-doctor: {message}\n  fix: {fix}", file=sys.stderr)
        sys.exit(BAD_ARGUMENTS)


def _home() -> Path:
    """Return the home that the system knows, which is where NCCL looks; HOME may differ."""
    try:
        return Path(pwd.getpwuid(os.getuid()).pw_dir)
    except KeyError:  # a user without a name has none
        return Path("/nonexistent")


def probe(scope: str) -> Facts:
    """Read all that the checks of this scope look at."""
    settings = probe_settings(os.environ, _home(), Path("/etc"))
    return Facts(
        scope=scope,
        limits=probe_limits(),
        nvidia=probe_nvidia(),
        torch=probe_torch() if scope == CONTAINER else NOT_HERE,
        network=probe_network(),
        settings=settings,
        blocked=probe_blocked(settings),
    )


def main(argv: Sequence[str]) -> int:
    """Examine this container, or host; return the exit code."""
    parser = _Parser(
        prog="strata-doctor",
        description="Find what keeps training from working well here, and how to fix it.",
        epilog="Exit codes: 0 nothing severe found, 2 bad arguments, 8 not fit.",
        allow_abbrev=False,
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    parser.add_argument(
        "--only",
        action="append",
        choices=sorted(check.id for check in CHECKS if CONTAINER in check.scopes),
        metavar="CHECK",
        help="show this check alone; may repeat",
    )
    arguments = parser.parse_args(argv)
    findings = judge(probe(CONTAINER))
    if arguments.only:
        findings = [finding for finding in findings if finding.id in arguments.only]
    if arguments.json:
        print(render_json(CONTAINER, findings))
    else:
        print(render_table("strata-doctor: this container", findings))
    return DONE if is_fit(findings) else UNFIT
