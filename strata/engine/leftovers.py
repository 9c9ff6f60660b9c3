"""What an engine may leave behind when it is killed: finding all of it, removing it."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from strata.engine.daemon import command_line, end
from strata.errors import HostError
from strata.run import run

if TYPE_CHECKING:
    from collections.abc import Iterable

PROGRAMS = frozenset({"dockerd", "containerd", "containerd-shim-runc-v2", "docker-proxy", "runc"})
TASKS = "containerd/io.containerd.runtime.v2.task"
LONG_ID = re.compile(r"[0-9a-z]{20,}")
CONTROL_GROUPS = "/sys/fs/cgroup"
SHIM_SOCKET = re.compile(r"unix://(/run/containerd/s/[0-9a-f]{64})")
MOUNT_POINT = 4
ROOT = "/"


def is_ours(argv: tuple[str, ...], run_folder: Path) -> bool:
    """Tell whether an argv is one of an engine's programs, told to use this run folder.

    A person's `docker -H unix://…` or `tail` in that folder is not.
    """
    if not argv or Path(argv[0]).name not in PROGRAMS:
        return False
    return any(Path(word).is_relative_to(run_folder) for word in argv[1:])


def stands_on(mountinfo: str, data_folder: Path) -> bool:
    """Tell whether a process's root is an overlay whose layers are in this folder.

    So a container's processes are known even when their shim is gone.
    `mountinfo` is the text of /proc/PID/mountinfo, see proc_pid_mountinfo(5).
    """
    for line in mountinfo.splitlines():
        fields = line.split(" ")
        if fields[MOUNT_POINT] == ROOT:
            return f"upperdir={_escaped(data_folder)}/" in fields[-1]
    return False


def mounts_under(mountinfo: str, folders: Iterable[Path]) -> tuple[Path, ...]:
    """Return the mount points inside these folders, the deepest first."""
    tops = tuple(folders)
    points = (Path(_plain(line.split(" ")[MOUNT_POINT])) for line in mountinfo.splitlines())
    inside = [point for point in points if any(point.is_relative_to(top) for top in tops)]
    return tuple(sorted(inside, key=lambda point: len(point.parts), reverse=True))


def _escaped(path: Path) -> str:
    return re.sub(r"[ \t\n\\]", lambda match: f"\\{ord(match[0]):03o}", str(path))


def _plain(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)


def processes(run_folder: Path, data_folder: Path) -> dict[int, str]:
    """Return the pids of an engine and of its containers, with their programs' names."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        argv = command_line(int(entry.name))
        # A process may end, or be another user's, while we look at it.
        mountinfo = ""
        with suppress(OSError):
            mountinfo = (entry / "mountinfo").read_text()
        if is_ours(argv, run_folder) or (argv and stands_on(mountinfo, data_folder)):
            found[int(entry.name)] = Path(argv[0]).name
    return found


def end_processes(run_folder: Path, data_folder: Path) -> None:
    """End an engine: first dockerd, which ends its containers, then containerd, then the rest."""
    for program, patience in (("dockerd", 30.0), ("containerd", 10.0), ("", 1.0)):
        found = processes(run_folder, data_folder)
        end((pid for pid, name in found.items() if program in ("", name)), patience=patience)


def remove_shared_traces(run_folder: Path) -> None:
    """Remove what killed containers left in folders that all engines share.

    These are the sockets of their shims and their control groups; containerd
    keeps a folder, named by its id, for each that it did not see end.
    """
    tasks = tuple((run_folder / TASKS).glob("*/*"))
    for task in tasks:
        for file in (task / "address", task / "bootstrap.json"):
            text = file.read_text() if file.exists() else ""
            for path in SHIM_SOCKET.findall(text):
                Path(path).unlink(missing_ok=True)
    ids = tuple(task.name for task in tasks if LONG_ID.fullmatch(task.name))
    folders = (Path(folder) for folder, _, _ in os.walk(CONTROL_GROUPS, topdown=False))
    for folder in groups_of(ids, folders):
        try:
            folder.rmdir()
        except OSError as error:
            fix = f"see which processes are in it: cat {folder}/cgroup.procs"
            raise HostError.at(str(folder), f"it can't be removed: {error}", fix) from None


def groups_of(ids: tuple[str, ...], folders: Iterable[Path]) -> list[Path]:
    """Return the control groups of these containers, and those inside them, in their order.

    A group is named by the id, or by docker-ID.scope where systemd keeps it.
    """
    names = {name for container in ids for name in (container, f"docker-{container}.scope")}
    return [folder for folder in folders if not names.isdisjoint(folder.parts)]


def unmount(folders: tuple[Path, ...]) -> None:
    """Unmount all that is mounted inside these folders.

    Raises `HostError` when something stays: deleting would reach into it.
    """
    for point in mounts_under(_own_mounts(), folders):
        run(
            ["umount", str(point)],
            error=HostError,
            where=str(point),
            fix=f"see who uses it: fuser -vm {point}",
            quiet=True,
        )
    left = mounts_under(_own_mounts(), folders)
    if left:
        raise HostError.at(str(left[0]), "it is still mounted", f"umount {left[0]}")


def _own_mounts() -> str:
    return Path("/proc/self/mountinfo").read_text()
