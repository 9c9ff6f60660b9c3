"""YAML files whose every value knows the line that it stands on."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from strata.errors import Problem, closest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strata.errors import StrataError

# libyaml is ten times as quick; not every platform's PyYAML has it.
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def shown(path: Path) -> str:
    """Return a path as people want to read it: relative where it is below us."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


@dataclass(frozen=True, kw_only=True)
class Document:
    """A parsed YAML file, with the tree that tells where its values stand."""

    path: Path
    data: Any
    node: yaml.Node | None

    def where(self, *keys: str | int) -> str:
        """Return `file:line` of the value at `keys`, or of the nearest one around it."""
        node = self.node
        line = node.start_mark.line if node is not None else 0
        for key in keys:
            if isinstance(node, yaml.MappingNode):
                found = [(k, v) for k, v in node.value if k.value == str(key)]
            elif isinstance(node, yaml.SequenceNode) and isinstance(key, int):
                found = [(item, item) for item in node.value[key : key + 1]]
            else:
                found = []
            if not found:
                break
            line, node = found[0][0].start_mark.line, found[0][1]
        return f"{shown(self.path)}:{line + 1}"

    def twice(self) -> list[Problem]:
        """Return a problem for every key that stands twice in one mapping.

        YAML forbids it, and PyYAML silently takes the last one.
        """
        return _twice(self.node, shown(self.path))


def _twice(node: yaml.Node | None, path: str) -> list[Problem]:
    problems: list[Problem] = []
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            problems += _twice(item, path)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, value in node.value:
            if key.value in seen:
                problems.append(
                    Problem(
                        where=f"{path}:{key.start_mark.line + 1}",
                        what=f'key "{key.value}" stands twice',
                        fix="keep one of the two",
                    )
                )
            seen.add(str(key.value))
            problems += _twice(value, path)
    return problems


def load(path: Path, *, error: type[StrataError], fix: str) -> Document:
    """Parse a YAML file.

    Raises `error` when the file can't be read, or isn't UTF-8 or YAML; the
    line is named.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as failure:
        raise error.at(shown(path), f"can't be read: {failure.strerror}", fix) from None
    except UnicodeDecodeError as failure:
        raise error.at(shown(path), f"is not UTF-8 at byte {failure.start}", fix) from None
    loader = Loader(text)
    try:
        node = loader.get_single_node()
        data = loader.construct_document(node) if node is not None else None
    except yaml.YAMLError as failure:
        mark = getattr(failure, "problem_mark", None)
        place = f"{shown(path)}:{mark.line + 1}" if mark else shown(path)
        reason = getattr(failure, "problem", None) or "can't be parsed"
        raise error.at(place, f"invalid YAML: {reason}", fix) from None
    finally:
        loader.dispose()
    return Document(path=path, data=data, node=node)


def unknown_keys(
    document: Document, data: object, known: Sequence[str], *at: str | int
) -> list[Problem]:
    """Return a problem for every key of `data` that is not a known one."""
    keys = [str(key) for key in data] if isinstance(data, dict) else []
    return [
        Problem(
            where=document.where(*at, key),
            what=f'unknown key "{key}"{closest(key, known)}',
            fix=f"the keys here are: {', '.join(known)}",
        )
        for key in keys
        if key not in known
    ]
