"""What strata needs to know of a Dockerfile: its first FROM and its open ARGs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

HEREDOC = re.compile(r"<<-?\s*([\"']?)(\w+)\1")


@dataclass(frozen=True, kw_only=True)
class Instruction:
    """One instruction: its line (from 1), its keyword in capitals, and the rest."""

    line: int
    keyword: str
    rest: str


def instructions(text: str) -> Iterator[Instruction]:
    """Yield the instructions of a Dockerfile, continuation lines joined.

    Heredoc bodies belong to their instruction and are passed over.
    """
    lines = enumerate(text.splitlines(), start=1)
    for number, line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        whole = line.strip()
        while whole.endswith("\\"):
            _, more = next(lines, (0, ""))
            whole = whole[:-1] + ("" if more.lstrip().startswith("#") else more.strip())
        for _, word in HEREDOC.findall(whole):
            for _, body in lines:
                if body.strip() == word:
                    break
        keyword, _, rest = whole.partition(" ")
        yield Instruction(line=number, keyword=keyword.upper(), rest=rest.strip())


def open_arguments(text: str) -> tuple[str, ...]:
    """Return the names of the ARGs that have no default, in order, each once."""
    names = [i.rest for i in instructions(text) if i.keyword == "ARG" and "=" not in i.rest]
    return tuple(dict.fromkeys(name for rest in names for name in rest.split()))


def starts_from_parent(text: str) -> bool:
    """Say whether the first instruction is `FROM parent`, as every layer's is."""
    first = next(instructions(text), None)
    return first is not None and (first.keyword, first.rest) == ("FROM", "parent")
