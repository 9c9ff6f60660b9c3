"""How checks run, read from the command line."""

from __future__ import annotations

from dataclasses import dataclass

from strata.errors import DefinitionError, Problem

GPU_CHOICES = ("auto", "all", "none")


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
    """How the training check runs: ranks a node, nodes, and GPUs, now "all" or "none"."""

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
