"""The disks that a build fills: how much is free on them, and whether that is enough."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from strata.errors import HostError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from strata.engine.connect import Engine
    from strata.workspace import Workspace

GIGABYTE = 1_000_000_000
# What the engine needs for a first build of all images, and for anything else.
NEEDED_BYTES = 5 * GIGABYTE
LITTLE_BYTES = GIGABYTE // 5
# Wheels, channel and base; the build folder holds as much where it can't link to the cache.
FOLDER_BYTES = 2 * GIGABYTE
ENGINE_FIX = "make room there: docker system df, then docker system prune"
CACHE_FIX = "make room there (./inv clean empties the cache), or move it: STRATA_CACHE=/larger/disk"
BUILD_FIX = "make room there, or clone the project to a larger disk"


@dataclass(frozen=True, kw_only=True)
class Room:
    """A folder with the bytes that are free there (None where unknown) and that are needed."""

    where: str
    folder: Path
    free: int | None
    need: int
    fix: str


def check_room(workspace: Workspace, engine: Engine, info: Mapping[str, Any]) -> None:
    """Raise `HostError` for every folder that a build fills and that has too little room.

    `info` is the engine's answer to /info (Docker Engine API 1.43 and later).
    """
    root = Path(info["DockerRootDir"])
    rooms = (
        engine_room(engine, root, engine_free(engine, root), NEEDED_BYTES),
        _folder_room("cache", workspace.cache, CACHE_FIX),
        _folder_room("build folder", workspace.build, BUILD_FIX),
    )
    if problems := room_problems(rooms):
        raise HostError(*problems)


def engine_room(engine: Engine, root: Path, free: int | None, need: int) -> Room:
    """Return the room of an engine's data root, in bytes."""
    where = f"Docker engine at {engine.host} ({engine.origin})"
    return Room(where=where, folder=root, free=free, need=need, fix=ENGINE_FIX)


def engine_free(engine: Engine, root: Path) -> int | None:
    """Return the free bytes of an engine's data root; None where that is not on this machine."""
    return free_bytes(root) if engine.socket_path is not None and root.exists() else None


def _folder_room(name: str, folder: Path, fix: str) -> Room:
    return Room(where=name, folder=folder, free=free_bytes(folder), need=FOLDER_BYTES, fix=fix)


def free_bytes(folder: Path) -> int | None:
    """Return the room in bytes where `folder` is or would be; None if that can't be asked."""
    there = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        return shutil.disk_usage(there).free
    except OSError:
        return None


def room_problems(rooms: Iterable[Room]) -> tuple[Problem, ...]:
    """Return a problem for every room that is known to be too small."""
    return tuple(
        Problem(
            where=room.where,
            what=f"{room.folder} has {room.free / GIGABYTE:.1f} GB free,"
            f" and {room.need / GIGABYTE:.1f} GB are needed",
            fix=room.fix,
        )
        for room in rooms
        if room.free is not None and room.free < room.need
    )
