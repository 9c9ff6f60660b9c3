"""What a lock is made of: its inputs, and the packages that were solved from them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

INPUTS_SCHEMA = "strata.lock-inputs/1"
PACKAGES_SCHEMA = "strata.lock-packages/1"
ANY_VERSION = "*"


@dataclass(frozen=True, kw_only=True)
class Environment:
    """One layer's `environment.yml`: the packages that it asks for, and their specs.

    Those that it asks for where the accelerator is CUDA are among them there.
    """

    category: str
    path: Path
    dependencies: Mapping[str, str]

    @property
    def roots(self) -> tuple[str, ...]:
        """Names of the packages that the layer asks for, sorted."""
        return tuple(sorted(self.dependencies))


@dataclass(frozen=True, kw_only=True)
class LockInputs:
    """All that decides a solve, parsed.

    `environments` goes from the lowest layer to the highest.  `sources` holds
    a digest of each file that decides what the channel itself contains, where
    the channel is made on the spot.  `minimum_driver` is the oldest NVIDIA driver
    that the environments must run on, empty without CUDA.  `lacking` names the
    categories that a platform has no part of.  `places` says where each fact was read
    (`file:line`); it takes no part in comparisons nor in the digest.
    """

    environments: tuple[Environment, ...]
    pins: Mapping[str, str]
    channels: tuple[str, ...]
    platforms: tuple[str, ...]
    virtual_packages: Mapping[str, Mapping[str, str]]
    accelerator: str
    minimum_driver: str
    lacking: Mapping[str, tuple[str, ...]]
    sources: Mapping[str, str]
    pins_path: Path
    places: Mapping[str, str] = field(compare=False, repr=False)

    @property
    def categories(self) -> tuple[str, ...]:
        """One category per layer, from the lowest layer to the highest."""
        return tuple(environment.category for environment in self.environments)

    def on(self, platform: str) -> tuple[Environment, ...]:
        """Return the layers that a platform has, from the lowest to the highest."""
        lacking = self.lacking.get(platform, ())
        return tuple(one for one in self.environments if one.category not in lacking)

    def facts(self) -> dict[str, str]:
        """Return the inputs as a flat table, in which two solves can be compared."""
        table = {
            "accelerator": self.accelerator,
            "categories": " ".join(self.categories),
            "channels": " ".join(self.channels),
            "platforms": " ".join(sorted(self.platforms)),
        }
        if self.minimum_driver:
            table["minimum-driver"] = self.minimum_driver
        for platform, categories in self.lacking.items():
            if categories:
                table[f"lacking.{platform}"] = " ".join(categories)
        for environment in self.environments:
            for name, spec in environment.dependencies.items():
                table[f"environment.{environment.category}.{name}"] = spec
        for name, spec in self.pins.items():
            table[f"pins.{name}"] = spec
        for name, digest in self.sources.items():
            table[f"sources.{name}"] = digest
        for platform, virtual in self.virtual_packages.items():
            for name, version in virtual.items():
                table[f"virtual-packages.{platform}.{name}"] = version
        return dict(sorted(table.items()))


def facts_digest(facts: Mapping[str, str]) -> str:
    """Return `sha256:…` of a table of facts."""
    text = json.dumps({"schema": INPUTS_SCHEMA, "facts": dict(facts)}, sort_keys=True)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def inputs_digest(inputs: LockInputs) -> str:
    """Return `sha256:…` over what the inputs mean.

    Comments, order and white space in the files don't change it.
    """
    return facts_digest(inputs.facts())


def packages_digest(packages: Iterable[tuple[str, str, str, str]]) -> str:
    """Return `sha256:…` of a lock's packages, in whatever order.

    Each is its platform, name, URL and sha256 (64 hex digits).
    """
    document = {"schema": PACKAGES_SCHEMA, "packages": sorted(packages)}
    return f"sha256:{hashlib.sha256(json.dumps(document).encode()).hexdigest()}"


@dataclass(frozen=True, kw_only=True)
class LockedPackage:
    """One package of a lock, for one platform.

    `build` is read from the file name; `sha256` and `md5` are lower-case hex
    digits, empty where the lock has none (`check_lock` refuses that).  `size` is
    what is downloaded, in bytes; None where the channel did not say.
    """

    name: str
    version: str
    build: str
    platform: str
    category: str
    url: str
    filename: str
    sha256: str
    md5: str
    dependencies: tuple[str, ...]
    size: int | None = None

    @property
    def subdir(self) -> str:
        """The channel's folder that holds the package: a platform, or `noarch`."""
        return self.url.rsplit("/", 2)[-2]


@dataclass(frozen=True, kw_only=True)
class Lock:
    """A read `conda-lock.yml`.

    `inputs_digest` and `packages_digest` are what it says of itself; they are empty
    and `facts` has no entries in a lock that strata did not write.
    """

    path: Path
    packages: tuple[LockedPackage, ...]
    channels: tuple[str, ...]
    platforms: tuple[str, ...]
    inputs_digest: str
    facts: Mapping[str, str]
    packages_digest: str = ""

    @property
    def accelerator(self) -> str:
        """`cpu` or `cuda`: what the lock was solved for."""
        return self.facts.get("accelerator", "")

    @property
    def minimum_driver(self) -> str:
        """The oldest NVIDIA driver that the environments run on; empty without CUDA."""
        return self.facts.get("minimum-driver", "")

    def on(self, platform: str) -> dict[str, LockedPackage]:
        """Return the packages of one platform by name."""
        return {package.name: package for package in self.packages if package.platform == platform}
