"""The CDI files of this machine: which devices containers may be given, and by what."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from strata.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable

# The endings that engines read (container device interface, SPEC.md).
ENDINGS = (".json", ".yaml")
MEANING = "so it is not known whether it gives containers GPUs"


@dataclass(frozen=True, kw_only=True)
class CdiFile:
    """A specification: its file, the kind of its devices ("nvidia.com/gpu"), its whole text."""

    file: Path
    kind: str
    text: str


@dataclass(frozen=True, kw_only=True)
class CdiFiles:
    """What could be read, and what could not."""

    found: tuple[CdiFile, ...] = ()
    problems: tuple[Problem, ...] = ()


def read_cdi(folders: Iterable[str]) -> CdiFiles:
    """Read all specifications in the folders; one that is not there is empty."""
    found: list[CdiFile] = []
    problems: list[Problem] = []
    for folder in map(Path, folders):
        try:
            files = sorted(file for file in folder.iterdir() if file.suffix in ENDINGS)
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(_unreadable(folder, error))
            continue
        for file in files:
            try:
                text = file.read_text(encoding="utf-8")
                found.append(CdiFile(file=file, kind=_kind(file, text), text=text))
            except OSError as error:
                problems.append(_unreadable(file, error))
            except (ValueError, yaml.YAMLError) as error:
                # The parsers draw where they stopped; a line is enough here.
                problems.append(_malformed(file, " ".join(str(error).split())))
    return CdiFiles(found=tuple(found), problems=tuple(problems))


def _kind(file: Path, text: str) -> str:
    document: Any = json.loads(text) if file.suffix == ".json" else yaml.safe_load(text)
    if document is None:
        raise ValueError("it is empty")
    kind = document.get("kind") if isinstance(document, dict) else None
    if not isinstance(kind, str):
        raise ValueError("it names no kind of devices")  # noqa: TRY004 - of the file's content
    return kind


def _unreadable(path: Path, error: OSError) -> Problem:
    what = f"cannot be read ({error.strerror}), {MEANING}"
    rights = "a+rx" if path.suffix not in ENDINGS else "a+r"
    fix = f"sudo chmod {rights} {path}, or sudo rm {path} if no device needs it"
    return Problem(where=str(path), what=what, fix=fix)


def _malformed(file: Path, reason: str) -> Problem:
    what = f"is no CDI specification ({reason}), {MEANING}"
    fix = f"sudo nvidia-ctk cdi generate --output={file}, or sudo rm {file} if no device needs it"
    return Problem(where=str(file), what=what, fix=fix)
