"""The frozen values that the definitions become: layers, images, variants."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# Stands where a digest will stand once `./inv pin` has asked for it.
UNSET = "unset"
# Each platform as conda calls it.
PLATFORMS = {"linux/amd64": "linux-64", "linux/arm64": "linux-aarch64"}
# Each platform's machine, as the names of Miniconda's installers have it.
MACHINES = {"linux/amd64": "x86_64", "linux/arm64": "aarch64"}


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One step of an image: a folder `layers/NN-name`.

    `roots` are the conda names of its `environment.yml`, `cuda_roots` those that it
    asks for beside them where the accelerator is CUDA; `contexts` are folders
    of the project that its Dockerfile mounts by their last name; `arguments`
    are the ARGs that its Dockerfile declares without a default.  An image that
    lists an `optional` layer is still that image where a variant leaves the
    layer out.  `installer` says that its Dockerfile mounts the variant's
    installer.
    """

    name: str
    folder: Path
    summary: str
    requires: tuple[str, ...] = ()
    category: str | None = None
    roots: tuple[str, ...] = ()
    cuda_roots: tuple[str, ...] = ()
    contexts: tuple[str, ...] = ()
    args: Mapping[str, str]
    facts: Mapping[str, str]
    arguments: tuple[str, ...] = ()
    optional: bool = False
    installer: bool = False


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
    """A base pulled from a registry: the digest binds, the reference is for people.

    `digest` is `sha256:…`, or `UNSET`.
    """

    image: str
    digest: str


@dataclass(frozen=True, kw_only=True)
class Installer:
    """Miniconda's installer: where it is, and what it must be.

    `url` may hold `{arch}`, which stands for the machine as Miniconda names it;
    `sha256` maps each platform of the variant to 64 hex digits, or to `UNSET`.
    """

    url: str
    sha256: Mapping[str, str]

    def url_for(self, platform: str) -> str:
        """Return where the installer of a platform (`linux/amd64`) is."""
        return self.url.replace("{arch}", MACHINES[platform])


@dataclass(frozen=True, kw_only=True)
class Variant:
    """A set of pins: a folder `locks/VARIANT`.

    `epoch` (seconds since 1970, UTC) is the newest time that a file of its
    images carries; `left_out` names the layers it cannot have, and why;
    `left_out_on` does so for one platform each.
    """

    name: str
    folder: Path
    platforms: tuple[str, ...]
    epoch: int
    base: BootstrapBase | ImageBase
    installer: Installer | None = None
    args: Mapping[str, str]
    left_out: Mapping[str, str]
    left_out_on: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def without(self, platform: str) -> dict[str, str]:
        """Return the layers that are left out on a platform, each with its reason."""
        return {**self.left_out, **self.left_out_on.get(platform, {})}

    @property
    def pins(self) -> Path:
        """The file with the versions that decide the solve."""
        return self.folder / "pins.yml"

    @property
    def lock(self) -> Path:
        """The lock, in conda-lock's unified format."""
        return self.folder / "conda-lock.yml"

    @property
    def unset(self) -> tuple[str, ...]:
        """Keys of `sources.toml` whose value is not pinned yet: nothing can be built from them."""
        keys = []
        if isinstance(self.base, ImageBase) and self.base.digest == UNSET:
            keys.append("base.digest")
        if self.installer:
            pins = self.installer.sha256.items()
            keys += [f'installer.sha256."{name}"' for name, value in pins if value == UNSET]
        return tuple(keys)


@dataclass(frozen=True, kw_only=True)
class Project:
    """All definitions, each by its name, in reading order."""

    root: Path
    layers: Mapping[str, Layer]
    images: Mapping[str, Image]
    variants: Mapping[str, Variant]

    def environments(self, variant: Variant | None = None) -> dict[str, Path]:
        """Return each category's `environment.yml`, lowest layer first.

        The layers that `variant` leaves out have no part in its lock.
        """
        left_out = variant.left_out if variant else {}
        return {
            layer.category: layer.folder / "environment.yml"
            for layer in self.layers.values()
            if layer.category and layer.name not in left_out
        }

    def lacking(self, variant: Variant) -> dict[str, tuple[str, ...]]:
        """Return the categories that a variant lacks on one platform only.

        Platforms go by conda's names (`linux-aarch64`).
        """
        return {
            PLATFORMS[platform]: tuple(
                layer.category
                for layer in self.layers.values()
                if layer.category and layer.name in left_out and layer.name not in variant.left_out
            )
            for platform, left_out in variant.left_out_on.items()
        }
