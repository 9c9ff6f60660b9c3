"""Fetches what a variant pins by URL and sha256: the packages of its lock, its installer."""

from __future__ import annotations

import fcntl
import os
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from strata.errors import BuildError, LockError, StrataError
from strata.lock.read import relock
from strata.upstream.download import Wanted, download, take
from strata.upstream.mirrors import read_mirrors

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from strata.lock import LockedPackage
    from strata.model import Variant
    from strata.plan import Step
    from strata.upstream.mirrors import Mirrors
    from strata.workspace import Workspace

FILES = "files"
CONNECTIONS = 4


def fetch_packages(
    workspace: Workspace,
    variant: Variant,
    packages: Iterable[LockedPackage],
    steps: Iterable[Step] = (),
) -> dict[str, Path]:
    """Return the files of these packages by sha256, each verified, kept in the cache.

    One of `steps` that fails is told with its layer.  Raises what `fetch` raises,
    and `DefinitionError` for a broken mirrors.toml.
    """
    mirrors = read_mirrors(os.environ)
    layers: dict[str, str] = {}
    for step in steps:
        for package in step.packages:
            layers.setdefault(package.sha256, step.layer.name)
    wanted = [
        wanted_package(variant, package, mirrors, layers.get(package.sha256, ""))
        for package in packages
    ]
    return fetch(workspace, wanted)


def fetch_installer(workspace: Workspace, variant: Variant, platform: str, layer: str) -> Path:
    """Return the installer that a layer takes from the variant, verified, kept in the cache.

    Raises what `fetch` raises, and `LockError` where the variant has none.
    """
    wanted = wanted_installer(variant, platform, read_mirrors(os.environ), layer)
    return fetch(workspace, [wanted])[wanted.sha256]


def wanted_package(
    variant: Variant, package: LockedPackage, mirrors: Mirrors, layer: str = ""
) -> Wanted:
    """Return where a package is to be had, and what it must be."""
    where = f"locks/{variant.name}/{variant.lock.name}"
    return Wanted(
        name=package.filename,
        url=mirrors.package_url(package.url),
        sha256=package.sha256,
        where=where,
        repin=relock(variant.lock),
        layer=layer,
    )


def wanted_installer(variant: Variant, platform: str, mirrors: Mirrors, layer: str = "") -> Wanted:
    """Return where the installer is to be had.

    Raises `LockError` where the variant has none, or does not pin it.
    """
    where = f"locks/{variant.name}/sources.toml"
    repin = f"./inv pin --variant {variant.name}"
    refuse_unset(variant)
    if variant.installer is None:
        raise LockError.at(where, "has no [installer]", f"write its url there, then {repin}")
    url = variant.installer.url_for(platform)
    return Wanted(
        name=url.rsplit("/", 1)[-1],
        url=mirrors.installer_url(url),
        sha256=variant.installer.sha256[platform],
        where=where,
        repin=repin,
        layer=layer,
    )


def refuse_unset(variant: Variant) -> None:
    """Raise `LockError` where a digest of `sources.toml` is still "unset"."""
    if variant.unset:
        raise LockError.at(
            f"locks/{variant.name}/sources.toml",
            f"not pinned yet: {', '.join(variant.unset)}",
            f"./inv pin --variant {variant.name}",
        )


def fetch(workspace: Workspace, wanted: Sequence[Wanted]) -> dict[str, Path]:
    """Return the wanted files by sha256; what the cache lacks is downloaded, several at once.

    One that fails does not stop the others, and all failures are told: what has
    arrived stays.  With `workspace.carried` all is taken from there.  Raises
    `LockError` if any file is not the pinned one, else `BuildError` if any can't be
    had, else what `download` raises.
    """
    folder = workspace.cache / FILES
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as held, ThreadPoolExecutor(CONNECTIONS) as pool:
        fcntl.flock(held, fcntl.LOCK_EX)  # another process has fetched it all when it lets us in
        missing = sum(not (folder / one.sha256).is_file() for one in wanted)
        if missing:
            verb = "take from the folder" if workspace.carried else "download"
            print(f"+ {verb}: {missing} files", file=sys.stderr, flush=True)
        get = partial(take, source=workspace.carried / FILES) if workspace.carried else download
        jobs = {one.sha256: pool.submit(get, one, folder) for one in wanted}
        failures = {sha: error for sha, job in jobs.items() if (error := job.exception())}
    known = {sha: error for sha, error in failures.items() if isinstance(error, StrataError)}
    for sha256, failure in failures.items():
        if sha256 not in known:
            raise failure
    if known:
        kinds = [type(failure) for failure in known.values()]
        kind = next((kind for kind in (LockError, BuildError) if kind in kinds), kinds[0])
        places = {one.sha256: f"layers/{one.layer}: " if one.layer else "" for one in wanted}
        raise kind(
            *(
                replace(problem, where=f"{places[sha256]}{problem.where}")
                for sha256, failure in known.items()
                for problem in failure.problems
            )
        )
    return {sha256: job.result() for sha256, job in jobs.items()}


def place(source: Path, target: Path) -> None:
    """Link a file, or copy it where the cache is on another file system; one that is there goes."""
    target.unlink(missing_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)
