"""Read a `conda-lock.yml`."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from strata.errors import LockError, Problem
from strata.lock.document import Document, load, shown
from strata.lock.model import Lock, LockedPackage
from strata.lock.urls import mask, split

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 1
DIGEST_KEY = "strata-inputs-digest"
PACKAGES_KEY = "strata-packages-digest"
FACT_PREFIX = "strata-input."
# conda-lock's format has no sizes: they stand in its custom metadata, one a package.
SIZE_PREFIX = "strata-size."
SUFFIXES = (".conda", ".tar.bz2")


def relock(path: Path) -> str:
    """Return the command that writes the lock at `path` anew."""
    return f"./inv lock --variant {path.parent.name}"


def read_lock(path: Path) -> Lock:
    """Read a lock in conda-lock's unified format, version 1.

    Raises `LockError`, with the line, when the file is missing or broken.
    Whether it is current, complete and clean is `check_lock`'s to say.
    """
    if not path.is_file():
        raise LockError.at(shown(path), "there is no lock", relock(path))
    document = load(path, error=LockError, fix=relock(path))
    data = document.data
    if not isinstance(data, dict) or data.get("version") != FORMAT:
        raise LockError.at(
            document.where("version"), f"is not a conda-lock file of version {FORMAT}", relock(path)
        )
    problems: list[Problem] = []
    metadata = _Entry(document, problems, ("metadata",), data.get("metadata"))
    custom = metadata.table("custom_metadata")
    entries = data.get("package")
    if not isinstance(entries, list):
        problems.append(metadata.problem(("package",), "the lock has no list of packages"))
        entries = []
    packages = tuple(
        _package(_Entry(document, problems, ("package", index), entry), custom)
        for index, entry in enumerate(entries)
    )
    lock = Lock(
        path=path,
        packages=packages,
        channels=tuple(
            str(channel.get("url")) if isinstance(channel, dict) else str(channel)
            for channel in metadata.list("channels")
        ),
        platforms=tuple(str(platform) for platform in metadata.list("platforms")),
        inputs_digest=custom.get(DIGEST_KEY, ""),
        packages_digest=custom.get(PACKAGES_KEY, ""),
        facts={
            key.removeprefix(FACT_PREFIX): value
            for key, value in custom.items()
            if key.startswith(FACT_PREFIX)
        },
    )
    problems += _twice(document, packages)
    if problems:
        raise LockError(*problems)
    return lock


class _Entry:
    """A mapping of the lock, read key by key; what is wrong is kept with its line."""

    def __init__(
        self,
        document: Document,
        problems: list[Problem],
        keys: tuple[str | int, ...],
        value: object,
    ) -> None:
        self._document = document
        self._problems = problems
        self._keys = keys
        self._value: dict[str, Any] = value if isinstance(value, dict) else {}
        if not isinstance(value, dict):
            problems.append(self.problem((), f"{self._name()} is not a mapping"))

    def text(self, key: str) -> str:
        value = self._value.get(key)
        if isinstance(value, str) and value:
            return value
        self._problems.append(self.problem((key,), f"{self._name()} has no {key}"))
        return ""

    def list(self, key: str) -> list[Any]:
        value = self._value.get(key)
        if isinstance(value, list):
            return value
        self._problems.append(self.problem((key,), f"{self._name()} has no list of {key}"))
        return []

    def table(self, key: str) -> dict[str, str]:
        """Return a mapping that may be missing."""
        value = self._value.get(key)
        if value is None:
            return {}
        if isinstance(value, dict):
            return {str(name): str(text) for name, text in value.items()}
        self._problems.append(self.problem((key,), f"{self._name()}: {key} is not a mapping"))
        return {}

    def add(self, key: str, what: str) -> None:
        self._problems.append(self.problem((key,), f"{self._name()}: {what}"))

    def problem(self, keys: tuple[str | int, ...], what: str) -> Problem:
        path = self._document.path
        at = keys if keys == ("package",) else (*self._keys, *keys)
        return Problem(where=self._document.where(*at), what=mask(what), fix=relock(path))

    def _name(self) -> str:
        head, *index = self._keys
        label = f"{head}[{index[0]}]" if index else str(head)
        name = self._value.get("name")
        return f"{label} ({name})" if isinstance(name, str) else label


def size_key(platform: str, name: str) -> str:
    """Return the key of the custom metadata that holds a package's size."""
    return f"{SIZE_PREFIX}{platform}.{name}"


def _package(entry: _Entry, custom: dict[str, str]) -> LockedPackage:
    url, name, version = entry.text("url"), entry.text("name"), entry.text("version")
    parts = split(url)
    filename = unquote(PurePosixPath(parts.path).name) if parts else ""
    stem = next((filename.removesuffix(end) for end in SUFFIXES if filename.endswith(end)), "")
    build = stem.rsplit("-", 1)[-1]
    if parts is None:
        entry.add("url", f"{url} is no URL")
    elif url and stem != f"{name}-{version}-{build}":
        entry.add("url", f"the file {filename} is not a package of {name} {version}")
    if (manager := entry.text("manager")) != "conda" and manager:
        entry.add("manager", f"comes from {manager}; a lock holds conda packages alone")
    hashes = entry.table("hash")
    platform = entry.text("platform")
    size = custom.get(size_key(platform, name), "")
    return LockedPackage(
        name=name,
        version=version,
        build=build,
        platform=platform,
        category=entry.text("category"),
        url=url,
        filename=filename,
        sha256=hashes.get("sha256", ""),
        md5=hashes.get("md5", ""),
        dependencies=tuple(sorted(entry.table("dependencies"))),
        size=int(size) if size.isdecimal() else None,
    )


def _twice(document: Document, packages: tuple[LockedPackage, ...]) -> list[Problem]:
    seen: set[tuple[str, str]] = set()
    problems: list[Problem] = []
    for index, package in enumerate(packages):
        key = (package.platform, package.name)
        if key in seen:
            problems.append(
                Problem(
                    where=document.where("package", index),
                    what=f"{package.name} stands twice for {package.platform}",
                    fix=relock(document.path),
                )
            )
        seen.add(key)
    return problems
