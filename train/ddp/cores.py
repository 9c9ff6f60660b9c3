"""How many CPU cores this process may use."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def usable_cores(root: Path = Path("/"), affinity: int | None = None) -> int:
    """Return the number of cores, at least 1, by CPU affinity and cgroup quota.

    A quota of 1.5 cores counts as 1: a second busy thread would be throttled.
    `root` is where /proc and /sys are, `affinity` the cores that the scheduler
    grants (asked from the kernel when not given).
    """
    granted = affinity if affinity is not None else len(os.sched_getaffinity(0))
    return max(1, int(min([float(granted), *_quotas(root)])))


def _quotas(root: Path) -> Iterator[float]:
    """Yield the quota, in cores, of every group from ours up to the root.

    Kernel documentation: admin-guide/cgroup-v2.rst (cpu.max) and
    scheduler/sched-bwc.rst (cpu.cfs_quota_us).
    """
    mounts = root / "sys/fs/cgroup"
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            for group in _ancestry(mounts, path):
                yield from _quota(_read(group / "cpu.max").split())
        elif "cpu" in controllers.split(","):
            for mount in {mounts / "cpu", mounts / controllers}:
                for group in _ancestry(mount, path):
                    limit = _read(group / "cpu.cfs_quota_us").split()
                    yield from _quota(limit + _read(group / "cpu.cfs_period_us").split())


def _ancestry(mount: Path, path: str) -> Iterator[Path]:
    # In a container the path may be the host's, which is not mounted here: then
    # only the mount's own root exists, and that is the container's group.
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for length in range(len(parts) + 1):
        yield mount.joinpath(*parts[:length])


def _quota(words: list[str]) -> Iterator[float]:
    if len(words) == 2 and words[0] not in ("max", "-1"):  # noqa: PLR2004 - quota and period
        yield int(words[0]) / int(words[1])


def _read(file: Path) -> str:
    return file.read_text() if file.is_file() else ""
