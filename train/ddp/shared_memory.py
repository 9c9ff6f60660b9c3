"""How much shared memory the workers of data loaders need.  Pure."""

from __future__ import annotations

from dataclasses import dataclass

from ddp.errors import PhaseFailed

FOLDER = "/dev/shm"  # noqa: S108 - where Linux keeps shared memory
WORKERS = 2
PREFETCH = 2  # batches that each worker makes ahead: DataLoader's own default
DOCKER_DEFAULT = 64 << 20
MIB = 1 << 20
GIB = 1 << 30
# A usual batch of images in float32: 9.6 MB.
BATCH = 16
SHAPE = (3, 224, 224)
BATCH_BYTES = BATCH * SHAPE[0] * SHAPE[1] * SHAPE[2] * 4
# One worker that makes one batch ahead, and the batch in use: no loader has less.
FEWEST_BATCHES = 2


@dataclass(frozen=True)
class Need:
    """What `ranks` on one host need, for batches of `batch_bytes`."""

    ranks: int
    batch_bytes: int = BATCH_BYTES

    @property
    def bytes(self) -> int:
        """Bytes of all batches that lie in shared memory at once, and the one in use."""
        return self.ranks * (WORKERS * PREFETCH + 1) * self.batch_bytes

    @property
    def least_bytes(self) -> int:
        """Bytes below which no loader with workers gets through, however few it is given."""
        return self.ranks * FEWEST_BATCHES * self.batch_bytes

    @property
    def gibibytes(self) -> int:
        """Whole GiB to ask for: what is needed, and room above it."""
        return -(-self.bytes // GIB)

    @property
    def remedy(self) -> str:
        """What starts a container with enough."""
        return (
            f"--shm-size {self.gibibytes}g (Compose: shm_size: {self.gibibytes}g; Kubernetes: an "
            f"emptyDir of medium Memory at {FOLDER}), or --ipc=host"
        )


def judge_shared_memory(free: int, need: Need) -> None:
    """Raise `PhaseFailed`, with size and remedy, where `free` bytes are not enough."""
    if free >= need.bytes:
        return
    needed = -(-need.bytes // MIB)
    raise PhaseFailed(
        f"{FOLDER} has {free // MIB} MiB free; {need.ranks} ranks with {WORKERS} workers and "
        f"batches of {need.batch_bytes / 1e6:.0f} MB need {needed} MiB, and a worker "
        f"that finds it full dies of a bus error; start the container with {need.remedy}"
    )
