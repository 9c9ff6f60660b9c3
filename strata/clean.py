"""Empties what strata keeps between runs."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from strata.workspace import Workspace

# Only what strata itself puts there: STRATA_CACHE may name a folder that holds more.
ROOMS = ("base", "channel", "files", "index", "wheels")


def empty_cache(workspace: Workspace, *, dry_run: bool) -> None:
    """Remove wheels, packages, channel, base and indexes from the cache, and say so."""
    for folder in [*(workspace.cache / room for room in ROOMS), workspace.build / "contexts"]:
        if folder.is_dir():
            print(f"{'would remove' if dry_run else 'removing'} {folder}")
            if not dry_run:
                shutil.rmtree(folder)
