"""How checks run, read from the command line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from strata.engine.facts import ALL_BY_CDI, gives_gpus
from strata.errors import DefinitionError, HostError, Problem

if TYPE_CHECKING:
    from strata.engine import EngineFacts

GPU_CHOICES = ("auto", "all", "none")
ON_CPU = "the training check ran on the CPU with gloo"


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """Ranks a node ("" for the image's default), nodes, GPUs, whether to repeat what passed.

    GPUs are "auto", "all" or "none".
    """

    nproc: str = ""
    nodes: int = 1
    gpus: str = "auto"
    force: bool = False


@dataclass(frozen=True, kw_only=True)
class Training:
    """How the training check runs: ranks a node, nodes, and GPUs.

    These are now "none", "all", or "all by CDI" where the engine has no other way.
    """

    nproc: str = ""
    nodes: int = 1
    gpus: str = "none"


def check_options(*, nproc: str, nodes: int, gpus: str, force: bool) -> CheckOptions:
    """Validate what the command line says; raises `DefinitionError` with all that is wrong."""
    problems = []
    if nproc not in ("", "auto") and not (nproc.isdecimal() and int(nproc) > 0):
        problems.append(
            Problem(where="--nproc", what=f"{nproc!r} is no number of ranks", fix="--nproc 2")
        )
    if nodes < 1:
        problems.append(
            Problem(where="--nodes", what=f"{nodes} is no number of nodes", fix="--nodes 2")
        )
    if gpus not in GPU_CHOICES:
        problems.append(
            Problem(
                where="--gpus", what=f"{gpus!r} is unknown", fix=f"one of {', '.join(GPU_CHOICES)}"
            )
        )
    if problems:
        raise DefinitionError(*problems)
    return CheckOptions(nproc=nproc, nodes=nodes, gpus=gpus, force=force)


def choose_gpus(options: CheckOptions | None, host: EngineFacts) -> str:
    """Return the GPUs of `Training`: what was asked for, else whether the engine offers any.

    Raises `HostError` where it can't be known whether it does, and where it
    offers none and all were asked for.
    """
    if options is None or options.gpus == "none":
        return "none"
    if not gives_gpus(host):
        if options.gpus == "auto":
            return "none"
        raise HostError.at(
            f"--gpus {options.gpus}",
            "the engine gives containers no GPUs",
            "./inv doctor says what is missing; --gpus none trains on the CPU",
        )
    return ALL_BY_CDI if host.gives_gpus_by_cdi else "all"


def why_no_gpu(asked: str, chosen: str) -> str:
    """Return why `chosen` is no GPU when `asked` was given, "" where there are some."""
    if chosen != "none":
        return ""
    reason = "--gpus none was given" if asked == "none" else "the engine offers no GPU here"
    return f"{reason}; {ON_CPU}"
