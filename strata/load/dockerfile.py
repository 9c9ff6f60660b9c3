"""What strata needs to know of a Dockerfile: its first FROM and its open ARGs."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# A whole word, as BuildKit has it: `<< END` and bash's `<<< text` are none.
HEREDOC = re.compile(r"\d*<<(-?)([^<]+)")
TAKES_HEREDOCS = ("ADD", "COPY", "RUN")


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
        if _is_blank(line):
            continue
        keyword, *rest = _joined(line, lines).split(None, 1)
        instruction = Instruction(line=number, keyword=keyword.upper(), rest="".join(rest))
        if instruction.keyword in TAKES_HEREDOCS:
            _pass_over_heredocs(instruction.rest, lines)
        yield instruction


def open_arguments(text: str) -> tuple[str, ...]:
    """Return the names of the ARGs that have no default, in order, each once."""
    rests = [i.rest for i in instructions(text) if i.keyword == "ARG"]
    return tuple(dict.fromkeys(word for rest in rests for word in _words(rest) if "=" not in word))


def starts_from_parent(text: str) -> bool:
    """Say whether the first instruction is `FROM parent`, as every layer's is."""
    first = next(instructions(text), None)
    return first is not None and (first.keyword, first.rest) == ("FROM", "parent")


def _is_blank(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")


def _joined(line: str, lines: Iterator[tuple[int, str]]) -> str:
    """Return an instruction's lines as one, less the comments and blank lines between them."""
    whole = line.strip()
    while whole.endswith("\\"):
        more = next((more for _, more in lines if not _is_blank(more)), "")
        whole = whole[:-1] + more.strip()
    return whole


def _pass_over_heredocs(rest: str, lines: Iterator[tuple[int, str]]) -> None:
    for word in _words(rest):
        if found := HEREDOC.fullmatch(word):
            is_indented, end = found[1] == "-", found[2]
            for _, body in lines:
                if (body.lstrip("\t") if is_indented else body) == end:
                    break


def _words(rest: str) -> list[str]:
    try:
        return shlex.split(rest)
    except ValueError:  # a quote that stands alone: then no word of it is quoted
        return rest.split()
