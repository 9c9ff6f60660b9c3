"""What a phase that passed has found."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Finding:
    """One line for people, and the numbers behind it, which JSON can hold.

    Keys of `data` name their unit (`busbw_gbps`, `seconds`, `size_bytes`).
    """

    detail: str
    data: Mapping[str, Any] = field(default_factory=dict)
