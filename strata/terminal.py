"""What is left to read of what a program draws on a terminal."""

from __future__ import annotations

import codecs
import re

# ECMA-48: control sequences, and the shorter ones that begin with an escape.
SEQUENCE = re.compile(r"\x1b(?:\[([0-?]*)[ -/]*([@-~])|[ -/]*[0-Z\\-~])")
PARTIAL = re.compile(r"\x1b(?:\[[0-?]*)?[ -/]*\Z")
PIECE = re.compile(rf"{SEQUENCE.pattern}|[\n\r\b]|[^\x1b\n\r\b]+")


class Screen:
    """The lines that a terminal of any height shows, those that have scrolled away included.

    It knows the moves of progress displays: up, down, to a column, to the line's
    start; colours and all other sequences are passed over.
    """

    def __init__(self) -> None:
        """Begin with an empty line."""
        self._rows = [""]
        self._row = 0
        self._column = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._rest = ""  # the start of a sequence whose end is yet to come

    def write(self, data: bytes) -> None:
        """Draw what a program has written; it may end within a character or a sequence."""
        text = self._rest + self._decoder.decode(data)
        partial = PARTIAL.search(text)
        whole = partial.start() if partial else len(text)
        text, self._rest = text[:whole], text[whole:]
        for piece in PIECE.finditer(text):
            self._draw(piece[0], piece[1] or "", piece[2] or "")

    def text(self) -> str:
        """Return the lines, without the blanks at their ends, each with a newline."""
        lines = "\n".join(row.rstrip() for row in self._rows).rstrip("\n")
        return f"{lines}\n" if lines else ""

    def _draw(self, piece: str, parameter: str, final: str) -> None:
        if piece == "\n":
            self._move(self._row + 1, 0)
        elif piece == "\r":
            self._column = 0
        elif piece == "\b":
            self._column = max(0, self._column - 1)
        elif not piece.startswith("\x1b"):
            row = self._rows[self._row].ljust(self._column)
            self._rows[self._row] = row[: self._column] + piece + row[self._column + len(piece) :]
            self._column += len(piece)
        elif parameter.isdecimal() or not parameter:
            count = max(1, int(parameter or 1))  # 0 means 1
            moves = {"A": -count, "B": count}
            if final in moves:
                self._move(self._row + moves[final], self._column)
            elif final == "G":
                self._column = count - 1

    def _move(self, row: int, column: int) -> None:
        self._row, self._column = max(0, row), column
        self._rows += [""] * (self._row + 1 - len(self._rows))
