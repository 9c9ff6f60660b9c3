"""What the ranks will do: decided once, before the first of them starts."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from ddp.arguments import Arguments, Injection
from ddp.errors import Refused
from ddp.nodes import ONE_HOST, Meeting, Nodes

if TYPE_CHECKING:
    from pathlib import Path

CPU_RANKS = 2
GROUP_TIMEOUT = 15.0


@dataclass(frozen=True)
class Machine:
    """What torch and the kernel say about this machine.

    `disagreements` are sentences on what is installed otherwise than the
    image's manifest says.
    """

    gpus: int
    cores: int
    has_nccl: bool
    has_gloo: bool
    disagreements: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """How the ranks run.

    `unfit` says why they can't, and `unfit_phase` which phase that fails;
    `group_timeout` (seconds) is how long a rank waits for the others.
    """

    backend: str
    world_size: int
    threads: int
    label: str
    unfit: str | None
    inject: Injection | None
    facts: dict[str, Any]
    is_full: bool = False
    nodes: Nodes = ONE_HOST
    logs: str | None = None
    group_timeout: float = GROUP_TIMEOUT
    unfit_phase: str = "facts"

    @property
    def nproc(self) -> int:
        """The number of ranks on this host."""
        return self.world_size // self.nodes.count

    def with_hosts(self, meeting: Meeting) -> Plan:
        """Return the plan whose facts say which ranks were on which host."""
        return replace(self, facts={**self.facts, "hosts": meeting.facts()})

    def write(self, file: Path) -> None:
        """Write to `file`, whole or not at all."""
        part = file.with_suffix(".part")
        part.write_text(json.dumps(asdict(self)))
        part.replace(file)

    @classmethod
    def read(cls, file: Path) -> Plan:
        """Return what `write` has written to `file`."""
        values = json.loads(file.read_text())
        if values["inject"] is not None:
            values["inject"] = Injection(**values["inject"])
        values["nodes"] = Nodes(**values["nodes"])
        return cls(**values)


def make_plan(arguments: Arguments, machine: Machine, facts: dict[str, Any]) -> Plan:
    """Decide backend, ranks and threads; raises `Refused` for impossible arguments."""
    on_gpu = machine.gpus > 0
    backend = "nccl" if on_gpu else "gloo"
    nproc = arguments.nproc or (machine.gpus if on_gpu else CPU_RANKS)
    world_size = nproc * arguments.nodes.count
    if on_gpu and nproc > machine.gpus:
        raise Refused(
            "--nproc",
            f"{nproc} ranks don't fit on {machine.gpus} GPU: NCCL takes one rank a GPU",
            f"give at most {machine.gpus}, or `auto`; to check on the CPU, hide the GPUs with "
            "CUDA_VISIBLE_DEVICES=",
        )
    if arguments.inject is not None and arguments.inject.rank >= world_size:
        raise Refused(
            "--inject",
            f"there is no rank {arguments.inject.rank} among {world_size}",
            f"give a rank from 0 to {world_size - 1}",
        )
    threads = max(1, machine.cores // nproc)
    return Plan(
        backend=backend,
        world_size=world_size,
        threads=threads,
        label=f"{world_size} GPU, nccl" if on_gpu else "CPU, gloo",
        unfit=_unfit(arguments, machine),
        inject=arguments.inject,
        facts={**facts, "cores": machine.cores, "threads_per_rank": threads},
        is_full=arguments.is_full,
        nodes=arguments.nodes,
        logs=str(arguments.logs.absolute()) if arguments.logs else None,
    )


def _unfit(arguments: Arguments, machine: Machine) -> str | None:
    if arguments.require_gpu and machine.gpus == 0:
        return (
            "a GPU is required (--require-gpu) and torch sees none; start the container with "
            "--gpus all, on a host with an NVIDIA driver and the container toolkit"
        )
    if machine.gpus < arguments.thresholds.min_gpus:
        return f"--min-gpus asks for {arguments.thresholds.min_gpus} GPU, torch sees {machine.gpus}"
    if machine.disagreements:
        return (
            f"{'; '.join(machine.disagreements)}: what was tested is not what is here; install "
            "other versions in an environment of your own, or build the image with them"
        )
    if machine.gpus > 0 and not machine.has_nccl:
        return f"torch sees {machine.gpus} GPU but was built without NCCL"
    if machine.gpus == 0 and not machine.has_gloo:
        return "torch was built without gloo, which ranks on a CPU need"
    return None
