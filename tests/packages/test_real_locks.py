"""The committed locks beside public records of their packages (tests/records)."""

from __future__ import annotations

import json
import resource
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from strata.load import load
from strata.lock import LockedPackage, read_lock, solve_lock
from strata.lock.overview import overview
from strata.locking import check_locks, variant_inputs
from strata.workspace import Workspace
from tests.packages.records import CHANNEL, lay_out

if TYPE_CHECKING:
    from strata.model import Project

ROOT = Path(__file__).parents[2]
VARIANTS = ("cpu", "cuda118-py39", "cuda129", "cuda130")
FIX = "after a refresh: python tests/records/curate.py CHANNEL"


@pytest.fixture(scope="module")
def channel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Lay the records out as a channel's folder."""
    return lay_out(tmp_path_factory.mktemp("channel"))


@pytest.fixture(scope="module")
def records(channel: Path) -> dict[str, dict[str, Any]]:
    """Return the records by URL."""
    return {
        f"{CHANNEL}{file.parent.name}/{name}": record
        for file in channel.glob("*/repodata.json")
        for name, record in json.loads(file.read_text())["packages.conda"].items()
    }


def packages(variant: str) -> tuple[LockedPackage, ...]:
    """Return the packages of a committed lock."""
    return read_lock(ROOT / "locks" / variant / "conda-lock.yml").packages


def test_all_locks_are_current_and_it_takes_no_time(capsys: pytest.CaptureFixture[str]) -> None:
    """What is committed can be built from, and `./inv lock --check` says so within 5 s."""
    start = time.process_time()
    check_locks(Workspace.of(ROOT), [])
    assert time.process_time() - start < 5
    assert capsys.readouterr().out.splitlines() == [
        f"locks/{variant}/conda-lock.yml is current" for variant in (*VARIANTS, "embedded")
    ]


def test_the_overview_is_the_one_that_the_locks_make() -> None:
    """`locks/README.md` is written by `./inv lock` and never by hand."""
    assert (ROOT / "locks" / "README.md").read_text(encoding="utf-8") == overview(load(ROOT))


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_package_is_the_one_that_public_locks_vouch_for(
    variant: str, records: dict[str, dict[str, Any]]
) -> None:
    """URL, sha256, md5 and size of each are those of the records."""
    for package in packages(variant):
        url = package.url.replace("%21", "!")
        assert url in records, FIX
        record = records[url]
        found = (package.sha256, package.md5, package.size, package.version, package.build)
        assert found == (
            record["sha256"],
            record["md5"],
            record.get("size"),
            record["version"],
            record["build"],
        )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Copy the definitions, so that their locks can be written anew."""
    root = tmp_path_factory.mktemp("copy")
    for name in ("images", "layers", "locks", "train"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    return load(root)


@pytest.mark.parametrize("variant", VARIANTS)
def test_solving_again_gives_the_same_lock(variant: str, channel: Path, copy: Project) -> None:
    """Byte for byte, though the records hold other versions; within 10 s and 1 GiB."""
    chosen = copy.variants[variant]
    before = chosen.lock.read_bytes()
    chosen.lock.unlink()
    start = time.monotonic()
    solve_lock(variant_inputs(copy, chosen), channel, CHANNEL, chosen.lock)
    assert time.monotonic() - start < 10
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < 2**20  # KiB
    assert chosen.lock.read_bytes() == before, FIX
