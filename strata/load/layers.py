"""Reads `layers/NN-name`."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import yaml

from strata.errors import Problem, closest
from strata.load.dockerfile import open_arguments, starts_from_parent
from strata.load.schema import LayerFile, folders, read_text, read_toml
from strata.model import Layer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

LAYER_NAME = re.compile(r"^[0-9]{2}-[a-z][a-z0-9-]*$")
# What the build itself mounts into every Dockerfile, by these names.
OWN_CONTEXTS = ("env", "installer", "parent", "rattler", "tools")
# libyaml is ten times as quick; not every platform's PyYAML has it.
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_layers(root: Path, problems: list[Problem]) -> dict[str, Layer]:
    """Read every layer below `root`, adding what is wrong to `problems`."""
    layers: dict[str, Layer] = {}
    names = [folder.name for folder in folders(root / "layers")]
    for folder in folders(root / "layers"):
        where = f"layers/{folder.name}"
        if not LAYER_NAME.match(folder.name):
            fix = "call it NN-name, such as 35-vision"
            problems.append(Problem(where=where, what="is no layer's name", fix=fix))
            continue
        text = _dockerfile(folder, where, problems)
        file = read_toml(folder / "layer.toml", f"{where}/layer.toml", LayerFile)
        if isinstance(file, list):
            problems += file
            continue
        _check_contexts(root, f"{where}/layer.toml", file, problems)
        _check_requires(f"{where}/layer.toml", file, names, problems)
        roots, cuda_roots = _roots(folder, where, file.category, problems)
        layers[folder.name] = Layer(
            name=folder.name,
            folder=folder,
            summary=file.summary,
            requires=tuple(file.requires),
            category=file.category,
            roots=roots,
            cuda_roots=cuda_roots,
            contexts=tuple(file.contexts),
            args=file.args,
            facts=file.facts,
            arguments=open_arguments(text),
            optional=file.optional,
            installer=file.installer,
        )
    _check_categories(layers, problems)
    return layers


def _dockerfile(folder: Path, where: str, problems: list[Problem]) -> str:
    text = read_text(folder / "Dockerfile", f"{where}/Dockerfile")
    if isinstance(text, Problem):
        problems.append(text)
        return ""
    if not starts_from_parent(text):
        problems.append(
            Problem(
                where=f"{where}/Dockerfile",
                what="does not start with `FROM parent`",
                fix="the plan says what the parent is: make `FROM parent` the first line",
            )
        )
    return text


def _check_contexts(root: Path, where: str, file: LayerFile, problems: list[Problem]) -> None:
    """Contexts are folders of the project, which Dockerfiles mount by their last names."""
    names: list[str] = list(OWN_CONTEXTS)
    for context in file.contexts:
        path = PurePosixPath(context)
        if path.is_absolute() or ".." in path.parts or not (root / path).is_dir():
            what = f'contexts: no folder "{context}" in the project'
            problems.append(Problem(where=where, what=what, fix="name a folder that is there"))
        elif path.name in names:
            what = f'contexts: "{context}" would be mounted as "{path.name}", which is taken'
            problems.append(Problem(where=where, what=what, fix="rename the folder"))
        names.append(path.name)


def _roots(
    folder: Path, where: str, category: str | None, problems: list[Problem]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that the layer asks for, and those that it asks for beside CUDA."""
    path = folder / "environment.yml"
    if (category is not None) != path.is_file():
        problems.append(
            Problem(
                where=where,
                what="a category and an environment.yml belong together, and one is missing",
                fix='write both, or neither: category = "…" in layer.toml names its slice',
            )
        )
        return (), ()
    if category is None:
        return (), ()
    data = _mapping(path, f"{where}/environment.yml", problems)
    if data is None:
        return (), ()
    place = f"{where}/environment.yml"
    return (
        _names(data.get("dependencies"), "dependencies", place, problems),
        _names(data.get("cuda", []), "cuda", place, problems),
    )


def _mapping(path: Path, where: str, problems: list[Problem]) -> dict[str, object] | None:
    text = read_text(path, where)
    if isinstance(text, Problem):
        problems.append(text)
        return None
    try:
        data = yaml.load(text, Loader=Loader)  # noqa: S506 - a safe loader
    except yaml.YAMLError as invalid:
        mark = getattr(invalid, "problem_mark", None)
        problems.append(
            Problem(
                where=f"{where}:{mark.line + 1}" if mark else where,
                what=f"invalid YAML: {getattr(invalid, 'problem', invalid)}",
                fix="correct that line",
            )
        )
        return None
    return data if isinstance(data, dict) else {}


def _names(value: object, key: str, where: str, problems: list[Problem]) -> tuple[str, ...]:
    if isinstance(value, list) and all(isinstance(name, str) for name in value):
        return tuple(re.split(r"[\s=<>!~]", name, maxsplit=1)[0] for name in value)
    problems.append(
        Problem(
            where=where,
            what=f"has no list `{key}` of conda names",
            fix=f"write `{key}:` and one `- name` a line",
        )
    )
    return ()


def _check_requires(where: str, file: LayerFile, names: list[str], problems: list[Problem]) -> None:
    problems += [
        Problem(
            where=where,
            what=f'requires: no layer "{name}"{closest(name, names)}',
            fix="./inv list shows every layer",
        )
        for name in file.requires
        if name not in names
    ]


def _check_categories(layers: Mapping[str, Layer], problems: list[Problem]) -> None:
    """Add a problem where two layers claim the same slice of the lock."""
    owners: dict[str, str] = {}
    for layer in layers.values():
        if layer.category in owners:
            problems.append(
                Problem(
                    where=f"layers/{layer.name}/layer.toml",
                    what=f'category: "{layer.category}" is that of {owners[layer.category]}',
                    fix="give each layer with an environment.yml a category of its own",
                )
            )
        elif layer.category is not None:
            owners[layer.category] = layer.name
