"""What a new lock changes: package by package, and in each layer's download."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from strata.lock.model import Lock, LockedPackage

    Order = Mapping[str, Mapping[str, int]]

MEGABYTE = 1_000_000
GIGABYTE = 1_000_000_000


@dataclass(frozen=True, kw_only=True)
class LockChange:
    """One package that a new lock adds, removes or changes on one platform.

    `kind` is `added`, `removed`, `up`, `down`, `rebuilt` (the same version, other
    bytes) or `moved` (to another layer).  `before` and `after` are `version
    build`, or None where there is none; `size` is the download that it is now,
    in bytes, or was where it was removed; None where the channel did not say.
    """

    platform: str
    name: str
    layer: str
    kind: str
    before: str | None
    after: str | None
    size: int | None


@dataclass(frozen=True, kw_only=True)
class Download:
    """What is downloaded for one layer on one platform.

    `size` is in bytes, and leaves out the `unknown` packages whose size the
    channel did not say.
    """

    packages: int
    size: int
    unknown: int

    def __str__(self) -> str:
        """Return the size as people read it: `4.10 GB`, `37 MB`, or `at least …`."""
        text = (
            f"{self.size / GIGABYTE:.2f} GB"
            if self.size >= GIGABYTE
            else f"{self.size / MEGABYTE:.1f} MB"
        )
        return f"at least {text}" if self.unknown else text


@dataclass(frozen=True, kw_only=True)
class Solved:
    """A new lock, the one that it replaces, and what differs."""

    before: Lock | None
    after: Lock
    changes: tuple[LockChange, ...]


def download(packages: Iterable[LockedPackage]) -> Download:
    """Add up what is downloaded for some packages."""
    sizes = [package.size for package in packages]
    known = [size for size in sizes if size is not None]
    return Download(packages=len(sizes), size=sum(known), unknown=len(sizes) - len(known))


def downloads(lock: Lock | None) -> dict[tuple[str, str], Download]:
    """Return the download of each (platform, category) of a lock, in the lock's order."""
    groups: dict[tuple[str, str], list[LockedPackage]] = {}
    for package in lock.packages if lock else ():
        groups.setdefault((package.platform, package.category), []).append(package)
    return {key: download(packages) for key, packages in groups.items()}


def compare(before: Lock | None, after: Lock, order: Order) -> tuple[LockChange, ...]:
    """Return what changed, sorted by platform and name.

    `order` says of each platform's packages whether the new version is higher
    than the old one (1), lower (-1) or the same (0).
    """
    was, now = _table(before), _table(after)
    changes = []
    for key in sorted(was.keys() | now.keys()):
        old, new = was.get(key), now.get(key)
        kind = _kind(old, new, order.get(key[0], {}).get(key[1], 0))
        known = new or old
        if kind is None or known is None:
            continue
        changes.append(
            LockChange(
                platform=key[0],
                name=key[1],
                layer=known.category,
                kind=kind,
                before=_text(old),
                after=_text(new),
                size=known.size,
            )
        )
    return tuple(changes)


def _kind(old: LockedPackage | None, new: LockedPackage | None, order: int) -> str | None:
    if old is None or new is None:
        return "added" if old is None else "removed"
    if order:
        return "up" if order > 0 else "down"
    if (old.url, old.sha256) != (new.url, new.sha256):
        return "rebuilt"
    return "moved" if old.category != new.category else None


def _table(lock: Lock | None) -> dict[tuple[str, str], LockedPackage]:
    packages = lock.packages if lock else ()
    return {(package.platform, package.name): package for package in packages}


def _text(package: LockedPackage | None) -> str | None:
    return f"{package.version} {package.build}" if package else None
