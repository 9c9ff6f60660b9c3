"""Changing values of a sources.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from strata.errors import DefinitionError
from strata.upstream.installers import newest_release
from strata.upstream.sources import set_values

ROOT = Path(__file__).parents[2]
SOURCES = sorted(ROOT.glob("locks/*/sources.toml"))
PINNED = [path for path in SOURCES if "[installer]" in path.read_text()]
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


@pytest.mark.parametrize("path", PINNED, ids=lambda path: path.parent.name)
def test_every_variant_can_be_pinned_anew(path: Path) -> None:
    """Base and installer of every committed variant stand where `./inv pin` can change them."""
    text = path.read_text()
    installer = tomllib.loads(text)["installer"]
    values: dict[tuple[str, ...], str] = {
        ("base", "digest"): f"sha256:{'0' * 64}",
        ("installer", "url"): "https://h.example/a",
    }
    values |= {("installer", "sha256", platform): "0" * 64 for platform in installer["sha256"]}
    changed = set_values(text, values, str(path))
    assert changed.count("0" * 64) == 1 + len(installer["sha256"])

    name = installer["url"].rsplit("/", 1)[-1]
    newer = re.sub(r"_\d[\d.]*-\d+-", "_99.1.0-1-", name)
    page = "".join(f'<a href="{newer.format(arch=arch)}">' for arch in ("x86_64", "aarch64"))
    release = newest_release(page, name, list(installer["sha256"]))
    assert release is not None
    assert release.name == newer
