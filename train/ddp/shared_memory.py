"""How much shared memory the workers of data loaders need.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ddp.errors import PhaseFailed

FOLDER = "/dev/shm"  # noqa: S108 - where Linux keeps shared memory
WORKERS = 2
PREFETCH = 2  # batches that each worker makes ahead: DataLoader's own default
DOCKER_DEFAULT = 64 << 20
MIB = 1 << 20


@dataclass(frozen=True)
class Need:
    """What `ranks` on one host need, for batches of `batch_bytes`."""

    ranks: int
    batch_bytes: int

    @property
    def bytes(self) -> int:
        """Bytes of all batches that lie in shared memory at once, and the one in use."""
        return self.ranks * (WORKERS * PREFETCH + 1) * self.batch_bytes


def judge_shared_memory(free: int, need: Need) -> None:
    """Raise `PhaseFailed`, with size and remedy, where `free` bytes are not enough."""
    if free >= need.bytes:
        return
    needed, wanted = -(-need.bytes // MIB), -(-need.bytes // (1 << 30))
    raise PhaseFailed(
        f"{FOLDER} has {free // MIB} MiB free; {need.ranks} ranks with {WORKERS} workers and "
        f"batches of {need.batch_bytes / 1e6:.0f} MB need {needed} MiB, and a worker "
        f"that finds it full dies of a bus error; start the container with --shm-size {wanted}g "
        "(Compose: shm_size; Kubernetes: an emptyDir of medium Memory at /dev/shm), or --ipc host"
    )
