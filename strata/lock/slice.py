"""Which packages of a lock belong to a layer of an image."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from strata.errors import LockError, closest
from strata.lock.document import shown
from strata.lock.read import relock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from strata.lock.model import Lock, LockedPackage

SLICE_SCHEMA = "strata.slice/1"


def slice_for(
    lock: Lock, platform: str, roots: Sequence[str], below: Sequence[str]
) -> tuple[LockedPackage, ...]:
    """Return the packages that a layer adds to an image, sorted by name.

    `roots` are the names in the layer's `environment.yml`, `below` those of all
    layers under it in that image.  A package that two layers need goes with the
    lower of them.  Virtual packages (`__glibc`) are the host's, not the lock's.

    Raises `LockError` where the lock lacks a package that is asked for or
    depended on.
    """
    packages = lock.on(platform)
    depends = dependencies(packages.values())
    try:
        wanted = closure(depends, roots) - closure(depends, below)
    except MissingPackageError as missing:
        raise LockError.at(shown(lock.path), f"{platform}: {missing}", relock(lock.path)) from None
    return tuple(packages[name] for name in sorted(wanted))


class MissingPackageError(LookupError):
    """A package is needed that the lock does not hold."""


def dependencies(packages: Iterable[LockedPackage]) -> dict[str, tuple[str, ...]]:
    """Return package name -> names of what it depends on, for one platform's packages."""
    return {package.name: package.dependencies for package in packages}


def closure(depends: Mapping[str, Iterable[str]], roots: Iterable[str]) -> set[str]:
    """Return the names of `roots` and of all that they depend on.

    `depends` maps each package to what it depends on.  Raises
    `MissingPackageError` for a name that it lacks.
    """
    found: set[str] = set()
    todo = [(name, "an environment.yml") for name in roots]
    while todo:
        name, needed_by = todo.pop()
        if name in found or name.startswith("__"):
            continue
        if name not in depends:
            raise MissingPackageError(
                f"{needed_by} needs {name}, which the lock lacks{closest(name, depends)}"
            )
        found.add(name)
        todo += [(dependency, name) for dependency in depends[name]]
    return found


def categorise(
    depends: Mapping[str, Iterable[str]], roots: Iterable[tuple[str, Iterable[str]]]
) -> dict[str, str]:
    """Give each package to the lowest layer that needs it: package name -> category.

    `roots` holds (category, what its layer asks for), from the lowest layer to
    the highest.
    """
    given: dict[str, str] = {}
    for category, names in roots:
        for name in closure(depends, names):
            given.setdefault(name, category)
    return given


def slice_document(packages: Iterable[LockedPackage]) -> str:
    """Return a slice as the canonical JSON that `install_env.py` reads.

    Its bytes depend on the packages alone, so they may go into a digest.
    """
    entries = [
        {
            "build": package.build,
            "filename": package.filename,
            "md5": package.md5,
            "name": package.name,
            "sha256": package.sha256,
            "subdir": package.subdir,
            "url": package.url,
            "version": package.version,
        }
        for package in sorted(packages, key=lambda package: package.name)
    ]
    document = {"packages": entries, "schema": SLICE_SCHEMA}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"
