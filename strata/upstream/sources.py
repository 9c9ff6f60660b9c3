"""Changes values of a `sources.toml` where they stand, and nothing else of it."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from strata.errors import DefinitionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    Key = tuple[str, ...]

_HEADER = re.compile(r"^\s*\[([^\[\]]+)\]\s*(#.*)?$")
_VALUE = re.compile(r'^(?P<head>\s*(?P<key>[\w-]+|"[^"]*")\s*=\s*)"[^"]*"(?P<tail>.*)$')


def set_values(text: str, values: Mapping[Key, str], where: str) -> str:
    """Return the TOML text with these values, by path of keys; all other bytes stay.

    A value must stand on a line of its own below its table's header, in double
    quotes.  Raises `DefinitionError` for one that does not.
    """
    missing = set(values)
    table: Key = ()
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        if header := _HEADER.match(line):
            table = tuple(part.strip().strip('"') for part in header[1].split("."))
        found = _VALUE.match(line.rstrip("\n"))
        key = (*table, found["key"].strip('"')) if found else ()
        if found and key in values:
            end = "\n" if line.endswith("\n") else ""
            lines[number] = f'{found["head"]}"{values[key]}"{found["tail"]}{end}'
            missing.discard(key)
    changed = "".join(lines)
    document = tomllib.loads(changed)
    missing |= {key for key, value in values.items() if _look_up(document, key) != value}
    if missing:
        key = min(missing)
        table_name = ".".join(key[:-1])
        raise DefinitionError.at(
            where,
            f"{'.'.join(key)} does not stand on a line of its own",
            f'write `{_quoted(key[-1])} = "…"` below [{table_name}]',
        )
    return changed


def _look_up(document: Mapping[str, Any], key: Key) -> object:
    value: Any = document
    for part in key:
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _quoted(key: str) -> str:
    return key if re.fullmatch(r"[\w-]+", key) else f'"{key}"'
