"""The cores that ddp-check counts, by affinity and cgroup quota."""

from pathlib import Path

import pytest

from ddp.cores import usable_cores


def machine(root: Path, files: dict[str, str]) -> Path:
    """Lay out the files of a made-up machine below `root`."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({}, 8),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, 8),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "300000 100000\n"}, 3),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"}, 1),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "9900000 100000\n"}, 8),
        (
            {  # the narrowest of all groups counts
                "proc/self/cgroup": "0::/job/step\n",
                "sys/fs/cgroup/job/cpu.max": "200000 100000\n",
                "sys/fs/cgroup/job/step/cpu.max": "400000 100000\n",
            },
            2,
        ),
        (
            {
                "proc/self/cgroup": "4:cpu,cpuacct:/\n0::/\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "400000\n",
                "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
            },
            4,
        ),
        (
            {
                "proc/self/cgroup": "3:cpuset:/\n1:cpu:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            8,
        ),
        (
            {  # version 1 in a container: the path is the host's, the mount is the container's
                "proc/self/cgroup": "1:cpu:/docker/0123\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "200000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            2,
        ),
    ],
)
def test_the_quota_limits_the_cores(tmp_path: Path, files: dict[str, str], cores: int) -> None:
    """Eight cores less what the cgroup takes away, in both versions, never under one."""
    assert usable_cores(machine(tmp_path, files), affinity=8) == cores


def test_this_machine_has_a_core() -> None:
    """The real files of this machine can be read."""
    assert usable_cores() >= 1
