"""Which layer a failed build is the fault of."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from strata.plan import Plan, Step

TARGET = re.compile(r"^ > \[(\S+) ", re.MULTILINE)
SNIPPET = re.compile(r"^ *(\d+) \| (?:>>> |    )(.*)$", re.MULTILINE)


def failed_step(output: str, plan: Plan) -> Step | None:
    """Return the step in whose Dockerfile a build failed, None where bake's output tells none.

    `output` is what bake writes, as plain progress or to a terminal.  BuildKit runs a step that
    several targets share once, and may show it under any of their names: the
    target in brackets is the step or one that stands on it.  The lines of the
    Dockerfile that it prints say which.
    """
    targets = TARGET.findall(output)
    steps = {step.name: step for step in plan.steps}
    if not targets or targets[-1] not in steps:
        return None
    path = steps[targets[-1]].path()
    shown = {int(number): text.rstrip() for number, text in SNIPPET.findall(output)}
    fits = [step for step in path if shown and _has(step.layer.folder / "Dockerfile", shown)]
    return fits[-1] if fits else path[-1] if not shown else None


def _has(dockerfile: Path, shown: dict[int, str]) -> bool:
    lines = dict(enumerate(dockerfile.read_text(encoding="utf-8").splitlines(), start=1))
    return all(lines.get(number, "").rstrip() == text for number, text in shown.items())
