"""Turns the definition files into frozen values, reporting all problems at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from strata.errors import DefinitionError, Problem, closest
from strata.load.arguments import check_arguments
from strata.load.images import load_images
from strata.load.layers import load_layers
from strata.load.variants import load_variants
from strata.model import Project

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

Named = TypeVar("Named")


def load(root: Path) -> Project:
    """Read `layers/`, `images/` and `locks/` below `root`.

    Raises DefinitionError with every problem of every file.
    """
    problems: list[Problem] = []
    layers = load_layers(root, problems)
    is_whole = not problems
    images = load_images(root, layers, problems)
    variants = load_variants(root, layers, problems)
    if is_whole:  # else an argument of a layer that can't be read would seem to be missing
        check_arguments(layers, images.values(), variants.values(), problems)
    for folder, found in (("layers", layers), ("images", images), ("locks", variants)):
        if not found and not problems:
            problems.append(
                Problem(where=folder, what="is empty or missing", fix="run in strata's own folder")
            )
    if problems:
        raise DefinitionError(*problems)
    return Project(root=root, layers=layers, images=images, variants=variants)


def select(kind: str, wanted: Iterable[str], known: Mapping[str, Named]) -> list[Named]:
    """Return the named ones in the order of definition; all of them for none.

    Raises DefinitionError for each name that nothing has, with the closest match.
    """
    wanted = list(wanted)
    problems = [
        Problem(
            where=f"--{kind} {name}",
            what=f'no {kind} "{name}"{closest(name, list(known))}',
            fix=f"./inv list shows every {kind}",
        )
        for name in wanted
        if name not in known
    ]
    if problems:
        raise DefinitionError(*problems)
    return [value for name, value in known.items() if not wanted or name in wanted]
