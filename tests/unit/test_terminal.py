"""What is left to read of a display that draws over itself."""

from __future__ import annotations

import pytest

from strata.terminal import Screen

# As buildx draws: lines, up over them, to the first column, the cursor hidden, colours.
DISPLAY = (
    "\x1b[?25l[+] Building 0.1s (0/2)\n\x1b[34m => [10-base 1/2] FROM parent\x1b[0m   \n\x1b[?25h"
    "\x1b[1A\x1b[1A\x1b[0G\x1b[?25l[+] Building 12.5s (2/2) \n"
    "\x1b[31m => ERROR [10-base 2/2] RUN é\x1b[0m  \n\x1b[?25h"
    "------\n > [10-base 2/2] RUN é:\n0.1 said\n------\n"
)
LEFT = """\
[+] Building 12.5s (2/2)
 => ERROR [10-base 2/2] RUN é
------
 > [10-base 2/2] RUN é:
0.1 said
------
"""


def left(*chunks: bytes) -> str:
    """Return what is left of what a program wrote."""
    screen = Screen()
    for chunk in chunks:
        screen.write(chunk)
    return screen.text()


def test_of_a_display_its_last_state_is_left() -> None:
    """Without colours, without what was drawn over, and with all that follows."""
    assert left(DISPLAY.encode()) == LEFT


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_it_may_come_in_pieces(size: int) -> None:
    """Also where they end within a character or a sequence."""
    data = DISPLAY.encode()
    assert left(*(data[at : at + size] for at in range(0, len(data), size))) == LEFT


@pytest.mark.parametrize(
    ("drawn", "text"),
    [
        ("", ""),
        ("one\r\ntwo", "one\ntwo\n"),
        ("10 %\r100 %\n", "100 %\n"),
        ("long line\rshort", "shortline\n"),
        ("one\n\n\n\x1b[2Atwo", "one\ntwo\n"),
        ("one\n\x1b[9Atwo", "two\n"),
        ("a\x1b[2Bb", "a\n\n b\n"),
        ("\x1b[5Gfifth", "    fifth\n"),
        ("typo\b\b\bool", "tool\n"),
        ("\x1b]0;", "0;\n"),
        ("\x1b[38;5;1mred\x1b[m\x1b[2K", "red\n"),
    ],
)
def test_what_moves_do(drawn: str, text: str) -> None:
    """A line's start, lines above and below, columns; other sequences leave no trace."""
    assert left(drawn.encode()) == text
