"""Digests of everything that decides what a step holds."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def text_digest(text: str) -> str:
    """Return the SHA-256 of `text` as 64 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, and whether it is a program.

    Of a file's mode only the x bit counts, as in git: the rest is the umask of
    whoever cloned.  Modification times never count.
    """
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return f"{digest}{'+x' if os.access(path, os.X_OK) else ''}"


def folder_digests(folder: Path, name: str) -> dict[str, str]:
    """Return the digest of each file below `folder`, by `name`/relative path."""
    return {
        f"{name}/{path.relative_to(folder).as_posix()}": file_digest(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


def inputs_digest(inputs: Mapping[str, str]) -> str:
    """Return one digest (64 hex digits) for named inputs, whatever their order."""
    return text_digest(json.dumps(dict(inputs), sort_keys=True, separators=(",", ":")))
