"""The schema of ddp-check's document, and documents that are not as it says.

Every document of a real run is validated where tests/train reads it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest

from ddp.report import SCHEMA, render_json, report_unfit

ROOT = Path(__file__).resolve().parent.parent.parent
RULES = json.loads((ROOT / "docs/ddp-check.schema.json").read_text())


def document() -> dict[str, Any]:
    """Return the report of a check that could not start."""
    found: dict[str, Any] = json.loads(render_json(report_unfit(None, "no folder", (1.0, 2.5))))
    return found


def errors(found: dict[str, Any]) -> list[str]:
    """Return what is not as the schema says."""
    validator = jsonschema.Draft202012Validator(RULES)
    return [error.message for error in validator.iter_errors(found)]


def test_the_schema_is_one_of_this_version() -> None:
    """It is valid itself, and for the version that the report has."""
    jsonschema.Draft202012Validator.check_schema(RULES)
    assert RULES["properties"]["schema"]["const"] == SCHEMA == "strata.ddp-check/2"


def test_a_check_that_could_not_start_is_as_the_schema_says() -> None:
    """Nothing is left out because nothing was found."""
    assert errors(document()) == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("schema", "strata.ddp-check/1"),
        ("verdict", "maybe"),
        ("mode", "slow"),
        ("label", "GPU"),
        ("world_size", 0),
        ("backend", "mpi"),
        ("seconds", None),
        ("phases", []),
        ("facts", {"torch": "2.13.0"}),
        ("more", 1),
    ],
)
def test_another_document_is_refused(key: str, value: object) -> None:
    """Wrong values, missing facts and keys that nobody knows."""
    assert errors({**document(), key: value}) != []


@pytest.mark.parametrize(
    "change",
    [
        {"outcome": "skipped"},
        {"outcome": "pass"},
        {"reason": None},
        {"required": "yes"},
        {"name": "collectives", "outcome": "pass", "detail": "fine", "reason": None},
        {"name": "scaling", "outcome": "pass", "detail": "fine", "reason": None},
        {"name": "memory", "outcome": "pass", "detail": "fine", "reason": None},
    ],
)
def test_another_phase_is_refused(change: dict[str, object]) -> None:
    """A pass has no reason, a failure has one, and what was measured is there."""
    found = document()
    found["phases"][0].update(change)
    assert errors(found) != []
