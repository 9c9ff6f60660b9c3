"""Options of the whole test suite."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what the golden tests ask for."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write tests/golden anew from what is rendered now; review the difference",
    )
