"""What the doctor says: as a table for people or as one JSON document."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from doctor.findings import SEVERITIES, is_fit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from doctor.findings import Finding

SCHEMA = "strata.doctor/1"


def verdict(findings: Sequence[Finding]) -> str:
    """Return "fit" when no finding is an error, else "unfit"."""
    return "fit" if is_fit(findings) else "unfit"


def counts(findings: Sequence[Finding]) -> dict[str, int]:
    """Return how many findings there are of each severity."""
    return {
        severity: sum(finding.severity == severity for finding in findings)
        for severity in SEVERITIES
    }


def render_json(scope: str, findings: Sequence[Finding]) -> str:
    """Return the document that docs/doctor.md describes."""
    document = {
        "schema": SCHEMA,
        "scope": scope,
        "verdict": verdict(findings),
        "counts": counts(findings),
        "findings": [asdict(finding) for finding in findings],
    }
    return json.dumps(document, indent=2)


def render_table(title: str, findings: Sequence[Finding]) -> str:
    """Return a line for each finding, its fix below it, and what it comes to."""
    width = max((len(finding.id) for finding in findings), default=0)
    lines = [title, ""]
    for finding in findings:
        mark = finding.severity.upper() if finding.severity == "error" else finding.severity
        lines.append(f"{finding.id:<{width}}  {mark:<7}  {finding.evidence}")
        if finding.fix:
            lines.append(f"{'':<{width}}  {'':<7}  fix: {finding.fix}")
    numbers = ", ".join(f"{count} {name}" for name, count in counts(findings).items() if count)
    lines += ["", f"verdict: {verdict(findings)} ({numbers})"]
    return "\n".join(lines)
