"""Network interfaces by name, as gloo and NCCL are told of them.  Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from doctor.judge_network import matching

if TYPE_CHECKING:
    from collections.abc import Sequence

# Which variable a backend reads.
VARIABLES = {"gloo": "GLOO_SOCKET_IFNAME", "nccl": "NCCL_SOCKET_IFNAME"}


def wrong_interface(backend: str, value: str, present: Sequence[str]) -> str | None:
    """Return why `value` of the backend's variable leaves no interface; None when one is left.

    gloo takes names with commas between them and needs all (PyTorch's
    documentation, "Common environment variables").  NCCL takes prefixes, `=` for
    exact names, and `^` for all others (NCCL's documentation, NCCL_SOCKET_IFNAME).
    """
    if not value:
        return None
    missing = _unmatched_by_nccl if backend == "nccl" else _unknown_to_gloo
    wrong = missing(value, present)
    if wrong is None:
        return None
    return (
        f"{VARIABLES[backend]}={value}: there is no interface {wrong}; this host has "
        f"{', '.join(present)}"
    )


def _unknown_to_gloo(value: str, present: Sequence[str]) -> str | None:
    return next((name for name in value.split(",") if name not in present), None)


def _unmatched_by_nccl(value: str, present: Sequence[str]) -> str | None:
    return None if matching(value, present) else f"that matches {value}"
