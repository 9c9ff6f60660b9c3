"""Why a step will be built: which of its inputs changed since it was built here."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from strata.plan import Plan, Step

Inputs = dict[str, dict[str, str]]


def read_inputs(path: Path) -> Inputs:
    """Return the inputs of each step at its last build here; none where there was none."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text())
    except ValueError:
        found = None
    # It only explains: the next build writes it again.
    return found if isinstance(found, dict) else {}


def write_inputs(path: Path, plan: Plan) -> None:
    """Keep the inputs of the plan's steps, beside those of steps outside the plan."""
    inputs = read_inputs(path) | {step.name: dict(step.inputs) for step in plan.steps}
    partial = path.with_suffix(".part")
    partial.write_text(json.dumps(inputs, indent=1, sort_keys=True) + "\n")
    partial.replace(path)


def reasons(step: Step, before: Mapping[str, str] | None) -> list[str]:
    """Return why a step whose image is not there has to be built, in words."""
    if before is None:
        return ["it was never built here"]
    changed = [
        f"{name} {'is new' if name not in before else 'changed'}"
        for name, digest in step.inputs.items()
        if before.get(name) != digest
    ]
    gone = [f"{name} is gone" for name in before if name not in step.inputs]
    if "parent changed" in changed and step.parent is not None:
        changed[changed.index("parent changed")] = f"its parent {step.parent.layer.name} changed"
    return changed + gone or ["its image is not in the engine's store"]
