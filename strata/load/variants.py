"""Reads `locks/VARIANT/sources.toml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.errors import DefinitionError, Problem, closest
from strata.load.schema import SourcesFile, folders, read_toml
from strata.lock.urls import mask, secret_in
from strata.model import BootstrapBase, ImageBase, Installer, Variant
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
        problems += _left_out_problems(where, file, layers, names)
        problems += _installer_problems(where, file, layers)
        if base is not None:
            variants[folder.name] = Variant(
                name=folder.name,
                folder=folder,
                platforms=tuple(file.platforms),
                epoch=file.epoch,
                base=base,
                installer=Installer(url=file.installer.url, sha256=file.installer.sha256)
                if file.installer
                else None,
                args=file.args,
                left_out=file.left_out,
                left_out_on=file.left_out_on,
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
    where: str, file: SourcesFile, layers: Mapping[str, Layer], names: list[str]
) -> list[Problem]:
    """Return what is wrong with the layers that are left out, everywhere or on a platform."""
    problems = [
        Problem(
            where=where,
            what=f'left_out_on: "{platform}" is not one of the platforms'
            + closest(platform, file.platforms),
            fix=f"the platforms here are {', '.join(file.platforms)}",
        )
        for platform in file.left_out_on
        if platform not in file.platforms
    ]
    tables = {"left_out": file.left_out}
    tables |= {f'left_out_on."{name}"': table for name, table in file.left_out_on.items()}
    for key, table in tables.items():
        problems += [
            Problem(
                where=where,
                what=f'{key}: no layer "{name}"{closest(name, names)}',
                fix="./inv list shows every layer",
            )
            for name in table
            if name not in names
        ]
        problems += [
            Problem(
                where=where,
                what=f'{key}: "{layer.name}" requires "{name}", which is left out',
                fix=f'leave "{layer.name}" out too',
            )
            for layer in layers.values()
            for name in layer.requires
            if name in table and layer.name not in {**file.left_out, **table}
        ]
    return problems


def _installer_problems(
    where: str, file: SourcesFile, layers: Mapping[str, Layer]
) -> list[Problem]:
    """Return what is wrong with the installer, or with a layer that needs one and has none."""
    if file.installer is None:
        return [
            Problem(
                where=where,
                what=f'"{layer.name}" needs an installer, and there is no [installer]',
                fix=f'write [installer], or leave "{layer.name}" out',
            )
            for layer in layers.values()
            if layer.installer and layer.name not in file.left_out
        ]
    problems = []
    if kind := secret_in(file.installer.url):
        problems.append(
            Problem(
                where=where,
                what=f"installer.url: {mask(file.installer.url)} carries {kind}",
                fix="write the public address",
            )
        )
    pinned = file.installer.sha256
    problems += [
        Problem(
            where=where,
            what=f"installer.sha256: says nothing of {platform}",
            fix=f'write "{platform}" = "unset" there, then ./inv pin',
        )
        for platform in file.platforms
        if platform not in pinned
    ]
    problems += [
        Problem(
            where=where,
            what=f'installer.sha256: "{platform}" is not one of the platforms'
            + closest(platform, file.platforms),
            fix=f"the platforms here are {', '.join(file.platforms)}",
        )
        for platform in pinned
        if platform not in file.platforms
    ]
    return problems
