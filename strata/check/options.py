"""How checks run, read from the command line."""

from __future__ import annotations

from dataclasses import dataclass

from strata.errors import DefinitionError, Problem

GPU_CHOICES = ("auto", "all", "none")


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """Ranks ("" for the image's default), GPUs ("auto", "all", "none"), whether to repeat."""

    nproc: str = ""
    gpus: str = "auto"
    force: bool = False


def check_options(*, nproc: str, nodes: int, gpus: str, force: bool) -> CheckOptions:
    """Validate what the command line says; raises `DefinitionError` with all that is wrong."""
    problems = []
    if nproc not in ("", "auto") and not (nproc.isdecimal() and int(nproc) > 0):
        problems.append(
            Problem(where="--nproc", what=f"{nproc!r} is no number of ranks", fix="--nproc 2")
        )
    if nodes != 1:
        problems.append(
            Problem(
                where="--nodes",
                what=f"{nodes} hosts cannot be checked yet: there is one engine",
                fix="leave it out, or --nodes 1",
            )
        )
    if gpus not in GPU_CHOICES:
        problems.append(
            Problem(
                where="--gpus", what=f"{gpus!r} is unknown", fix=f"one of {', '.join(GPU_CHOICES)}"
            )
        )
    if problems:
        raise DefinitionError(*problems)
    return CheckOptions(nproc=nproc, gpus=gpus, force=force)
