"""The embedded variant's conda channel, made on the spot and kept in the cache."""

from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from strata.embedded.child import call_child
from strata.embedded.convert import CONVERTER_VERSION, SUBDIR, read_metadata
from strata.embedded.interpreter import PROJECT as INTERPRETER
from strata.embedded.pins import PIN_AGAIN, Pin, read_pins
from strata.embedded.requires import asked_extras, unmet
from strata.embedded.wheels import fetch_wheels, sha256_of
from strata.errors import BuildError, DefinitionError, LockError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from strata.workspace import Workspace

MANIFEST = "manifest.json"
PROCESSES = 2
# A conversion costs about as much as this many bytes of wheel, however small the wheel is.
COST_OF_A_WHEEL = 2**20


@dataclass(frozen=True, kw_only=True)
class _Manifest:
    """What a whole channel holds: file names by project, sha256 by file name."""

    files: dict[str, str]
    hashes: dict[str, str]
    repodata: str


def make_channel(workspace: Workspace, variant_dir: Path, epoch: int) -> Path:
    """Return the channel made from the wheels that a variant pins, making what is missing of it.

    The folder holds `linux-64/` and `noarch/` with their `repodata.json`, and
    `manifest.json` with the sha256 of every package.  Nothing is made when all
    packages are there and whole; a damaged one is made again alone.  `epoch` is
    the time of all files in the packages, in seconds.

    Raises `LockError` when the pins are not a whole set, `DefinitionError` for a
    broken `names.toml`, `BuildError` when a wheel can't be fetched or converted.
    """
    requirements = variant_dir / "wheels.txt"
    pins = read_pins(requirements)
    rename = read_names(variant_dir / "names.toml")
    channels = workspace.cache / "channel"
    channel = channels / channel_key(pins, rename, epoch)
    channels.mkdir(parents=True, exist_ok=True)
    with _alone(channels / ".lock"):
        manifest = _read_manifest(channel)
        projects = [INTERPRETER, *(pin.project for pin in pins)]
        if manifest is not None:
            damaged = set(verify_channel(channel, manifest.hashes))
            projects = [name for name, file in manifest.files.items() if file in damaged]
            if not projects and _repodata_of(channel) == manifest.repodata:
                return channel
        for left in channels.glob(".new-*"):  # by a process that was killed: we are alone
            shutil.rmtree(left)
        with tempfile.TemporaryDirectory(prefix=".new-", dir=channels) as scratch:
            made = Path(scratch, "channel", SUBDIR)
            made.mkdir(parents=True)
            files = {}
            if projects:
                wheels = fetch_wheels(workspace, requirements)
                _refuse_incomplete(pins, wheels, requirements)
                files = _convert(projects, pins, wheels, made, rename=rename, epoch=epoch)
            if manifest is None:
                _complete(made.parent, files)
                shutil.rmtree(channel, ignore_errors=True)  # it has no manifest that can be read
                made.parent.rename(channel)
            else:
                _repair(channel, made, files, manifest)
    return channel


def verify_channel(channel: Path, expected: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the packages in a channel that are missing or not the expected ones.

    `expected` holds the sha256 of each package by file name.
    """
    return tuple(
        name
        for name, sha256 in expected.items()
        if not (channel / SUBDIR / name).is_file() or sha256_of(channel / SUBDIR / name) != sha256
    )


def channel_key(pins: Iterable[Pin], rename: Mapping[str, str], epoch: int) -> str:
    """Return the name of the channel that these inputs make, with the tools that make it."""
    tools = [f"{tool} {version(tool)}" for tool in ("installer", "py-rattler-build", "zstandard")]
    text = json.dumps(
        [CONVERTER_VERSION, tools, epoch, sorted(map(str, pins)), sorted(rename.items())]
    )
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_names(file: Path) -> dict[str, str]:
    """Return conda's names by normalised project name, from the table `[names]` of a file.

    A missing file renames nothing.  Raises `DefinitionError`.
    """
    fix = 'write it as [names] with lines like torch = "pytorch"'
    try:
        content = tomllib.loads(file.read_text())
    except FileNotFoundError:
        return {}
    except tomllib.TOMLDecodeError as broken:
        raise DefinitionError.at(str(file), str(broken), fix) from None
    names = content.get("names", {})
    if set(content) - {"names"} or not isinstance(names, dict):
        raise DefinitionError.at(str(file), "holds something else than one table [names]", fix)
    wrong = [name for name, other in names.items() if not isinstance(other, str) or not other]
    if wrong:
        raise DefinitionError.at(str(file), f"{', '.join(wrong)}: not a name", fix)
    return names


def shares(costs: Mapping[str, int], number: int) -> list[list[str]]:
    """Split work into shares of about the same cost, the dearest first; none is empty."""
    loads: list[tuple[int, list[str]]] = [(0, []) for _ in range(number)]
    for name in sorted(costs, key=lambda name: (-costs[name], name)):
        lightest = min(range(number), key=lambda index: loads[index][0])
        load, share = loads[lightest]
        loads[lightest] = (load + costs[name], [*share, name])
    return [share for _, share in loads if share]


def _refuse_incomplete(pins: Sequence[Pin], wheels: Mapping[str, Path], requirements: Path) -> None:
    requires = {
        name: read_metadata(wheel).get("requires_dist", []) for name, wheel in wheels.items()
    }
    pinned = {pin.project: pin.extras for pin in pins}
    asked = asked_extras(requires, pinned)
    versions = {pin.project: pin.version for pin in pins}
    problems = unmet(requires, asked, versions) + [
        f"somebody asks for {name}[{','.join(sorted(asked[name]))}]"
        for name in sorted(asked)
        if asked[name] != pinned[name]
    ]
    if problems:
        where = str(requirements)
        raise LockError(*(Problem(where=where, what=what, fix=PIN_AGAIN) for what in problems))


def _convert(
    projects: Sequence[str],
    pins: Iterable[Pin],
    wheels: Mapping[str, Path],
    out: Path,
    *,
    rename: Mapping[str, str],
    epoch: int,
) -> dict[str, str]:
    """Make the packages of some projects in child processes; return their file names."""
    extras = {pin.project: sorted(pin.extras) for pin in pins}
    jobs = {
        name: {"path": str(wheels[name]), "extras": extras[name]} if name in wheels else None
        for name in projects
    }
    costs = {
        name: COST_OF_A_WHEEL + (wheels[name].stat().st_size if name in wheels else 0)
        for name in projects
    }
    print(f"+ convert {len(projects)} wheels to conda packages", file=sys.stderr, flush=True)
    work = [
        {
            "do": "convert",
            "out": str(out),
            "epoch": epoch,
            "rename": dict(rename),
            "wheels": {name: jobs[name] for name in share},
        }
        for share in shares(costs, PROCESSES)
    ]
    with ThreadPoolExecutor(PROCESSES) as pool:
        results = list(pool.map(lambda job: call_child(job, "embedded channel"), work))
    return {name: file for result in results for name, file in result.items()}


def _complete(channel: Path, files: Mapping[str, str]) -> None:
    """Index a channel that has all its packages, and write its manifest last."""
    _index(channel)
    manifest = {
        "files": dict(sorted(files.items())),
        "hashes": {file: sha256_of(channel / SUBDIR / file) for file in sorted(files.values())},
        "repodata": _repodata_of(channel),
    }
    (channel / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")


def _repair(channel: Path, made: Path, files: Mapping[str, str], manifest: _Manifest) -> None:
    for name, file in files.items():
        if file != manifest.files[name] or sha256_of(made / file) != manifest.hashes[file]:
            what = f"converting {name} again gave other bytes than the first time"
            raise BuildError.at(str(channel), what, "./inv clean, and report this")
        (made / file).replace(channel / SUBDIR / file)
    _index(channel)
    if _repodata_of(channel) != manifest.repodata:
        raise BuildError.at(str(channel), "indexing again gave another repodata", "./inv clean")


def _index(channel: Path) -> None:
    (channel / "noarch").mkdir(exist_ok=True)
    call_child({"do": "index", "channel": str(channel)}, "embedded channel")


def _repodata_of(channel: Path) -> str | None:
    """Return the sha256 of both repodata files together, or None where one is missing."""
    files = [channel / subdir / "repodata.json" for subdir in (SUBDIR, "noarch")]
    if not all(file.is_file() for file in files):
        return None
    return hashlib.sha256("".join(map(sha256_of, files)).encode()).hexdigest()


def _read_manifest(channel: Path) -> _Manifest | None:
    """Return a channel's manifest, or None when there is none that can be trusted."""
    try:
        content = json.loads((channel / MANIFEST).read_text())
        manifest = _Manifest(**content)
        return manifest if set(manifest.files.values()) == set(manifest.hashes) else None
    except (FileNotFoundError, ValueError, TypeError, AttributeError):
        return None  # a new or a damaged channel is made from the start


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    """Let one process at a time make channels; the others wait and find the work done."""
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
