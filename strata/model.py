"""The frozen values that the definitions become: layers, images, variants."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One step of an image: a folder `layers/NN-name`.

    `roots` are the conda names of its `environment.yml`; `contexts` are folders
    of the project that its Dockerfile mounts by their last name; `arguments`
    are the ARGs that its Dockerfile declares without a default.
    """

    name: str
    folder: Path
    summary: str
    requires: tuple[str, ...] = ()
    category: str | None = None
    roots: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    args: Mapping[str, str]
    facts: Mapping[str, str]
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Image:
    """One product: an ordered list of layers, and the checks it must pass."""

    name: str
    summary: str
    layers: tuple[str, ...]
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BootstrapBase:
    """A base made on the spot from a Debian mirror by mmdebstrap."""

    suite: str
    include: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ImageBase:
    """A base pulled from a registry: the digest binds, the reference is for people."""

    image: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A set of pins: a folder `locks/VARIANT`.

    `epoch` (seconds since 1970, UTC) is the newest time that a file of its
    images carries; `left_out` names the layers it cannot have, and why.
    """

    name: str
    folder: Path
    platforms: tuple[str, ...]
    epoch: int
    base: BootstrapBase | ImageBase
    args: Mapping[str, str]
    left_out: Mapping[str, str]

    @property
    def pins(self) -> Path:
        """The file with the versions that decide the solve."""
        return self.folder / "pins.yml"

    @property
    def lock(self) -> Path:
        """The lock, in conda-lock's unified format."""
        return self.folder / "conda-lock.yml"


@dataclass(frozen=True, kw_only=True)
class Project:
    """All definitions, each by its name, in reading order."""

    root: Path
    layers: Mapping[str, Layer]
    images: Mapping[str, Image]
    variants: Mapping[str, Variant]

    def environments(self) -> dict[str, Path]:
        """Return each category's `environment.yml`, lowest layer first."""
        return {
            layer.category: layer.folder / "environment.yml"
            for layer in self.layers.values()
            if layer.category
        }
