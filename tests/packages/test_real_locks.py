"""The committed locks beside public records of their packages (tests/records)."""

from __future__ import annotations

import json
import lzma
import os
import resource
import shutil
import socket
import subprocess
import sys
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
FIX = "after a refresh: python -m tests.records.curate CHANNEL"


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


def test_all_locks_are_current_and_it_takes_no_time(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is committed can be built from; `./inv lock --check` says so within 5 s, offline."""

    def refuse(_: socket.socket, address: object) -> None:
        pytest.fail(f"it connects to {address}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "connect_ex", refuse)
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


def test_conda_lock_reads_what_is_committed(tmp_path: Path) -> None:
    """The program parses the lock, and renders an explicit file of all packages from it."""
    lock = ROOT / "locks" / "cuda118-py39" / "conda-lock.yml"
    extras = [word for category in ("pytorch", "jupyter") for word in ("--extras", category)]
    words = ["render", "--kind", "explicit", "--platform", "linux-64", *extras, str(lock)]
    subprocess.run([sys.executable, "-m", "conda_lock", *words], cwd=tmp_path, check=True)
    lines = (tmp_path / "conda-linux-64.lock").read_text().splitlines()
    urls = {line.partition("#")[0] for line in lines if line.startswith("https://")}
    assert urls == {package.url for package in packages("cuda118-py39")}


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Copy the definitions, so that their locks can be written anew."""
    root = tmp_path_factory.mktemp("copy")
    for name in ("images", "layers", "locks", "train"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    return load(root)


@pytest.mark.parametrize("variant", VARIANTS)
def test_solving_again_gives_the_same_lock(
    variant: str, channel: Path, copy: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Byte for byte, on whatever machine; in 10 s of processor time, 1 GiB."""
    # What rattler takes for this machine's own wherever it looks at that.
    for name, value in (("CUDA", "9.0"), ("GLIBC", "2.12"), ("ARCHSPEC", "core2")):
        monkeypatch.setenv(f"CONDA_OVERRIDE_{name}", value)
    chosen = copy.variants[variant]
    before = chosen.lock.read_bytes()
    chosen.lock.unlink()
    start = resource.getrusage(resource.RUSAGE_CHILDREN)
    solve_lock(variant_inputs(copy, chosen), channel, CHANNEL, chosen.lock)
    end = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime < 10
    assert end.ru_maxrss < 2**20  # KiB
    assert chosen.lock.read_bytes() == before, FIX


def test_records_are_curated_from_a_channel(channel: Path, tmp_path: Path) -> None:
    """What a refresh does: from a channel that holds just the records, the same records come."""
    for name in ("images", "layers", "locks", "train"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    folder = tmp_path / "tests/records"
    folder.mkdir(parents=True)
    shutil.copyfile(ROOT / "tests/records/curate.py", folder / "curate.py")
    subprocess.run(
        [sys.executable, "-m", "tests.records.curate", str(channel)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "RATTLER_CACHE_DIR": str(tmp_path / "cache")},
        check=True,
    )
    for subdir in ("linux-64", "linux-aarch64", "noarch"):
        made = json.loads(lzma.decompress((folder / f"{subdir}.json.xz").read_bytes()))
        assert made == json.loads((channel / subdir / "repodata.json").read_text())
