"""`locks/README.md`: what every variant holds, read from the locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.lock.accelerator import cuda_version
from strata.lock.changes import download, downloads
from strata.lock.read import read_lock
from strata.lock.report import NOTHING, markdown_table
from strata.model import PLATFORMS, BootstrapBase

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from strata.lock.model import Lock, LockedPackage
    from strata.model import Project, Variant

NAME = "README.md"
INTRODUCTION = """\
# Locks

<!-- Written by `./inv lock` from the locks below. Don't edit. -->

One folder a variant: a set of pins under the same layers. `sources.toml` pins the base and the
installer, `pins.yml` says what to solve for, `conda-lock.yml` holds the packages of every layer by
hash. [docs/variants.md](../docs/variants.md) says how to add one.
"""
VERSIONS = ("variant", "platform", "base", "Python", "PyTorch", "CUDA", "cuDNN", "NCCL", "driver")
EXPLAINED = """\
`driver` is the oldest NVIDIA driver that the images run on. Downloads are those of each layer's
packages, compressed; `at least` leaves out packages whose size the channel did not say.
"""


def overview(project: Project) -> str:
    """Return the page for all variants that have a lock.

    Raises `LockError` for a lock that can't be read.
    """
    locked = [
        (variant, read_lock(variant.lock))
        for variant in project.variants.values()
        if variant.lock.is_file()
    ]
    categories = [layer.category for layer in project.layers.values() if layer.category]
    columns = ("variant", "platform", *categories, "total", "packages")
    pairs = [(v, lock, platform) for v, lock in locked for platform in v.platforms]
    lines = [INTRODUCTION]
    lines += markdown_table(VERSIONS, [_versions(*pair) for pair in pairs])
    lines += ["", *markdown_table(columns, [_downloads(*pair, categories) for pair in pairs])]
    lines += ["", EXPLAINED]
    if reasons := [line for variant, _ in locked for line in _left_out(variant)]:
        lines += ["## Left out", "", *reasons, ""]
    return "\n".join(lines)


def write_overview(project: Project, folder: Path) -> bool:
    """Write the page into a folder; return whether that changed it."""
    path, text = folder / NAME, overview(project)
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return False
    path.write_text(text, encoding="utf-8")
    return True


def _versions(variant: Variant, lock: Lock, platform: str) -> tuple[str, ...]:
    packages = lock.on(PLATFORMS[platform])
    base = variant.base
    return (
        variant.name,
        platform,
        f"Debian {base.suite}" if isinstance(base, BootstrapBase) else base.image.split("/")[-1],
        _version(packages, "python"),
        _version(packages, "pytorch"),
        cuda_version(packages) or NOTHING,
        _version(packages, "libcudnn", "cudnn"),
        _version(packages, "nccl"),
        lock.minimum_driver or NOTHING,
    )


def _version(packages: Mapping[str, LockedPackage], *names: str) -> str:
    return next((packages[name].version for name in names if name in packages), NOTHING)


def _downloads(
    variant: Variant, lock: Lock, platform: str, categories: list[str]
) -> tuple[str, ...]:
    layers = downloads(lock)
    subdir = PLATFORMS[platform]
    total = download(lock.on(subdir).values())
    cells = [str(layers.get((subdir, category), NOTHING)) for category in categories]
    return (variant.name, platform, *cells, str(total), str(total.packages))


def _left_out(variant: Variant) -> list[str]:
    lines = [f"- {variant.name}: {name}: {why}" for name, why in variant.left_out.items()]
    for platform, left_out in variant.left_out_on.items():
        lines += [f"- {variant.name} on {platform}: {n}: {why}" for n, why in left_out.items()]
    return lines
