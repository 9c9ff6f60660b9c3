"""Digests of everything that decides what a step holds."""

from __future__ import annotations

import hashlib
import json
import re
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

CACHE = re.compile(r"__pycache__|\..*_cache")  # a folder's name


def text_digest(text: str) -> str:
    """Return the SHA-256 of `text` as 64 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, and whether it is a program.

    Of a file's mode only its owner's x bit counts, as in git: the rest is the
    umask of whoever cloned.  Modification times never count, and of a symbolic
    link only where it points.
    """
    if path.is_symlink():
        return f"-> {path.readlink()}"
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{digest}{'+x' if path.stat().st_mode & stat.S_IXUSR else ''}"


def folder_digests(folder: Path, name: str) -> dict[str, str]:
    """Return the digest of each file below `folder`, by `name`/relative path.

    Caches that tools leave in a checkout don't count: strata/inbuild/lay brings
    none of them into an image.
    """
    return {
        f"{name}/{path.relative_to(folder).as_posix()}": file_digest(path)
        for path in sorted(folder.rglob("*"))
        if (path.is_file() or path.is_symlink())
        and not any(CACHE.fullmatch(part) for part in path.relative_to(folder).parent.parts)
    }


def inputs_digest(inputs: Mapping[str, str]) -> str:
    """Return one digest (64 hex digits) for named inputs, whatever their order."""
    return text_digest(json.dumps(dict(inputs), sort_keys=True, separators=(",", ":")))
