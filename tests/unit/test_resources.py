"""What a build took: memory of processes, disk of cache and engine."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from strata.resources import disk_bytes, engine_bytes, measure_resources
from strata.store import Store
from strata.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

MEBIBYTE = 1 << 20
USAGE = {
    "LayersSize": 3_000_000_000,
    "BuildCache": [{"Size": 20_000, "Shared": False}, {"Size": 3, "Shared": True}],
    "Images": [{"Size": 9}],
}


def test_a_file_counts_once(tmp_path: Path) -> None:
    """By the blocks that it takes, whatever its names; links and holes count next to nothing."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    with (folder / "one").open("wb") as file:
        file.write(b"x" * MEBIBYTE)
        os.fsync(file.fileno())  # some file systems say only then how many blocks it has
    size = disk_bytes([folder, tmp_path / "missing"])
    assert MEBIBYTE <= size <= MEBIBYTE + 65536
    (folder / "again").hardlink_to(folder / "one")
    (folder / "link").symlink_to(folder / "one")
    assert disk_bytes([folder]) - size <= 4096
    with (folder / "sparse").open("wb") as file:
        file.truncate(1 << 30)
    assert disk_bytes([folder]) - size <= 8192


def test_the_engine_is_its_layers_and_its_build_cache() -> None:
    """Each layer once, also where the cache has it too; some engines answer null for the cache."""
    assert engine_bytes(USAGE) == 3_000_020_000
    assert engine_bytes({**USAGE, "BuildCache": None}) == 3_000_000_000


def test_memory_is_that_of_us_and_of_our_programs(tmp_path: Path) -> None:
    """In bytes: a program that held 300 MiB had more than that, and less than ten times as much."""
    hold = "held = bytearray(300 * 1024 * 1024)"
    subprocess.run([sys.executable, "-c", hold], check=True)
    sdk: Any = SimpleNamespace(df=lambda: USAGE)
    project = Workspace(root=tmp_path, build=tmp_path / "build", cache=tmp_path / "cache")
    (tmp_path / "cache" / "more").mkdir(parents=True)
    (tmp_path / "cache" / "more" / "of_others").write_bytes(b"x" * MEBIBYTE)
    took = measure_resources(project, Store(sdk))
    assert 300 * MEBIBYTE < took.program_memory < 3000 * MEBIBYTE
    assert 10 * MEBIBYTE < took.memory < 3000 * MEBIBYTE
    assert (took.cache, took.engine) == (0, 3_000_020_000)
