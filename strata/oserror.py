"""What the system refused us, as a failure of the host."""

from __future__ import annotations

import errno
import os
import traceback
from pathlib import Path

from strata.errors import HostError, Problem

CODE = Path(__file__).resolve().parent
ROOM_FIX = "make room there: ./inv clean empties the cache; STRATA_CACHE=/larger/disk moves it"
FIXES = {
    errno.ENOSPC: ROOM_FIX,
    errno.EDQUOT: ROOM_FIX,
    errno.EROFS: "that disk is read-only: work elsewhere, or mount it writable",
}
RIGHTS = (errno.EACCES, errno.EPERM)


def host_error(error: OSError) -> HostError:
    """Return an error of the system's as ours: which file, what the system said, a way out.

    Without a file, the place is the line of ours at which it was met.
    """
    files = [os.fsdecode(name) for name in (error.filename, error.filename2) if _is_path(name)]
    what = error.strerror or str(error) or type(error).__name__
    return HostError(
        Problem(where=" -> ".join(files) or _line(error), what=what, fix=_fix(error, files))
    )


def _fix(error: OSError, files: list[str]) -> str:
    if error.errno in FIXES:
        return FIXES[error.errno]
    if not files:
        return "run it once more; if it stays, that line of ours is a bug"
    path = Path(files[-1]).absolute()
    there = next(one for one in (path, *path.parents) if os.path.lexists(one))
    if error.errno in RIGHTS:
        return (
            f'see whose it is: ls -ld {there}; if it should be yours: sudo chown -R "$USER" {there}'
        )
    return f"look at what is there: ls -ld {there}"


def _is_path(name: object) -> bool:
    return isinstance(name, str | bytes | os.PathLike)


def _line(error: OSError) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(frame.filename).is_relative_to(CODE)]
    if not ours:
        return type(error).__name__
    return f"{Path(ours[-1].filename).relative_to(CODE.parent)}:{ours[-1].lineno}"
