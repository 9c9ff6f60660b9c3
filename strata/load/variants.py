"""Reads `locks/VARIANT/sources.toml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.errors import DefinitionError, Problem, closest
from strata.load.schema import SourcesFile, folders, read_toml
from strata.model import BootstrapBase, ImageBase, Variant
from strata.tags import validate_variant_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from strata.model import Layer


def load_variants(
    root: Path, layers: Mapping[str, Layer], problems: list[Problem]
) -> dict[str, Variant]:
    """Read every variant below `root`, adding what is wrong to `problems`."""
    variants: dict[str, Variant] = {}
    names = [folder.name for folder in folders(root / "layers")]
    for folder in folders(root / "locks"):
        where = f"locks/{folder.name}/sources.toml"
        file = read_toml(folder / "sources.toml", where, SourcesFile)
        if isinstance(file, list):
            problems += file
            continue
        try:
            validate_variant_name(folder.name, f"locks/{folder.name}")
        except DefinitionError as invalid:
            problems += invalid.problems
        base = _base(where, file, problems)
        problems += _left_out_problems(where, file.left_out, layers, names)
        if base is not None:
            variants[folder.name] = Variant(
                name=folder.name,
                folder=folder,
                platforms=tuple(file.platforms),
                epoch=file.epoch,
                base=base,
                args=file.args,
                left_out=file.left_out,
            )
    return variants


def _base(
    where: str, file: SourcesFile, problems: list[Problem]
) -> BootstrapBase | ImageBase | None:
    base = file.base
    if base.suite and not base.image and not base.digest:
        return BootstrapBase(suite=base.suite, include=tuple(base.include))
    if base.image and base.digest and not base.suite and not base.include:
        return ImageBase(image=base.image, digest=base.digest)
    problems.append(
        Problem(
            where=where,
            what="[base] is neither a Debian suite nor an image by digest",
            fix="give it `suite` (and `include`), or `image` and `digest`",
        )
    )
    return None


def _left_out_problems(
    where: str, left_out: Mapping[str, str], layers: Mapping[str, Layer], names: list[str]
) -> list[Problem]:
    unknown = [
        Problem(
            where=where,
            what=f'left_out: no layer "{name}"{closest(name, names)}',
            fix="./inv list shows every layer",
        )
        for name in left_out
        if name not in names
    ]
    return unknown + [
        Problem(
            where=where,
            what=f'left_out: "{layer.name}" requires "{name}", which is left out',
            fix=f'leave "{layer.name}" out too',
        )
        for layer in layers.values()
        for name in layer.requires
        if name in left_out and layer.name not in left_out
    ]
