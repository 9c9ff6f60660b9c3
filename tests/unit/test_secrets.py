"""What was put into addresses is shown by its name."""

from __future__ import annotations

import pytest

from strata import secrets
from strata.lock.urls import mask
from strata.upstream.mirrors import with_variables


@pytest.fixture(autouse=True)
def nothing_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each test begin with nothing noted, and leave nothing behind."""
    monkeypatch.setattr(secrets, "_NAMES", {})


def test_a_value_that_was_put_in_is_shown_by_its_name() -> None:
    """In the middle of a path, too, and as a server or a program quotes it."""
    url = with_variables("https://h/${TOKEN}/c", {"TOKEN": "a b/c%"}, "mirrors.toml")
    assert url == "https://h/a b/c%/c"
    assert mask("GET https://h/a b/c%/c") == "GET https://h/$TOKEN/c"
    assert mask("GET https://h/a%20b/c%25/c") == "GET https://h/$TOKEN/c"
    assert mask("GET https://h/a%20b%2Fc%25/c") == "GET https://h/$TOKEN/c"


def test_a_value_that_is_written_quoted_is_known_without_quotes() -> None:
    """A password is quoted in a URL, and plain in what a program says of it."""
    with_variables("https://ada:$PASSWORD@h/", {"PASSWORD": "p%40ss"}, "mirrors.toml")
    assert mask("ada failed with p@ss") == "ada failed with $PASSWORD"
    assert mask("https://ada:p%40ss@h/") == "https://***:$PASSWORD@h/"


def test_a_value_that_holds_another_is_replaced_whole() -> None:
    """Not in part, with the rest of it in the open."""
    secrets.note("SHORT", "abcd")
    secrets.note("LONG", "abcdefgh")
    assert secrets.hide("abcdefgh abcd") == "$LONG $SHORT"


def test_what_was_not_put_in_stays() -> None:
    """Nor is a word of three letters taken for a secret."""
    secrets.note("PORT", "443")
    assert secrets.hide("https://h:443/conda-forge/") == "https://h:443/conda-forge/"
