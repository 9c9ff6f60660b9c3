"""The table of checks: what is looked at, where it is, and who judges it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from doctor import judge_driver, judge_gpus, judge_limits, judge_network, judge_settings
from doctor.facts import CONTAINER, HOST

if TYPE_CHECKING:
    from collections.abc import Callable

    from doctor.facts import Facts
    from doctor.findings import Finding

EVERYWHERE = (CONTAINER, HOST)
INSIDE = (CONTAINER,)


@dataclass(frozen=True)
class Check:
    """One check: it makes exactly one finding of its `id` in each of its scopes."""

    id: str
    scopes: tuple[str, ...]
    asks: str
    judge: Callable[[Facts], Finding]


CHECKS = (
    Check("torch", INSIDE, "PyTorch can be imported", judge_gpus.judge_torch),
    Check(
        "gpus",
        EVERYWHERE,
        "NVIDIA cards have a driver, the container was given them, and PyTorch sees them",
        judge_gpus.judge_gpus,
    ),
    Check(
        "driver",
        EVERYWHERE,
        "the driver runs PyTorch's CUDA: backward, minor-version or forward compatibility",
        judge_driver.judge_driver,
    ),
    Check(
        "cuda-start",
        EVERYWHERE,
        "the CUDA driver starts (`cuInit`)",
        judge_driver.judge_start,
    ),
    Check(
        "gpu-architecture",
        INSIDE,
        "PyTorch has code for each GPU's compute capability",
        judge_gpus.judge_architecture,
    ),
    Check(
        "gpu-choice",
        INSIDE,
        "`CUDA_VISIBLE_DEVICES` and `NVIDIA_VISIBLE_DEVICES` name GPUs that are there",
        judge_settings.judge_choice,
    ),
    Check(
        "clocks",
        EVERYWHERE,
        "no heat, power limit, power brake or setting keeps the clocks down (NVML)",
        judge_gpus.judge_clocks,
    ),
    Check(
        "peer-access",
        EVERYWHERE,
        "each pair of GPUs reaches the other's memory (NVML)",
        judge_gpus.judge_peers,
    ),
    Check(
        "shared-memory",
        EVERYWHERE,
        "`/dev/shm` has room for two 10 MB batches a rank (error: four GPUs and more on Docker's "
        "64 MiB) and has 1 GiB, more from 23 ranks on (warning)",
        judge_limits.judge_shared_memory,
    ),
    Check(
        "memory",
        EVERYWHERE,
        "memory or cgroup limit: 4 GiB a GPU; without GPU 1 GiB for each of two ranks",
        judge_limits.judge_memory,
    ),
    Check(
        "threads",
        INSIDE,
        "`OMP_NUM_THREADS`, `MKL_NUM_THREADS` or their absence fit CPU affinity and quota",
        judge_limits.judge_threads,
    ),
    Check(
        "processes",
        INSIDE,
        "process limits (`ulimit -u`, pids cgroup) leave 256 threads a rank",
        judge_limits.judge_processes,
    ),
    Check(
        "open-files",
        INSIDE,
        "`ulimit -n` is at least 1024 (error) and 4096 (warning)",
        judge_limits.judge_open_files,
    ),
    Check(
        "locked-memory",
        INSIDE,
        "`ulimit -l` is unlimited where there are RDMA devices",
        judge_limits.judge_locked_memory,
    ),
    Check("stack", INSIDE, "`ulimit -s` is at least 8 MiB", judge_limits.judge_stack),
    Check(
        "temporary-folder",
        INSIDE,
        "a temporary folder can be written to and has 1 GiB free",
        judge_limits.judge_temporary,
    ),
    Check(
        "infiniband",
        EVERYWHERE,
        "RDMA devices (InfiniBand, RoCE) have an active port and can be used from here",
        judge_network.judge_infiniband,
    ),
    Check(
        "rdma-settings",
        INSIDE,
        "`NCCL_IB_DISABLE`, `NCCL_IB_HCA`, `NCCL_NET` fit the RDMA devices",
        judge_network.judge_rdma_settings,
    ),
    Check(
        "interfaces",
        INSIDE,
        "`NCCL_`, `GLOO_` and `TP_SOCKET_IFNAME` name interfaces that exist",
        judge_network.judge_interfaces,
    ),
    Check(
        "transports",
        INSIDE,
        "`NCCL_P2P_DISABLE`, `NCCL_SHM_DISABLE`, `NCCL_P2P_LEVEL` turn nothing off",
        judge_settings.judge_transports,
    ),
    Check(
        "debugging",
        INSIDE,
        "`NCCL_DEBUG`, `NCCL_DEBUG_FILE`, `NCCL_CONF_FILE`, `NCCL_ALGO`, `NCCL_PROTO`, "
        "`TORCH_DISTRIBUTED_DEBUG`, `CUDA_LAUNCH_BLOCKING`: nothing is wrong or left on",
        judge_settings.judge_debugging,
    ),
    Check(
        "renamed-settings",
        INSIDE,
        "no `NCCL_` name for what PyTorch calls `TORCH_NCCL_`",
        judge_settings.judge_renamed,
    ),
)


def judge(facts: Facts) -> list[Finding]:
    """Return one finding for each check of the facts' scope, in the table's order."""
    return [check.judge(facts) for check in CHECKS if facts.scope in check.scopes]


def markdown() -> str:
    """Return the table of the documentation."""
    lines = ["| check | in | asks whether |", "|---|---|---|"]
    lines += [f"| `{c.id}` | {', '.join(c.scopes)} | {c.asks} |" for c in CHECKS]
    return "\n".join(lines)
