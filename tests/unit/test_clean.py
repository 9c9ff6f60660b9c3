"""What `clean` removes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.clean import empty_cache
from strata.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

ROOMS = ["base", "channel", "files", "index", "mine", "wheels"]


def test_every_room_of_the_cache_is_emptied_and_no_other(tmp_path: Path) -> None:
    """Also the indexes that `lock` keeps; what strata has not put there stays."""
    place = Workspace(root=tmp_path, build=tmp_path / "build", cache=tmp_path / "cache")
    for room in ROOMS:
        (place.cache / room).mkdir(parents=True)
        (place.cache / room / "file").touch()
    empty_cache(place, dry_run=True)
    assert sorted(file.name for file in place.cache.rglob("file")) == ["file"] * len(ROOMS)
    empty_cache(place, dry_run=False)
    assert [folder.name for folder in place.cache.iterdir()] == ["mine"]
