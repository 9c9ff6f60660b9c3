"""What decides a lock, and how old packages must be."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from strata.errors import DefinitionError
from strata.load import load
from strata.locking import cooled, variant_inputs

if TYPE_CHECKING:
    from tests.projects import SmallProject

SOURCES = "locks/embedded/sources.toml"


def test_sources_and_pins_name_the_same_platforms(
    project: SmallProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A platform of the sources that is not solved for is told, with both files."""
    monkeypatch.chdir(project.root)
    project.replace(SOURCES, '["linux/amd64"]', '["linux/amd64", "linux/arm64"]')
    definitions = load(project.root)
    with pytest.raises(DefinitionError) as refused:
        variant_inputs(definitions, definitions.variants["embedded"])
    (problem,) = refused.value.problems
    assert problem.where == "locks/embedded/pins.yml:3"
    assert problem.what == (
        "the platforms are linux-64, and those of locks/embedded/sources.toml are"
        " linux/amd64, linux/arm64: linux-aarch64 stands in one of them only"
    )
    assert problem.fix == "name the same platforms in both, then ./inv lock --variant embedded"


def test_pins_of_a_platform_that_has_no_sources_are_told(project: SmallProject) -> None:
    """It would be solved for, and never built."""
    project.replace(SOURCES, '["linux/amd64"]', '["linux/arm64"]')
    definitions = load(project.root)
    with pytest.raises(DefinitionError, match=r"linux-64, linux-aarch64 stands in one of them"):
        variant_inputs(definitions, definitions.variants["embedded"])


@pytest.mark.parametrize("days", ["soon", "-1", "1.5", "", "999999999", "9" * 5000])
def test_what_is_no_number_of_days_is_refused(days: str) -> None:
    """A time before the first year is none, either."""
    with pytest.raises(DefinitionError, match="is no number of days"):
        cooled(days, datetime(2026, 11, 30, tzinfo=UTC))
