"""Judges shared memory, threads, memory, open files and the like.  Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ddp.shared_memory import FOLDER, Need
from doctor.facts import CONTAINER, GIB, MIB, Unknown
from doctor.findings import ERROR, INFO, OK, UNKNOWN, WARNING, Finding, Remark, join

if TYPE_CHECKING:
    from doctor.facts import Facts

CPU_RANKS = 2  # what ddp-check starts where there is no GPU
MEMORY_PER_CPU_RANK = 1 * GIB
MEMORY_PER_GPU = 4 * GIB  # CUDA's and NCCL's host side, pinned buffers, some workers
THREADS_PER_RANK = 256
USUAL_OPEN_FILES = 1024  # the kernel's default
ENOUGH_OPEN_FILES = 4096
USUAL_STACK = 8 * MIB
ENOUGH_TEMPORARY = GIB
THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")


def size(count: int) -> str:
    """Return bytes for people: "64 MiB", "1.5 GiB"."""
    return f"{count / MIB:.0f} MiB" if count < GIB else f"{count / GIB:.4g} GiB"


def judge_shared_memory(facts: Facts) -> Finding:
    """DataLoader workers and NCCL hand data over through /dev/shm.

    Little is a warning: ranks without workers train, and so do small batches.
    It is an error where the ranks of this machine can't have one worker each.
    """
    check, total, limit = "shared-memory", facts.limits.shared_memory, facts.limits.memory
    if isinstance(total, Unknown):
        return Finding(check, UNKNOWN, f"the size of {FOLDER}: {total.reason}")
    need = Need(ranks_of(facts))
    if facts.scope == CONTAINER:
        fix = f"docker run {need.remedy}"
    else:
        fix = f"sudo mount -o remount,size={need.gibibytes}g {FOLDER}"
    told = f"{FOLDER} has {size(total)}"
    batches = f"batches of {need.batch_bytes / 1e6:.0f} MB"
    if total < need.least_bytes:
        why = (
            f"{need.ranks} ranks with a worker each and {batches} need "
            f"{size(need.least_bytes)}, and a worker that finds it full dies of a bus error"
        )
        return Finding(check, ERROR, f"{told}: {why}", fix)
    if total < need.gibibytes * GIB:
        why = (
            f"little for {need.ranks} ranks with DataLoader workers, which need "
            f"{size(need.bytes)} for {batches}; one that finds it full dies of a bus error"
        )
        return Finding(check, WARNING, f"{told}: {why}", fix)
    if limit is not None and total > limit:
        why = f"more than the memory limit of {size(limit)}, which it counts against"
        return Finding(check, INFO, f"{told}, {why}")
    return Finding(check, OK, told)


def ranks_of(facts: Facts) -> int:
    """Return how many ranks would train here: one a GPU, else two."""
    return facts.nvidia.count or CPU_RANKS


def judge_threads(facts: Facts) -> Finding:
    """Threads beyond the cores are throttled by the quota or fight for the cores."""
    cores, granted = facts.limits.cores, facts.limits.granted
    ranks = ranks_of(facts)
    fits = max(1, cores // ranks)
    fix = f"set OMP_NUM_THREADS={fits} for {ranks} ranks (docker run -e OMP_NUM_THREADS={fits})"
    remarks = []
    for name in THREAD_VARIABLES:
        setting = facts.settings.get(name)
        if setting is None:
            continue
        # OpenMP takes a list, a number for each level of nesting.
        number = re.match(r"\s*(\d+)\s*(?:,|$)", setting.value)
        if not number or int(number[1]) == 0:
            text = f"{name}={setting.value} is not a number of threads"
            remarks.append(Remark(WARNING, text, f"unset {name}, or {fix}"))
        elif int(number[1]) > cores:
            text = f"{name}={setting.value}, and a process may use {cores} of {granted} cores"
            remarks.append(Remark(WARNING, text, fix.replace("OMP_NUM_THREADS", name)))
    if "OMP_NUM_THREADS" not in facts.settings and cores < granted:
        text = (
            f"OMP_NUM_THREADS is unset: a process that torchrun doesn't start makes {granted} "
            f"threads, and the cgroup's quota leaves {cores} of {granted} cores"
        )
        remarks.append(Remark(WARNING, text, fix))
    return join("threads", remarks, f"a process may use {cores} of {granted} cores")


def judge_memory(facts: Facts) -> Finding:
    """Ranks that don't fit are killed by the kernel, without a message of their own."""
    limits, ranks = facts.limits, ranks_of(facts)
    each = MEMORY_PER_GPU if facts.nvidia.count else MEMORY_PER_CPU_RANK
    limit = limits.memory_total if limits.memory is None else limits.memory
    usable = min(limit, limits.memory_total)
    source = "of the machine" if usable == limits.memory_total else "by the cgroup's limit"
    told = f"{size(usable)} {source} for {ranks} ranks"
    if usable >= each * ranks:
        return Finding("memory", OK, told)
    fix = f"give at least {size(each * ranks)}"
    if limit < limits.memory_total:
        fix += f": docker run --memory {each * ranks // GIB}g, or none"
    return Finding("memory", WARNING, f"{told}, {size(each)} each is a careful need", fix)


def judge_processes(facts: Facts) -> Finding:
    """Compare the limit with ranks of a hundred threads and more each."""
    limit, need = facts.limits.processes, THREADS_PER_RANK * ranks_of(facts)
    if limit is None or limit >= need:
        told = "no limit" if limit is None else f"{limit} threads"
        return Finding("processes", OK, told)
    told = f"{limit} processes and threads are allowed; {ranks_of(facts)} ranks may need {need}"
    fix = "docker run --pids-limit -1 --ulimit nproc=-1 (Kubernetes: podPidsLimit of the kubelet)"
    return Finding("processes", WARNING, told, fix)


def judge_open_files(facts: Facts) -> Finding:
    """Count that a tensor handed over is an open file, and so is a connection to a rank."""
    limit = facts.limits.open_files
    fix = "docker run --ulimit nofile=65536:65536"
    if limit is None or limit >= ENOUGH_OPEN_FILES:
        return Finding("open-files", OK, f"limit {'none' if limit is None else limit}")
    told = f"limit {limit} (ulimit -n)"
    if limit < USUAL_OPEN_FILES:
        why = "less than Linux' default: ranks and workers fail with `Too many open files`"
        return Finding("open-files", ERROR, f"{told}, {why}", fix)
    why = "many DataLoader workers may fail with `Too many open files`"
    return Finding("open-files", WARNING, f"{told}: {why}", fix)


def judge_locked_memory(facts: Facts) -> Finding:
    """RDMA registers its buffers as locked memory (NCCL, "Troubleshooting", InfiniBand)."""
    limit = facts.limits.locked_memory
    if limit is None:
        return Finding("locked-memory", OK, "no limit")
    told = f"limit {size(limit)} (ulimit -l)"
    if not facts.network.ports:
        return Finding("locked-memory", OK, f"{told}; there is no RDMA device that needs more")
    why = "RDMA devices need their buffers locked: NCCL fails with `ibv_reg_mr`"
    fix = "docker run --ulimit memlock=-1 (a service: LimitMEMLOCK=infinity)"
    return Finding("locked-memory", WARNING, f"{told}; {why}", fix)


def judge_stack(facts: Facts) -> Finding:
    """Every thread gets the soft limit as its stack."""
    limit = facts.limits.stack
    told = f"limit {'none' if limit is None else size(limit)} (ulimit -s)"
    if limit is None or limit >= USUAL_STACK:
        return Finding("stack", OK, told)
    why = f"less than Linux' default of {size(USUAL_STACK)}: deep recursion ends in a crash"
    return Finding("stack", WARNING, f"{told}, {why}", "docker run --ulimit stack=67108864")


def judge_temporary(facts: Facts) -> Finding:
    """Launchers, compilers and workers write to the temporary folder."""
    folder, free = facts.limits.temporary, facts.limits.temporary_free
    fix = "docker run --tmpfs /tmp, or set TMPDIR to a folder that can be written to"
    if isinstance(folder, Unknown):
        return Finding("temporary-folder", ERROR, f"none can be written to: {folder.reason}", fix)
    if isinstance(free, Unknown):
        return Finding("temporary-folder", UNKNOWN, f"room in {folder}: {free.reason}")
    told = f"{folder} has {size(free)} free"
    if free < ENOUGH_TEMPORARY:
        full = f"{told}: little for compiled kernels and sockets"
        return Finding("temporary-folder", WARNING, full, "make room there, or set TMPDIR")
    return Finding("temporary-folder", OK, told)
