"""Bit for bit: another clone, another umask, other times, another engine, the same digests."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
OTHER_TIME = 1_000_000_000  # seconds since 1970: long before anything here was written
VARIANT = "embedded"


def digests(root: Path) -> dict[str, str]:
    """Return the digest of each image of the embedded variant, from a project's record."""
    record = json.loads((root / "build" / "record.json").read_text())
    return {i["image"]: i["digest"] for i in record["images"] if i["variant"] == VARIANT}


def clone_with_other_modes(target: Path) -> None:
    """Copy what git would commit, with other modification times and for its owner alone."""
    argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listing.splitlines():
        source, copy = ROOT / name, target / name
        if not source.is_file():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        shutil.copyfile(source, copy)
        copy.chmod(0o700 if os.access(source, os.X_OK) else 0o600)
        os.utime(copy, (OTHER_TIME, OTHER_TIME))


@pytest.fixture
def clone(tmp_path: Path) -> Iterator[Path]:
    """Make a clone with a private engine and a cache of its own; only wheels are shared."""
    folder = tmp_path / "clone"
    folder.mkdir(mode=0o700)
    clone_with_other_modes(folder)
    yield folder
    inv(folder, "engine", "stop", "--purge")


def inv(folder: Path, *words: str) -> None:
    """Run ./inv in a clone, with an empty cache, a private engine and umask 077."""
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    cache = Path(os.environ.get("STRATA_CACHE") or Path(home) / "strata")
    own = folder.parent / "cache"
    if not own.exists():
        shutil.copytree(cache / "wheels", own / "wheels", copy_function=os.link)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("DOCKER_")},
        "STRATA_ENGINE": "private",
        "STRATA_CACHE": str(own),
        "STRATA_VENV": sys.prefix,
    }
    done = subprocess.run(
        ["sh", "-c", 'umask 077; exec ./inv "$@"', "inv", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_two_builds_give_the_same_digests(clone: Path) -> None:
    """Base, channel and images made again elsewhere have the digests of those that were tested."""
    inv(clone, "build", "--no-check")

    assert digests(clone) == digests(ROOT)
    assert len(digests(clone)) == 5
