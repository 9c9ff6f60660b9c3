"""The workflow that proposes newer locks: safe, and broken copies are found out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.lint.test_workflow import broken_copy, pins, schema, steps, uploads, zizmor

ROOT = Path(__file__).parents[2]
WORKFLOW = ROOT / ".github/workflows/refresh.yml"
TEXT = WORKFLOW.read_text()
PUBLIC = sorted(p.parent.name for p in ROOT.glob("locks/*/pins.yml") if p.parent.name != "embedded")
SOLVES = (
    f'for variant in {" ".join(PUBLIC)}; do ./inv pin --variant "$variant"; done',
    "./inv lock --cooldown 7 --markdown changes.md",
)
WRITES = {"actions": "write", "contents": "write", "pull-requests": "write"}


def rights(path: Path) -> str:
    """Return what may do more than it must: whoever runs ./inv only reads, who writes runs none."""
    document = yaml.safe_load(path.read_text())
    found = [] if document.get("permissions") == {} else ["workflow"]
    for name, job in document["jobs"].items():
        runs_inv = any("./inv" in step.get("run", "") for step in job["steps"])
        if job.get("permissions") != ({"contents": "read"} if runs_inv else WRITES):
            found.append(name)
    return "\n".join(found)


@pytest.mark.parametrize("check", [zizmor, schema, pins, uploads, rights])
def test_refresh_is_clean(check: Any) -> None:  # noqa: ANN401  # any of the above
    """No check has anything against the workflow."""
    assert check(WORKFLOW) == ""


@pytest.mark.parametrize(
    ("check", "right", "wrong"),
    [
        (zizmor, "          persist-credentials: false\n", "          fetch-depth: 1\n"),
        (zizmor, "  workflow_dispatch:\n", "  pull_request_target:\n"),
        (schema, "timeout-minutes: 60", "timeout-minutes: soon"),
        (schema, '- cron: "17 4 * * 1"', '- at: "17 4 * * 1"'),
        (pins, "@5f6978faf089d4d20b00c7766989d076bb2fc7f1 # v8.1.1", "@v8"),
        (rights, "permissions: {}", "permissions: write-all"),
        (rights, "contents: read # check", "contents: write # check"),
        (rights, "gh workflow run build.yml", "./inv build && gh workflow run build.yml"),
    ],
)
def test_broken_refresh_is_found_out(
    check: Any,  # noqa: ANN401  # any of the above
    right: str,
    wrong: str,
    tmp_path: Path,
) -> None:
    """Each check has something against a copy with the fault that it is there for."""
    assert check(broken_copy(WORKFLOW, right, wrong, tmp_path)) != ""


def test_refresh_pins_before_it_solves() -> None:
    """The lock is solved for the pins proposed with it; no variant is left out but embedded."""
    run = [step["run"] for step in steps(WORKFLOW) if "./inv" in step.get("run", "")]
    assert run == list(SOLVES)


def test_the_proposal_is_built_like_any_change() -> None:
    """Its branch is the build's, and only locks and the records that prove them are in it."""
    job = yaml.safe_load(TEXT)["jobs"]["propose"]
    proposal = next(step for step in job["steps"] if step.get("id") == "propose")["with"]
    assert proposal["add-paths"].split() == ["locks", "tests/records"]
    assert proposal["body-path"] == "changes.md"
    assert job["steps"][-1]["run"] == f"gh workflow run build.yml --ref {proposal['branch']}"
    build = yaml.safe_load((WORKFLOW.parent / "build.yml").read_text())
    assert "workflow_dispatch" in build[True]  # YAML 1.1 reads `on` as a truth value
