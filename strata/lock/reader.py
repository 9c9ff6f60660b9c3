"""Reading YAML definitions value by value, with every problem kept beside its line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from strata.errors import DefinitionError, Problem, closest
from strata.lock.document import Document, load, shown, unknown_keys
from strata.lock.urls import mask

if TYPE_CHECKING:
    from pathlib import Path

NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]*\Z")


class DefinitionReader:
    """Reads files and keeps the problems and places that it meets."""

    def __init__(self) -> None:
        """Begin with none."""
        self.problems: list[Problem] = []
        self.places: dict[str, str] = {}

    def load(self, path: Path) -> Document:
        """Parse a file that must hold a mapping; raises `DefinitionError` where it holds none."""
        document = load(path, error=DefinitionError, fix=f"correct {shown(path)}")
        self.problems += document.twice()
        if not isinstance(document.data, dict):
            raise DefinitionError.at(
                document.where(), "is not a mapping", f"write KEY: VALUE lines in {shown(path)}"
            )
        return document

    def keys(self, document: Document, data: object, known: tuple[str, ...]) -> None:
        """Note the keys that nobody knows."""
        self.problems += unknown_keys(document, data, known)

    def one_of(self, where: str, kind: str, value: object, known: tuple[str, ...]) -> None:
        """Note a value that is not one of the known ones."""
        if value not in known:
            what = f"{kind} {value!r} is not known{closest(str(value), known)}"
            self.add(where, what, f"write one of: {', '.join(known)}")

    def is_name(self, where: str, name: str) -> bool:
        """Say whether a name can be a conda package's, and note where it can't."""
        if NAME.match(name) and not name.startswith("__"):
            return True
        self.add(
            where,
            f'"{mask(name)}" is not the name of a conda package',
            "write its name in small letters, with no channel before it",
        )
        return False

    def add(self, where: str, what: str, fix: str) -> None:
        """Note a problem."""
        self.problems.append(Problem(where=where, what=what, fix=fix))

    def table(self, document: Document, *keys: str, needed: bool = True) -> dict[str, str]:
        """Return a mapping of texts; a number is refused, since YAML reads 3.10 as 3.1."""
        data = document.data
        for key in keys:
            data = data.get(key) if isinstance(data, dict) else None
        if data is None and not needed:
            return {}
        if not isinstance(data, dict):
            self.add(document.where(*keys), "is not a mapping", "write NAME: VERSION lines")
            return {}
        for name, value in data.items():
            if not isinstance(value, str):
                place = ".".join((*keys, str(name)))
                self.add(
                    document.where(*keys, name),
                    f"{place} is read as {value!r}, not as text",
                    "put quotes around the value",
                )
            self.places[".".join((*keys, str(name)))] = document.where(*keys, name)
        return {str(name): " ".join(str(value).split()) for name, value in data.items()}

    def entries(self, document: Document, key: str) -> list[object]:
        """Return a list that must not be empty."""
        value = document.data.get(key)
        if isinstance(value, list) and value:
            return value
        self._lacks(document, key, "a list (- ENTRY lines)")
        return []

    def mapping(self, document: Document, key: str) -> dict[str, object]:
        """Return a mapping that must not be empty."""
        value = document.data.get(key)
        if isinstance(value, dict) and value:
            return value
        self._lacks(document, key, "a mapping (KEY: VALUE lines)")
        return {}

    def _lacks(self, document: Document, key: str, shape: str) -> None:
        what = "is empty or of the wrong kind" if key in document.data else "is missing"
        self.add(document.where(key), f'"{key}" {what}', f"write {shape} there")
