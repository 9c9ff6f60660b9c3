"""Where things are: the project, its build folder, the cache between runs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """The three folders that strata reads and writes.

    `root` holds the definitions and is never written but by `lock` and `pin`;
    `build` holds what one run leaves (bake file, logs, record); `cache` holds
    what is dear to make again (wheels, channel, base) and `clean` empties it.
    """

    root: Path
    build: Path
    cache: Path
    carried: Path | None = None

    @classmethod
    def of(cls, root: Path) -> Workspace:
        """Return the folders for the project at `root`.

        `STRATA_CACHE` moves the cache; else it is `strata` in `XDG_CACHE_HOME`.
        """
        home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
        cache = os.environ.get("STRATA_CACHE") or str(Path(home) / "strata")
        root = root.resolve()
        return cls(root=root, build=root / "build", cache=Path(cache).expanduser().absolute())
