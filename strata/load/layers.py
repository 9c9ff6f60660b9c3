"""Reads `layers/NN-name`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import yaml

from strata.errors import Problem
from strata.load.dockerfile import open_arguments, starts_from_parent
from strata.load.schema import LayerFile, closest, folders, read_toml
from strata.model import Layer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LAYER_NAME = re.compile(r"^[0-9]{2}-[a-z][a-z0-9-]*$")


def load_layers(root: Path, problems: list[Problem]) -> dict[str, Layer]:
    """Read every layer below `root`, adding what is wrong to `problems`."""
    layers: dict[str, Layer] = {}
    for folder in folders(root / "layers"):
        where = f"layers/{folder.name}"
        if not LAYER_NAME.match(folder.name):
            problems.append(
                Problem(
                    where=where, what="is no layer's name", fix="call it NN-name, such as 35-vision"
                )
            )
            continue
        file = read_toml(folder / "layer.toml", f"{where}/layer.toml", LayerFile)
        if isinstance(file, list):
            problems += file
            continue
        dockerfile = folder / "Dockerfile"
        text = dockerfile.read_text() if dockerfile.is_file() else ""
        if not starts_from_parent(text):
            problems.append(
                Problem(
                    where=f"{where}/Dockerfile",
                    what="does not start with `FROM parent`",
                    fix="the plan says what the parent is: make `FROM parent` the first line",
                )
            )
        for context in file.contexts:
            if not (root / context).is_dir():
                problems.append(
                    Problem(
                        where=f"{where}/layer.toml",
                        what=f'contexts: no folder "{context}" in the project',
                        fix="name a folder that is there",
                    )
                )
        layers[folder.name] = Layer(
            name=folder.name,
            folder=folder,
            summary=file.summary,
            requires=tuple(file.requires),
            category=file.category,
            roots=_roots(folder, where, file.category, problems),
            contexts=tuple(file.contexts),
            args=file.args,
            facts=file.facts,
            arguments=open_arguments(text),
        )
    _check_requires(layers, problems)
    return layers


def _roots(
    folder: Path, where: str, category: str | None, problems: list[Problem]
) -> tuple[str, ...]:
    path = folder / "environment.yml"
    if (category is not None) != path.is_file():
        problems.append(
            Problem(
                where=where,
                what="a category and an environment.yml belong together, and one is missing",
                fix='write both, or neither: category = "…" in layer.toml names its slice',
            )
        )
        return ()
    if category is None:
        return ()
    try:
        data = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    except yaml.YAMLError as invalid:
        mark = getattr(invalid, "problem_mark", None)
        line = f":{mark.line + 1}" if mark else ""
        problems.append(
            Problem(
                where=f"{where}/environment.yml{line}",
                what=f"invalid YAML: {getattr(invalid, 'problem', invalid)}",
                fix="correct that line",
            )
        )
        return ()
    names = data.get("dependencies") if isinstance(data, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        problems.append(
            Problem(
                where=f"{where}/environment.yml",
                what="has no list `dependencies` of conda names",
                fix="write `dependencies:` and one `- name` a line",
            )
        )
        return ()
    return tuple(re.split(r"[\s=<>!~]", name, maxsplit=1)[0] for name in names)


def _check_requires(layers: Mapping[str, Layer], problems: list[Problem]) -> None:
    problems += [
        Problem(
            where=f"layers/{layer.name}/layer.toml",
            what=f'requires: no layer "{name}"{closest(name, list(layers))}',
            fix="./inv list shows every layer",
        )
        for layer in layers.values()
        for name in layer.requires
        if name not in layers
    ]
