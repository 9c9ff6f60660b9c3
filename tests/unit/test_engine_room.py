"""Which disks must have how much room before a build."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pytest

from strata.engine.connect import Engine
from strata.engine.room import check_room, free_bytes
from strata.errors import HostError
from strata.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

HERE = Engine(host="unix:///run/docker.sock", origin="socket")
AWAY = Engine(host="tcp://build.example:2376", origin="DOCKER_HOST")


class Usage(NamedTuple):
    """What is asked of shutil.disk_usage."""

    free: int


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    """Make an engine's data root, a cache and a build folder."""
    for name in ("docker", "cache", "build"):
        (tmp_path / name).mkdir()
    return Workspace(root=tmp_path, build=tmp_path / "build", cache=tmp_path / "cache")


def problems(
    place: Workspace, engine: Engine, free: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> dict[str, str]:
    """Return what is wrong, by place, where the folders have that many bytes free."""
    monkeypatch.setattr("shutil.disk_usage", lambda folder: Usage(free[folder.name]))
    with pytest.raises(HostError) as failed:
        check_room(place, engine, {"DockerRootDir": str(place.root / "docker")})
    assert failed.value.exit_code == 8
    return {problem.where: problem.what for problem in failed.value.problems}


def test_every_disk_that_is_too_full_is_told(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine's needs 5 GB, cache and build folder 2 GB each; all are told at once."""
    free = {"docker": 4_900_000_000, "cache": 1_900_000_000, "build": 100_000_000}
    assert problems(place, HERE, free, monkeypatch) == {
        "Docker engine at unix:///run/docker.sock (socket)": (
            f"{place.root}/docker has 4.9 GB free, and 5.0 GB are needed"
        ),
        "cache": f"{place.root}/cache has 1.9 GB free, and 2.0 GB are needed",
        "build folder": f"{place.root}/build has 0.1 GB free, and 2.0 GB are needed",
    }


def test_the_disk_of_an_engine_elsewhere_is_not_measured(
    place: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its data root has a namesake here, which says nothing."""
    free = {"docker": 0, "cache": 2_000_000_000, "build": 0}
    assert list(problems(place, AWAY, free, monkeypatch)) == ["build folder"]


def test_enough_room_is_no_problem(place: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exactly what is needed is enough."""
    free = {"docker": 5_000_000_000, "cache": 2_000_000_000, "build": 2_000_000_000}
    monkeypatch.setattr("shutil.disk_usage", lambda folder: Usage(free[folder.name]))
    check_room(place, HERE, {"DockerRootDir": str(place.root / "docker")})


def test_room_is_measured_where_a_folder_would_be(tmp_path: Path) -> None:
    """A cache that is not made yet has its parent's room."""
    assert free_bytes(tmp_path / "not" / "yet") is not None
