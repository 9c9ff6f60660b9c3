"""Tasks about this machine: doctor."""

from __future__ import annotations

import sys
from typing import Any

from strata.cli.frame import strata_task, workspace_of


@strata_task(help={"json": "print the findings as one JSON document"})
def doctor(c: Any, json: bool = False) -> None:
    """Examine this host: engine, disk, GPU driver, toolkit, shared memory; with the fixes."""
    workspace = workspace_of(c)
    # The same checks run in the image, which has no strata: they are no part of this package.
    sys.path.insert(0, str(workspace.root / "train"))
    from doctor.facts import HOST
    from doctor.findings import ERROR
    from doctor.report import render_json, render_table
    from strata.doctor import examine_host
    from strata.errors import HostError

    findings = examine_host(workspace)
    print(render_json(HOST, findings) if json else render_table("doctor: this host", findings))
    severe = [finding.id for finding in findings if finding.severity == ERROR]
    if severe:
        raise HostError.at(
            "this host", f"not fit: {', '.join(dict.fromkeys(severe))}", "see each finding's fix"
        )
