"""What several unit tests need."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.projects import SmallProject, make_project

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> SmallProject:
    """Make the small project, without a fault."""
    return make_project(tmp_path)
