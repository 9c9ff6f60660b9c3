"""The committed variants' trees beside what they should be: steps, images, and what is missing.

`pytest tests/golden --update-golden` writes them anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from strata.load import load
from strata.lock import read_lock
from strata.plan import make_plan

if TYPE_CHECKING:
    from strata.model import Project, Variant

ROOT = Path(__file__).parents[2]
EXPECTED = Path(__file__).parent / "expected"
VARIANTS = sorted(path.parent.name for path in (ROOT / "locks").glob("*/sources.toml"))


@pytest.fixture(scope="module")
def project() -> Project:
    """Load this project's definitions."""
    return load(ROOT)


def trees(project: Project, variant: Variant) -> dict[str, Any]:
    """Return each platform's tree: the layers that bring packages are marked with a `+`."""
    lock = read_lock(variant.lock)
    found = {}
    for platform in variant.platforms:
        plan = make_plan(project, variant, list(project.images.values()), lock, platform)
        found[platform] = {
            "steps": [f"{step.name}{' +' if step.packages else ''}" for step in plan.steps],
            "images": {image.name: image.step.name for image in plan.images},
            "left out": {image.name: sorted(image.left_out) for image in plan.images},
            "not offered": sorted(plan.not_offered),
        }
    return found


@pytest.mark.parametrize("name", VARIANTS)
def test_the_tree_of_a_variant_is_the_expected_one(
    project: Project, request: pytest.FixtureRequest, name: str
) -> None:
    """On each of its platforms."""
    file = EXPECTED / f"variant-{name}.json"
    document = trees(project, project.variants[name])
    if request.config.getoption("--update-golden"):
        file.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    assert json.loads(file.read_text()) == document
