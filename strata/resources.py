"""What a build took of this machine: memory while it ran, disk when it has ended."""

from __future__ import annotations

import resource
from typing import TYPE_CHECKING

from strata.clean import ROOMS
from strata.record import Resources

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path
    from typing import Any

    from strata.plan import PlannedImage
    from strata.record import ImageRecord
    from strata.store import Store
    from strata.workspace import Workspace

KIBIBYTE = 1024
BLOCK = 512  # bytes: what st_blocks counts, whatever the file system's own are


def measure_resources(workspace: Workspace, store: Store) -> Resources:
    """Return what this process and its programs have taken until now; asks the engine."""
    return Resources(
        memory=_peak(resource.RUSAGE_SELF),
        program_memory=_peak(resource.RUSAGE_CHILDREN),
        cache=disk_bytes(workspace.cache / room for room in ROOMS),
        engine=engine_bytes(store.sdk.df()),
    )


def kept_resources(image: PlannedImage, earlier: Iterable[ImageRecord]) -> Resources | None:
    """Return what was recorded of an image, by any of its records, None where nothing was."""
    return next((r.resources for r in earlier if r.image == image.name), None)


def disk_bytes(folders: Iterable[Path]) -> int:
    """Return the bytes of disk that the files below some folders take, each file once."""
    files = {}
    for folder in folders:
        for path in folder.rglob("*"):
            found = path.lstat()
            files[found.st_dev, found.st_ino] = found.st_blocks * BLOCK
    return sum(files.values())


def engine_bytes(usage: Mapping[str, Any]) -> int:
    """Return the bytes of layers and build cache in an engine's answer to /system/df.

    Cache that is shared is a layer, too, and is counted there.
    """
    cached = sum(entry["Size"] for entry in usage["BuildCache"] or () if not entry["Shared"])
    return int(usage["LayersSize"]) + int(cached)


def _peak(whose: int) -> int:
    return resource.getrusage(whose).ru_maxrss * KIBIBYTE  # getrusage(2): kibibytes on Linux
