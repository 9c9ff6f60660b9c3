"""Changing values of a sources.toml."""

from __future__ import annotations

import pytest

from strata.errors import DefinitionError
from strata.upstream.sources import set_values

TEXT = """\
# The newest Ubuntu.
platforms = ["linux/amd64"]

[base]
image = "docker.io/library/ubuntu:24.04"  # readable
digest = "sha256:0"   # binding

[installer]  # Miniconda
url = "https://h.example/a-1.sh"
[installer.sha256]
"linux/amd64" = "unset"
digest = "another table's"
"""


def test_a_value_changes_where_it_stands() -> None:
    """Comments, spaces and all other values stay as they are."""
    values = {
        ("base", "digest"): "sha256:1",
        ("installer", "url"): "https://h.example/a-2.sh",
        ("installer", "sha256", "linux/amd64"): "ab",
    }
    expected = (
        TEXT.replace('"sha256:0"', '"sha256:1"').replace("a-1", "a-2").replace('"unset"', '"ab"')
    )
    assert set_values(TEXT, values, "sources.toml") == expected


def test_nothing_to_change_changes_nothing() -> None:
    """Not even the end of the file."""
    assert set_values(TEXT.rstrip("\n"), {}, "sources.toml") == TEXT.rstrip("\n")


@pytest.mark.parametrize(
    "text",
    [
        "[base]\nimage = 'x'\n",
        "base = { digest = 'old' }\n",
        "[base]\ndigest = 'single quotes'\n",
        '[other]\ndigest = "old"\n',
        '[base]\nnote = """\ndigest = "in a text"\n"""\n',
    ],
)
def test_a_value_that_is_not_found_is_told(text: str) -> None:
    """Rather than written somewhere else: exit code 2, with the line to write."""
    with pytest.raises(DefinitionError) as failure:
        set_values(text, {("base", "digest"): "sha256:1"}, "locks/cpu/sources.toml")
    (problem,) = failure.value.problems
    assert problem.where == "locks/cpu/sources.toml"
    assert problem.what == "base.digest does not stand on a line of its own"
    assert problem.fix == 'write `digest = "…"` below [base]'
