"""Reads what this process may use: cores, memory, files, folders."""

from __future__ import annotations

import os
import resource
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from ddp.cores import usable_cores
from doctor.facts import Limits, Unknown

if TYPE_CHECKING:
    from collections.abc import Iterator

# cgroup v1 says "no limit" by the largest multiple of a page below 2^63.
UNLIMITED = 1 << 62


def probe_limits(root: Path = Path("/")) -> Limits:
    """Return the limits of this process; `root` is where /proc, /sys and /dev are."""
    processes = [_soft(resource.RLIMIT_NPROC), cgroup_limit(root, "pids", "pids.max", "pids.max")]
    temporary = _temporary()
    return Limits(
        cores=usable_cores(root),
        granted=len(os.sched_getaffinity(0)),
        memory=cgroup_limit(root, "memory", "memory.max", "memory.limit_in_bytes"),
        memory_total=memory_total(root),
        processes=min((limit for limit in processes if limit is not None), default=None),
        open_files=_soft(resource.RLIMIT_NOFILE),
        locked_memory=_soft(resource.RLIMIT_MEMLOCK),
        stack=_soft(resource.RLIMIT_STACK),
        shared_memory=_size(root / "dev/shm"),
        temporary=temporary,
        temporary_free=temporary if isinstance(temporary, Unknown) else _free(temporary),
    )


def cgroup_limit(root: Path, controller: str, v2: str, v1: str) -> int | None:
    """Return the narrowest limit of our control groups, None when there is none.

    Kernel documentation: admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst and
    cgroup-v1/pids.rst.
    """
    limits = [limit for file in _files(root, controller, v2, v1) for limit in _limit(file)]
    return min(limits, default=None)


def _files(root: Path, controller: str, v2: str, v1: str) -> Iterator[Path]:
    groups = root / "proc/self/cgroup"
    mounts = root / "sys/fs/cgroup"
    for line in groups.read_text().splitlines() if groups.is_file() else ():
        _, controllers, path = line.split(":", 2)
        names = controllers.split(",")
        if controllers == "" or controller in names:
            mount = mounts if controllers == "" else mounts / controllers
            # Where the path is the host's, only the mount's own root exists here,
            # and that is the container's group.
            parts = [part for part in path.split("/") if part not in ("", "..")]
            for length in range(len(parts) + 1):
                yield mount.joinpath(*parts[:length]) / (v1 if controllers else v2)


def _limit(file: Path) -> Iterator[int]:
    text = file.read_text().strip() if file.is_file() else "max"
    if text != "max" and int(text) < UNLIMITED:
        yield int(text)


def memory_total(root: Path) -> int:
    """Return the machine's memory in bytes, by proc_meminfo(5)."""
    lines = (root / "proc/meminfo").read_text().splitlines()
    total = next(line for line in lines if line.startswith("MemTotal:"))
    return int(total.split()[1]) * 1024


def _soft(which: int) -> int | None:
    soft, _ = resource.getrlimit(which)
    return None if soft == resource.RLIM_INFINITY else soft


def _size(folder: Path) -> int | Unknown:
    try:
        return shutil.disk_usage(folder).total
    except OSError as error:
        return Unknown(str(error))


def _free(folder: str) -> int | Unknown:
    try:
        return shutil.disk_usage(folder).free
    except OSError as error:
        return Unknown(str(error))


def _temporary() -> str | Unknown:
    try:
        return tempfile.gettempdir()  # it tries to write a file in each candidate
    except OSError as error:
        return Unknown(str(error))
