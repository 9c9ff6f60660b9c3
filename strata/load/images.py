"""Reads `images/NAME.toml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.errors import DefinitionError, Problem, closest
from strata.load.schema import ImageFile, folders, read_toml
from strata.model import Image
from strata.tags import validate_image_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from strata.model import Layer

CHECKS = ("ddp",)


def load_images(
    root: Path, layers: Mapping[str, Layer], problems: list[Problem]
) -> dict[str, Image]:
    """Read every image below `root`, adding what is wrong to `problems`."""
    images: dict[str, Image] = {}
    names = [folder.name for folder in folders(root / "layers")]
    for path in sorted((root / "images").glob("*.toml")):
        where = f"images/{path.name}"
        file = read_toml(path, where, ImageFile)
        if isinstance(file, list):
            problems += file
            continue
        try:
            validate_image_name(path.stem, where)
        except DefinitionError as invalid:
            problems += invalid.problems
        problems += _climb_problems(where, file, layers, names)
        images[path.stem] = Image(
            name=path.stem,
            summary=file.summary,
            layers=tuple(file.layers),
            checks=tuple(file.checks),
        )
    return images


def _climb_problems(
    where: str, file: ImageFile, layers: Mapping[str, Layer], names: list[str]
) -> list[Problem]:
    problems: list[Problem] = []

    def add(what: str, fix: str) -> None:
        problems.append(Problem(where=where, what=what, fix=fix))

    for index, name in enumerate(file.layers):
        place = f"layers[{index}]"
        if name not in names:
            add(f'{place}: no layer "{name}"{closest(name, names)}', "./inv list shows every layer")
            continue
        below = file.layers[:index]
        if below and name <= below[-1]:
            add(
                f'{place}: "{name}" does not climb above "{below[-1]}"',
                "list the layers from bottom to top, each once",
            )
        # A layer that could not be read has problems of its own.
        for needed in layers[name].requires if name in layers else ():
            if needed not in below:
                add(
                    f'{place}: "{name}" requires "{needed}", which is not below it',
                    f'put "{needed}" before "{name}"',
                )
    for check in file.checks:
        if check not in CHECKS:
            add(
                f'checks: no check "{check}"{closest(check, list(CHECKS))}',
                f"the checks are {', '.join(CHECKS)}",
            )
    return problems
