"""Definition files, and how their faults are told."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strata.errors import Problem, closest
from strata.load.schema import (
    ImageFile,
    LayerFile,
    SourcesFile,
    folders,
    read_text,
    read_toml,
)

if TYPE_CHECKING:
    from pathlib import Path

SOURCES = 'platforms = ["linux/amd64"]\nepoch = 1\n[base]\nsuite = "bookworm"\n'


def problems(
    tmp_path: Path, text: str, schema: type[ImageFile | LayerFile | SourcesFile]
) -> list[tuple[str, str]]:
    """Return what and fix of all that is wrong with a file of this text."""
    file = tmp_path / "file.toml"
    file.write_text(text)
    found = read_toml(file, "images/file.toml", schema)
    assert isinstance(found, list)
    assert {problem.where for problem in found} == {"images/file.toml"}
    return [(problem.what, problem.fix) for problem in found]


def test_a_good_file_is_its_values(tmp_path: Path) -> None:
    """What may be left out has its default."""
    file = tmp_path / "file.toml"
    file.write_text('summary = "s"\nlayers = ["10-one"]\n')
    assert read_toml(file, "", ImageFile) == ImageFile(summary="s", layers=["10-one"], checks=[])


def test_an_unknown_key_is_told_with_the_closest_one(tmp_path: Path) -> None:
    """And with the keys that there are."""
    assert problems(tmp_path, 'summary = "s"\nlayers = ["a"]\ncheks = []\n', ImageFile) == [
        (
            'unknown key "cheks" (did you mean "checks"?)',
            "the keys here are summary, layers, checks",
        )
    ]


def test_an_unknown_key_of_a_table_is_told_with_the_tables_keys(tmp_path: Path) -> None:
    """The closest match is looked for where the key stands."""
    assert problems(tmp_path, SOURCES + 'digets = "x"\n', SourcesFile) == [
        (
            'unknown key "base.digets" (did you mean "digest"?)',
            "the keys here are suite, include, image, digest",
        )
    ]


def test_all_faults_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    """A missing key, a wrong type and an unknown key, each by its name."""
    found = problems(tmp_path, "zzz = [1]\nextra = 1\n[facts]\nx = 1\n", LayerFile)
    assert [what.split(":")[0] for what, _ in found] == [
        'the key "summary" is missing',
        "facts.x",
        'unknown key "zzz"',
        'unknown key "extra"',
    ]


@pytest.mark.parametrize(
    ("old", "new", "place"),
    [
        ("linux/amd64", "windows/amd64", "platforms.0"),
        ("epoch = 1", "epoch = -1", "epoch"),
        ("epoch = 1", 'epoch = "1st"', "epoch"),
        ('suite = "bookworm"', 'image = "i"\ndigest = "sha256:12"', "base.digest"),
        ('suite = "bookworm"', 'suite = ""', "base.suite"),
    ],
)
def test_a_wrong_value_is_named(tmp_path: Path, old: str, new: str, place: str) -> None:
    """Platforms, times and digests have their form."""
    ((what, fix),) = problems(tmp_path, SOURCES.replace(old, new), SourcesFile)
    assert what.startswith(f"{place}: ")
    assert fix == f"correct the value of {place}"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = = 2\nc = 3\n", 2),
        ("a = 1\na = 2\n", 2),
        ("a = 1\n\nb = [1,\n", 3),
        ('a = "no end', 1),
        ("\n[table\n", 2),
    ],
)
def test_invalid_toml_is_told_with_its_line(tmp_path: Path, text: str, line: int) -> None:
    """Also where the file ends too early."""
    ((what, fix),) = problems(tmp_path, text, ImageFile)
    assert what.startswith("invalid TOML: ")
    assert f"line {line}" in what
    assert fix == "correct that line"


def test_a_file_that_is_not_utf_8_is_told_with_its_line(tmp_path: Path) -> None:
    """It is no traceback."""
    file = tmp_path / "file"
    file.write_bytes(b"one\ntwo \xff\n")
    expected = Problem(where="file:2", what="is not UTF-8", fix="correct that line")
    assert read_text(file, "file") == expected
    assert read_toml(file, "file", ImageFile) == [expected]


def test_a_missing_file_is_told_by_its_place(tmp_path: Path) -> None:
    """A folder in its place is told as well."""
    (found,) = read_toml(tmp_path / "none.toml", "images/none.toml", ImageFile)
    assert isinstance(found, Problem)
    assert (found.where, found.fix) == ("images/none.toml", "write images/none.toml")
    assert found.what == "No such file or directory"
    assert isinstance(read_text(tmp_path, "folder"), Problem)


def test_only_a_close_match_is_offered() -> None:
    """Nothing is better than a wild guess."""
    assert closest("40-jupiter", ["10-base", "40-jupyter"]) == ' (did you mean "40-jupyter"?)'
    assert closest("zzz", ["10-base"]) == ""


def test_definition_folders_are_sorted_and_hidden_ones_are_none(tmp_path: Path) -> None:
    """Files, hidden folders and caches of Python are no definitions."""
    for name in ("20-b", "10-a", ".hidden", "__pycache__"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    assert [path.name for path in folders(tmp_path)] == ["10-a", "20-b"]
    assert folders(tmp_path / "nowhere") == []
