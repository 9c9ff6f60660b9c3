"""Values of variables that were put into addresses; what is printed shows their names again.

Addresses of mirrors are written with `$NAME`, and the programs and servers that
get them with the value tell of them with the value: a redirect, pip, rattler.
Whoever puts a value in notes it here, once, and what people see goes through `hide`.
"""

from __future__ import annotations

from urllib.parse import quote, unquote

# What is shorter keeps no secret, and would be found in the middle of any text.
SHORTEST = 4  # characters

_NAMES: dict[str, str] = {}


def note(name: str, value: str) -> None:
    """Remember that `value` stands for `$NAME`, in each form that an address gives it."""
    for form in (value, quote(value), quote(value, safe=""), unquote(value)):
        if len(form) >= SHORTEST:
            _NAMES[form] = f"${name}"


def hide(text: str) -> str:
    """Return the text with each value that was noted replaced by its `$NAME`."""
    for value in sorted(_NAMES, key=len, reverse=True):  # one may hold another
        text = text.replace(value, _NAMES[value])
    return text
