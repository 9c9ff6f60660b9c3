"""The channel: made once, kept, checked, and mended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from strata.embedded import channel as module
from strata.embedded.channel import channel_key, make_channel, read_names, shares, verify_channel
from strata.embedded.child import call_child
from strata.embedded.convert import CONVERTER_VERSION
from strata.embedded.pins import Pin
from strata.embedded.wheels import sha256_of
from strata.errors import DefinitionError, LockError
from strata.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.packages.conftest import WheelMaker

EPOCH = 1793491200


def _variant(tmp_path: Path, make_wheel: WheelMaker, **metadata: str) -> tuple[Workspace, Path]:
    """Pin wheels that are in the cache already, so that nothing is fetched."""
    workspace = Workspace(root=tmp_path, build=tmp_path / "build", cache=tmp_path / "cache")
    variant = tmp_path / "variant"
    variant.mkdir()
    (variant / "names.toml").write_text('[names]\none = "uno"\n')
    text = ""
    for name, lines in metadata.items():
        wheel = make_wheel(workspace.cache / "wheels", name, metadata=lines)
        text += str(Pin(project=name, version="1.0", extras=frozenset(), sha256=sha256_of(wheel)))
    (variant / "wheels.txt").write_text(text)
    return workspace, variant


def test_a_channel_is_made_once_and_mended_where_it_is_damaged(
    tmp_path: Path, make_wheel: WheelMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A whole channel is left alone; a damaged or lost package is made again, the same, alone."""
    workspace, variant = _variant(tmp_path, make_wheel, one="Requires-Dist: two\n", two="")
    channel = make_channel(workspace, variant, EPOCH)
    records = json.loads((channel / "linux-64" / "repodata.json").read_text())["packages.conda"]
    assert {r["name"]: r["depends"] for r in records.values()} == {
        "python": [],
        "two": ["python >=3.11,<3.12"],
        "uno": ["python >=3.11,<3.12", "two"],
    }
    assert (channel / "noarch" / "repodata.json").is_file()
    manifest = json.loads((channel / "manifest.json").read_text())
    assert manifest["hashes"] == {file: record["sha256"] for file, record in records.items()}

    jobs: list[dict[str, object]] = []

    def watched(job: dict[str, object], where: str) -> object:
        jobs.append(dict(job))
        return call_child(job, where)

    monkeypatch.setattr(module, "call_child", watched)
    assert make_channel(workspace, variant, EPOCH) == channel
    assert jobs == []

    (channel.parent / ".new-killed").mkdir()
    uno = channel / "linux-64" / "uno-1.0-py311_0.conda"
    before = uno.read_bytes()
    uno.write_bytes(before[:-1])
    assert make_channel(workspace, variant, EPOCH) == channel
    assert [job["do"] for job in jobs] == ["convert", "index"]
    assert list(jobs[0]["wheels"]) == ["one"]  # type: ignore[call-overload] # it is a table
    assert uno.read_bytes() == before
    assert json.loads((channel / "manifest.json").read_text()) == manifest

    (channel / "linux-64" / "repodata.json").unlink()
    make_channel(workspace, variant, EPOCH)
    assert [job["do"] for job in jobs] == ["convert", "index", "index"]
    assert [path.name for path in channel.parent.iterdir() if path.name != ".lock"] == [
        channel.name
    ]


def test_verify_names_the_packages_that_are_not_as_expected(tmp_path: Path) -> None:
    """Of a right, a changed and a lost package, the last two are named."""
    (tmp_path / "linux-64").mkdir()
    for name in ("right", "changed"):
        (tmp_path / "linux-64" / name).write_text(name)
    right = sha256_of(tmp_path / "linux-64" / "right")
    expected = {"right": right, "changed": right, "lost": right}
    assert verify_channel(tmp_path, expected) == ("changed", "lost")


def test_a_set_that_is_not_whole_is_a_broken_lock(tmp_path: Path, make_wheel: WheelMaker) -> None:
    """A pinned wheel whose requirement or extra is not pinned is refused before converting."""
    workspace, variant = _variant(
        tmp_path, make_wheel, one="Requires-Dist: two[x]\nRequires-Dist: three\n", two=""
    )
    with pytest.raises(LockError) as caught:
        make_channel(workspace, variant, EPOCH)
    assert [problem.what for problem in caught.value.problems] == [
        "one needs three, but the set has none",
        "somebody asks for two[x]",
    ]
    assert [path.name for path in (workspace.cache / "channel").iterdir()] == [".lock"]


def test_the_key_follows_everything_that_decides_the_bytes() -> None:
    """Another hash, extra, name or epoch is another channel; the order of the pins is not."""
    a = Pin(project="a", version="1", extras=frozenset(), sha256="0" * 64)
    b = Pin(project="b", version="1", extras=frozenset(), sha256="0" * 64)
    key = channel_key([a, b], {}, EPOCH)
    assert key == channel_key([b, a], {}, EPOCH)
    others = {
        channel_key([a], {}, EPOCH),
        channel_key([a, b], {"a": "c"}, EPOCH),
        channel_key([a, b], {}, EPOCH + 1),
        channel_key(
            [a, Pin(project="b", version="1", extras=frozenset("x"), sha256="0" * 64)], {}, EPOCH
        ),
        channel_key(
            [a, Pin(project="b", version="1", extras=frozenset(), sha256="1" * 64)], {}, EPOCH
        ),
    }
    assert len(others - {key}) == 5


def test_the_key_follows_the_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer converter makes a channel of its own."""
    before = channel_key([], {}, EPOCH)
    monkeypatch.setattr(module, "CONVERTER_VERSION", CONVERTER_VERSION + 1)
    assert channel_key([], {}, EPOCH) != before


def test_names_are_read_and_may_be_absent(tmp_path: Path) -> None:
    """The table renames what it names; no file renames nothing."""
    file = tmp_path / "names.toml"
    assert read_names(file) == {}
    file.write_text('[names]\ntorch = "pytorch"\n')
    assert read_names(file) == {"torch": "pytorch"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[names\n", "line 1"),
        ("[name]\na = 'b'\n", "something else"),
        ("names = 1\n", "something else"),
        ("[names]\na = 1\n", "a: not a name"),
        ("[names]\na = ''\n", "a: not a name"),
    ],
)
def test_broken_names_are_refused(tmp_path: Path, text: str, complaint: str) -> None:
    """A names.toml that is not one table of names is a wrong definition, and is named."""
    file = tmp_path / "names.toml"
    file.write_text(text)
    with pytest.raises(DefinitionError, match=complaint) as caught:
        read_names(file)
    assert str(file) in str(caught.value)


def test_shares_are_even_and_none_is_empty() -> None:
    """One huge piece stands against all the small ones, and no process starts for nothing."""
    assert shares({"a": 1, "huge": 9, "b": 2, "c": 3}, 2) == [["huge"], ["c", "b", "a"]]
    assert shares({"a": 1}, 2) == [["a"]]
    assert shares({}, 2) == []
