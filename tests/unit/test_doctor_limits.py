"""Shared memory, threads, memory, and the limits of a process."""

from __future__ import annotations

from dataclasses import replace

import pytest

from doctor.facts import GIB, HOST, MIB, Facts, Unknown
from doctor.judge_limits import (
    judge_locked_memory,
    judge_memory,
    judge_open_files,
    judge_processes,
    judge_shared_memory,
    judge_stack,
    judge_temporary,
    judge_threads,
)
from tests.unit.doctor_machines import DGX, LAPTOP, with_limits, with_nvidia, with_settings


@pytest.mark.parametrize(
    ("size", "severity", "words"),
    [
        (64 * MIB, "warning", "shm has 64 MiB: little for 2 ranks with DataLoader workers"),
        (4 * 9_633_792, "warning", "which need 92 MiB for batches of 10 MB"),
        (4 * 9_633_792 - 1, "error", "2 ranks with a worker each and batches of 10 MB need 37 MiB"),
        (GIB - 1, "warning", "little"),
        (GIB, "ok", "shm has 1 GiB"),
        (Unknown("No such file"), "unknown", "the size of /dev/shm: No such file"),
    ],
)
def test_shared_memory_is_judged_by_its_size(
    size: int | Unknown, severity: str, words: str
) -> None:
    """Less than 1 GiB is a warning, Docker's 64 MiB too; too little for a worker each an error."""
    finding = judge_shared_memory(with_limits(LAPTOP, shared_memory=size))
    assert finding.severity == severity
    assert words in finding.evidence


@pytest.mark.parametrize(("gpus", "severity"), [(3, "warning"), (4, "error")])
def test_the_ranks_decide_whether_shared_memory_is_too_little(gpus: int, severity: str) -> None:
    """Docker's 64 MiB hold two batches a rank for three GPUs, and not for four."""
    h100 = DGX.nvidia.gpus
    machine = with_nvidia(DGX, gpus=() if isinstance(h100, Unknown) else h100[:gpus])
    small = judge_shared_memory(with_limits(machine, shared_memory=64 * MIB))
    assert (small.severity, f"{gpus} ranks" in small.evidence) == (severity, True)
    assert (small.fix or "").endswith("or --ipc=host")


def test_the_remedy_for_shared_memory_fits_the_place() -> None:
    """A container is started anew, a host remounts."""
    small = with_limits(LAPTOP, shared_memory=64 * MIB)
    assert (judge_shared_memory(small).fix or "").startswith("docker run --shm-size 1g")
    host = judge_shared_memory(replace(small, scope=HOST))
    assert host.fix == "sudo mount -o remount,size=1g /dev/shm"


def test_shared_memory_counts_against_the_memory_limit() -> None:
    """More shared memory than memory is told of."""
    finding = judge_shared_memory(with_limits(LAPTOP, shared_memory=8 * GIB, memory=4 * GIB))
    assert finding.severity == "info"
    assert "more than the memory limit of 4 GiB" in finding.evidence


def crowded(cores: int, **settings: str) -> Facts:
    """Return a machine of 16 cores whose quota leaves so many, with these variables."""
    return with_settings(with_limits(LAPTOP, cores=cores), **settings)


@pytest.mark.parametrize(
    ("machine", "severity", "words"),
    [
        (crowded(16), "ok", "a process may use 16 of 16 cores"),
        (crowded(16, OMP_NUM_THREADS="16"), "ok", "may use 16 of 16"),
        (crowded(1, OMP_NUM_THREADS="1"), "ok", "may use 1 of 16"),
        (crowded(1, OMP_NUM_THREADS="16"), "warning", "OMP_NUM_THREADS=16, and a process may use"),
        (crowded(4, OMP_NUM_THREADS="8,2"), "warning", "OMP_NUM_THREADS=8,2"),
        (crowded(16, MKL_NUM_THREADS="32"), "warning", "MKL_NUM_THREADS=32"),
        (crowded(4), "warning", "OMP_NUM_THREADS is unset"),
        (crowded(16, OMP_NUM_THREADS="all"), "warning", "=all is not a number of threads"),
        (crowded(16, OMP_NUM_THREADS="0"), "warning", "=0 is not a number of threads"),
    ],
)
def test_threads_are_compared_with_cores(machine: Facts, severity: str, words: str) -> None:
    """More threads than cores, by a variable or by a quota that libraries don't see."""
    finding = judge_threads(machine)
    assert finding.severity == severity
    assert words in finding.evidence


def test_the_remedy_for_threads_divides_the_cores() -> None:
    """Cores are shared by the ranks: one a GPU, or two."""
    cpu = judge_threads(crowded(8, OMP_NUM_THREADS="16"))
    assert (cpu.fix or "").startswith("set OMP_NUM_THREADS=4 for 2 ranks")
    gpus = judge_threads(with_settings(DGX, OMP_NUM_THREADS="256"))
    assert (gpus.fix or "").startswith("set OMP_NUM_THREADS=28 for 8 ranks")


@pytest.mark.parametrize(
    ("machine", "severity"),
    [
        (LAPTOP, "ok"),
        (with_limits(LAPTOP, memory=2 * GIB), "ok"),
        (with_limits(LAPTOP, memory=2 * GIB - 1), "warning"),
        (with_limits(LAPTOP, memory=512 * GIB, memory_total=GIB), "warning"),
        (with_limits(DGX, memory=32 * GIB), "ok"),
        (with_limits(DGX, memory=16 * GIB), "warning"),
    ],
)
def test_memory_is_judged_by_the_ranks(machine: Facts, severity: str) -> None:
    """The narrower of limit and machine must hold 4 GiB a GPU, or 1 GiB for each of two ranks."""
    assert judge_memory(machine).severity == severity


def test_the_remedy_for_memory_names_the_option() -> None:
    """A limit is lifted; a small machine has no option for that."""
    limited = judge_memory(with_limits(DGX, memory=16 * GIB))
    assert limited.fix == "give at least 32 GiB: docker run --memory 32g, or none"
    assert judge_memory(with_limits(LAPTOP, memory_total=GIB)).fix == "give at least 2 GiB"


@pytest.mark.parametrize(
    ("limit", "severity"),
    [(64, "error"), (1023, "error"), (1024, "warning"), (4096, "ok"), (None, "ok")],
)
def test_open_files(limit: int | None, severity: str) -> None:
    """Below Linux' default is an error, and the fix is the option."""
    finding = judge_open_files(with_limits(LAPTOP, open_files=limit))
    assert finding.severity == severity
    assert (finding.fix is None) == (severity == "ok")


def test_locked_memory_matters_with_rdma() -> None:
    """8 MiB are enough without RDMA devices, and not with them."""
    assert judge_locked_memory(LAPTOP).severity == "ok"
    assert judge_locked_memory(DGX).severity == "ok"
    limited = judge_locked_memory(with_limits(DGX, locked_memory=8 * MIB))
    assert limited.severity == "warning"
    assert "--ulimit memlock=-1" in (limited.fix or "")


@pytest.mark.parametrize(("limit", "severity"), [(MIB, "warning"), (8 * MIB, "ok"), (None, "ok")])
def test_stack(limit: int | None, severity: str) -> None:
    """Linux' default is enough."""
    assert judge_stack(with_limits(LAPTOP, stack=limit)).severity == severity


@pytest.mark.parametrize(("limit", "severity"), [(511, "warning"), (512, "ok"), (None, "ok")])
def test_processes(limit: int | None, severity: str) -> None:
    """Two ranks need room for 512 threads."""
    assert judge_processes(with_limits(LAPTOP, processes=limit)).severity == severity


def test_the_temporary_folder() -> None:
    """None at all is an error, a full one a warning, one that can't be asked is unknown."""
    assert judge_temporary(LAPTOP).severity == "ok"
    none = Unknown("No usable temporary directory")
    refused = judge_temporary(with_limits(LAPTOP, temporary=none, temporary_free=none))
    assert refused.severity == "error"
    assert (refused.fix or "").startswith("docker run --tmpfs /tmp")
    assert judge_temporary(with_limits(LAPTOP, temporary_free=GIB - 1)).severity == "warning"
    silent = with_limits(LAPTOP, temporary_free=Unknown("Input/output error"))
    assert judge_temporary(silent).severity == "unknown"
