"""What one check says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

OK, INFO, WARNING, ERROR, UNKNOWN = SEVERITIES = ("ok", "info", "warning", "error", "unknown")
# Of several things that one check has seen, the worst decides.
RANK = {OK: 0, INFO: 1, UNKNOWN: 2, WARNING: 3, ERROR: 4}


@dataclass(frozen=True)
class Finding:
    """What a check has found: which, how bad, what was seen, and the exact fix.

    Severities: `ok`; `info` is worth knowing; `warning` costs speed or will
    fail some jobs; `error` makes training fail; `unknown` could not be asked,
    and `evidence` says why.
    """

    id: str
    severity: str
    evidence: str
    fix: str | None = None

    def __post_init__(self) -> None:
        """Refuse what a reader could do nothing with; raises `ValueError`."""
        if self.severity not in SEVERITIES:
            raise ValueError(f"{self.id}: no severity {self.severity!r}")
        if self.severity in (WARNING, ERROR) and not self.fix:
            raise ValueError(f"{self.id}: a {self.severity} without a fix")


@dataclass(frozen=True)
class Remark:
    """One of several things that a check has seen; `fix` is empty when nothing is to be done."""

    severity: str
    text: str
    fix: str = ""


def join(check: str, remarks: Sequence[Remark], otherwise: str) -> Finding:
    """Make one finding of all remarks, as severe as the worst; `ok` with `otherwise` of none."""
    if not remarks:
        return Finding(check, OK, otherwise)
    worst = max((remark.severity for remark in remarks), key=RANK.__getitem__)
    fixes = dict.fromkeys(remark.fix for remark in remarks if remark.fix)
    return Finding(check, worst, "; ".join(r.text for r in remarks), "; ".join(fixes) or None)


def is_fit(findings: Sequence[Finding]) -> bool:
    """Tell whether no finding is an error."""
    return all(finding.severity != ERROR for finding in findings)
