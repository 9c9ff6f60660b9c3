"""Rendered plan, bake file and tags of the small project, beside what they should be.

`pytest tests/golden --update-golden` writes them anew: review the difference,
since a changed digest rebuilds everybody's images.
"""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import strata.plan
from strata.bake import Contexts, render_bake
from strata.tags import immutable_tag, repository
from tests.projects import make_project

if TYPE_CHECKING:
    from collections.abc import Callable

    from strata.plan import Plan
    from tests.projects import SmallProject

EXPECTED = Path(__file__).parent / "expected"


@pytest.fixture
def compare(request: pytest.FixtureRequest) -> Callable[[str, Any], None]:
    """Compare a document with its golden copy, or write the copy."""

    def act(name: str, document: Any) -> None:  # noqa: ANN401 - JSON
        file = EXPECTED / name
        if request.config.getoption("--update-golden"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
        assert json.loads(file.read_text()) == document

    return act


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SmallProject:
    """Make the small project with a branch, and with tools that don't change under the golden."""
    project = make_project(tmp_path)
    project.write("images/short.toml", 'summary = "A branch"\nlayers = ["10-one", "40-top"]\n')
    project.write("tools/settle", "#!/bin/sh\n").chmod(0o755)
    monkeypatch.setattr(strata.plan, "INBUILD", tmp_path / "tools")
    monkeypatch.setattr(strata.plan, "RECIPE", 1)
    return project


def plan_document(plan: Plan) -> dict[str, Any]:
    """Return everything that a plan decides."""
    return {
        "steps": [
            {
                "name": step.name,
                "parent": step.parent.name if step.parent else None,
                "digest": step.digest,
                "ref": step.ref,
                "inputs": dict(step.inputs),
                "args": dict(step.args),
                "labels": dict(step.labels),
                "manifest": json.loads(step.manifest()),
            }
            for step in plan.steps
        ],
        "images": [
            {
                "name": image.name,
                "ref": image.ref,
                "step": image.step.name,
                "checks": list(image.checks),
                "left_out": dict(image.left_out),
            }
            for image in plan.images
        ],
    }


def test_the_plan_is_the_expected_one(
    project: SmallProject, compare: Callable[[str, Any], None]
) -> None:
    """Every step with its inputs, digest, arguments, labels and manifest."""
    compare("plan.json", plan_document(project.plan()))


@pytest.mark.parametrize(
    ("name", "is_there"),
    [("bake-all.json", ()), ("bake-rest.json", ("10-one", "10-one_20-two"))],
)
def test_the_bake_file_is_the_expected_one(
    project: SmallProject,
    compare: Callable[[str, Any], None],
    name: str,
    is_there: tuple[str, ...],
) -> None:
    """With nothing built, and with the two lowest steps there."""
    plan = project.plan()
    build = {step.name for step in plan.steps} - set(is_there)
    contexts = Contexts(
        tools=Path("/tools"),
        rattler=Path("/rattler"),
        base=Path("/base"),
        installer=Path("/installer"),
        steps={step.name: Path("/steps", step.name) for step in plan.steps},
    )
    bake = render_bake(plan, build, project.root, contexts, None)
    compare(name, json.loads(json.dumps(bake).replace(str(project.root), "/project")))


def test_the_tags_are_the_expected_ones(
    project: SmallProject, compare: Callable[[str, Any], None]
) -> None:
    """What each image is called here, and in a registry."""
    tag = immutable_tag("embedded", date(2026, 11, 30), "0123456789abcdef", dirty=False)
    document = {
        image.name: {
            "here": [image.step.ref, image.ref],
            "there": [
                f"{repository('ghcr.io/MyOrg', image.name)}:{name}" for name in (tag, image.variant)
            ],
        }
        for image in project.plan().images
    }
    compare("tags.json", document)
