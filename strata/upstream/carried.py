"""A folder that `./inv fetch` has filled, as the builds in a closed network see it."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from strata.digest import file_digest
from strata.embedded.base import is_whole
from strata.errors import BuildError, DefinitionError, LockError
from strata.locking import WHEELS
from strata.upstream.base import BASES
from strata.upstream.fetch import place

if TYPE_CHECKING:
    from strata.workspace import Workspace

SCHEMA = "strata.carried/1"
TABLE = "carried.json"
TARBALL = "base.tar"
WHEELHOUSE = "wheels"


def open_folder(workspace: Workspace, folder: str, variant: str) -> Workspace:
    """Return the workspace whose builds take everything from a folder that `fetch` filled.

    Raises `DefinitionError` for a folder that is none, `LockError` for one that
    was filled for another lock.
    """
    carried = Path(folder).expanduser().absolute()
    table = read_table(carried, "--from")
    fix = f"./inv fetch --variant {variant} --to {folder}, where there is a network"
    if variant not in table:
        raise DefinitionError.at(f"--from {folder}", f"holds nothing for {variant}", fix)
    pinned = pins_of(workspace.root / "locks" / variant)
    if changed := [name for name, digest in pinned.items() if table[variant].get(name) != digest]:
        raise LockError.at(
            f"locks/{variant}/{changed[0]}", f"is not the one that {folder} was filled for", fix
        )
    # What is missing there must not be looked for elsewhere, by any program.
    os.environ |= {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(carried / WHEELHOUSE)}
    return replace(workspace, carried=carried)


def unpack_folder(workspace: Workspace, carried: Path) -> None:
    """Put the wheels of a folder where they are looked for; their hashes are compared there."""
    kept = workspace.cache / WHEELHOUSE
    kept.mkdir(parents=True, exist_ok=True)
    for wheel in (carried / WHEELHOUSE).glob("*.whl"):
        if not (kept / wheel.name).exists():
            place(wheel, kept / wheel.name)


def carried_tarball(carried: Path) -> Path:
    """Return the bootstrapped base of a folder; raises `BuildError` where it isn't whole."""
    tar = carried / BASES / TARBALL
    if not is_whole(tar):
        raise BuildError.at(str(tar), "is missing or damaged", "./inv fetch again")
    return tar


def pins_of(folder: Path) -> dict[str, str]:
    """Return the digest of each file that pins what a build takes from elsewhere."""
    names = ("conda-lock.yml", "sources.toml", WHEELS)
    return {name: file_digest(folder / name) for name in names if (folder / name).is_file()}


def read_table(folder: Path, flag: str) -> dict[str, dict[str, str]]:
    """Return what a folder was filled for: by variant, the digests of the files that pin it.

    Raises `DefinitionError`, naming the flag that named the folder.
    """
    try:
        document = json.loads((folder / TABLE).read_text())
        table = document["variants"] if document["schema"] == SCHEMA else None
    except (OSError, ValueError, KeyError, TypeError):
        table = None
    if not isinstance(table, dict):
        raise DefinitionError.at(
            f"{flag} {folder}",
            f"is no folder that ./inv fetch has filled: it has no {TABLE} of {SCHEMA}",
            "./inv fetch --variant V --to DIR fills one",
        )
    return table
