"""What is known of a machine: frozen values, which probes fill in and judges read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CONTAINER, HOST = "container", "host"
MIB = 1 << 20
GIB = 1 << 30


@dataclass(frozen=True)
class Unknown:
    """What could not be asked, and why."""

    reason: str


@dataclass(frozen=True)
class Limits:
    """What this process may use: bytes and counts, None where there is no limit.

    `cores` is what CPU affinity and cgroup quota leave, `granted` what the
    affinity alone does: that is all that libraries look at.
    """

    cores: int
    granted: int
    memory: int | None
    memory_total: int
    processes: int | None
    open_files: int | None
    locked_memory: int | None
    stack: int | None
    shared_memory: int | Unknown
    temporary: str | Unknown
    temporary_free: int | Unknown


@dataclass(frozen=True)
class Gpu:
    """One GPU as NVML tells of it.

    `capability` is its compute capability; `slowdowns` names the reasons that
    keep its clocks down now.  `clocks` are the application clock that is set and
    the GPU's default one, in MHz, None where there is no such setting.
    """

    index: int
    name: str
    capability: tuple[int, int]
    slowdowns: tuple[str, ...] | Unknown
    clocks: tuple[int, int] | Unknown | None = None


@dataclass(frozen=True)
class Nvidia:
    """The driver as far as it can be seen from here.

    `module` is the version of the kernel module that is loaded, "" when there
    is none (under WSL it is in Windows).  `cuda` is the newest CUDA that the
    libcuda in use knows, (12, 8), and `start` what cuInit returned.  `nodes`
    are the device files, `cards` the number of NVIDIA's display controllers on
    the PCI bus, with or without a driver.  `severed` tells which pairs can't
    reach each other's memory, and why.
    """

    is_wsl: bool
    module: str
    nodes: tuple[str, ...]
    cards: int
    cuda: tuple[int, int] | Unknown
    start: int | Unknown
    driver: str | Unknown
    gpus: tuple[Gpu, ...] | Unknown
    severed: tuple[str, ...] | Unknown

    @property
    def version(self) -> str:
        """The driver's version by NVML or by its kernel module, "" where neither tells."""
        return self.module if isinstance(self.driver, Unknown) else self.driver

    @property
    def is_there(self) -> bool:
        """Whether any sign of a driver can be seen from here."""
        return bool(self.module or self.nodes) or not isinstance(self.start, Unknown)

    @property
    def count(self) -> int:
        """The number of GPUs that are known of."""
        return 0 if isinstance(self.gpus, Unknown) else len(self.gpus)


@dataclass(frozen=True)
class Torch:
    """The PyTorch of this environment; `cuda` None when it is built for the CPU.

    `architectures` are those that it has code for: sm_90, compute_90, ...
    """

    version: str
    cuda: tuple[int, int] | None
    architectures: tuple[str, ...]
    gpus: int


@dataclass(frozen=True)
class Port:
    """A port of an RDMA device: "ACTIVE", "DOWN", ...; over "InfiniBand" or "Ethernet"."""

    device: str
    number: int
    state: str
    link_layer: str


@dataclass(frozen=True)
class Network:
    """Interfaces, RDMA ports, and the device files by which programs use them."""

    interfaces: tuple[str, ...]
    ports: tuple[Port, ...]
    verbs: tuple[str, ...]


@dataclass(frozen=True)
class Setting:
    """A variable's value, and where it comes from: "the environment" or a file."""

    value: str
    source: str


@dataclass(frozen=True)
class Facts:
    """All that the checks look at; `scope` is "container" or "host".

    `blocked` tells why a variable's file can't be used, by the variable's name.
    """

    scope: str
    limits: Limits
    nvidia: Nvidia
    torch: Torch | Unknown
    network: Network
    settings: Mapping[str, Setting]
    blocked: Mapping[str, str]
