"""The host as a whole: engine, disk, and the checks of `train/doctor` that hold outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doctor.checks import judge
from doctor.facts import HOST
from doctor.findings import OK, UNKNOWN, WARNING, Finding
from doctor.main import probe
from strata.doctor.engine import judge_engine, probe_engine
from strata.doctor.variants import judge_variants, probe_needs
from strata.engine.room import CACHE_FIX, GIGABYTE, NEEDED_BYTES, free_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from strata.workspace import Workspace

# The documentation's table of what is asked on the host alone.
HOST_ONLY = """\
| `engine` | a Docker engine runs, is new enough, has the containerd image store, buildx and room |
| `engine-cgroups` | containers can be limited: cgroup version 2, and delegated where rootless |
| `engine-rootless` | the engine runs as root, or what a rootless one needs |
| `engine-gpus` | it can give containers GPUs: NVIDIA's toolkit, or CDI files of this driver |
| `variants` | the driver runs each variant with CUDA, by `minimum-driver` of its pins |
| `disk` | cache and build folder have 5 GB free |"""


def examine_host(workspace: Workspace) -> list[Finding]:
    """Return all findings about this host; nothing is started or written."""
    facts = probe(HOST)
    folders = {"cache": workspace.cache, "build folder": workspace.build}
    return [
        *judge_engine(probe_engine(workspace), facts.nvidia),
        judge_variants(probe_needs(workspace.root / "locks"), facts.nvidia),
        judge_disk({name: (path, free_bytes(path)) for name, path in folders.items()}),
        *judge(facts),
    ]


def judge_disk(rooms: Mapping[str, tuple[Path, int | None]]) -> Finding:
    """Judge the room in bytes of each folder that a build writes to."""
    told = [
        f"{name} {path}: {'unknown' if free is None else f'{free / GIGABYTE:.1f} GB free'}"
        for name, (path, free) in rooms.items()
    ]
    frees = [free for _, free in rooms.values()]
    evidence = "; ".join(told)
    if any(free is not None and free < NEEDED_BYTES for free in frees):
        need = f"a first build needs up to {NEEDED_BYTES / GIGABYTE:.0f} GB"
        return Finding("disk", WARNING, f"{evidence}; {need}", CACHE_FIX)
    if None in frees:
        return Finding("disk", UNKNOWN, evidence)
    return Finding("disk", OK, evidence)
