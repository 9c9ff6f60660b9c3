"""Read what decides a solve: every layer's `environment.yml` and a variant's `pins.yml`."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from typing import TYPE_CHECKING

from strata.errors import DefinitionError, closest
from strata.lock.document import Document, shown
from strata.lock.model import ANY_VERSION, Environment, LockInputs
from strata.lock.reader import DefinitionReader
from strata.lock.urls import is_defaults, is_local, mask, secret_in, split

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

PINS_KEYS = (
    "accelerator",
    "channels",
    "minimum-driver",
    "pins",
    "platforms",
    "virtual-packages",
)
ENVIRONMENT_KEYS = ("dependencies", "cuda")
PLATFORMS = ("linux-64", "linux-aarch64")
ACCELERATORS = ("cpu", "cuda")
DRIVER = re.compile(r"[0-9]+(\.[0-9]+){1,2}\Z")
DEPENDENCY = re.compile(r"([^\s<>=!~\[]+)\s*(.*)\Z", re.DOTALL)
# Files beside pins.yml that decide what a channel made on the spot contains.
CHANNEL_SOURCES = ("names.toml", "wheels.txt")


def lock_inputs(
    environments: Mapping[str, Path],
    pins: Path,
    lacking: Mapping[str, tuple[str, ...]] | None = None,
) -> LockInputs:
    """Parse the files that decide a solve.

    `environments` maps a category to its `environment.yml`, from the lowest
    layer to the highest; `pins` is the variant's `pins.yml`; `lacking` names
    the categories that a platform (`linux-64`) has no part of.

    Raises `DefinitionError` with all problems of all files.
    """
    reader = _Reader()
    inputs = reader.inputs(environments, pins, lacking or {})
    if reader.problems:
        raise DefinitionError(*reader.problems)
    return inputs


class _Reader(DefinitionReader):
    """Reads the two kinds of files."""

    def environment(self, category: str, path: Path, accelerator: object) -> Environment:
        document = self.load(path)
        self.keys(document, document.data, ENVIRONMENT_KEYS)
        entries = [("dependencies", *one) for one in self._entries(document, "dependencies")]
        if "cuda" in document.data:
            beside = [("cuda", *one) for one in self._entries(document, "cuda")]
            entries += beside if accelerator == "cuda" else []
        dependencies: dict[str, str] = {}
        for key, index, entry in entries:
            where = document.where(key, index)
            found = DEPENDENCY.match(entry.strip()) if isinstance(entry, str) else None
            if found is None:
                self.add(where, f"{entry!r} is not a conda package", "write NAME or NAME SPEC")
                continue
            name, spec = found[1], " ".join(found[2].split()) or ANY_VERSION
            if self.is_name(where, name):
                if name in dependencies:
                    self.add(where, f"{name} stands twice", "keep one of the two")
                dependencies[name] = spec
                self.places[f"environment.{category}.{name}"] = where
        self.places[f"environment.{category}"] = shown(path)
        return Environment(category=category, path=path, dependencies=dependencies)

    def _entries(self, document: Document, key: str) -> list[tuple[int, object]]:
        return list(enumerate(self.entries(document, key)))

    def inputs(
        self,
        environments: Mapping[str, Path],
        path: Path,
        lacking: Mapping[str, tuple[str, ...]],
    ) -> LockInputs:
        document = self.load(path)
        accelerator = document.data.get("accelerator")
        layers = tuple(self.environment(*one, accelerator) for one in environments.items())
        self.keys(document, document.data, PINS_KEYS)
        self.one_of(document.where("accelerator"), "accelerator", accelerator, ACCELERATORS)
        platforms = self.entries(document, "platforms")
        for index, platform in enumerate(platforms):
            self.one_of(document.where("platforms", index), "platform", platform, PLATFORMS)
        channels = self._channels(document)
        pins = self.table(document, "pins", needed=False)
        for name in pins:
            self.is_name(document.where("pins", name), name)
        virtual = self._virtual(document, [str(platform) for platform in platforms])
        driver = self._driver(document, accelerator)
        for key in ("accelerator", "channels", "minimum-driver", "platforms"):
            self.places[key] = document.where(key)
        self.places["pins"] = shown(path)
        self.places["virtual-packages"] = document.where("virtual-packages")
        return LockInputs(
            environments=layers,
            pins=pins,
            channels=channels,
            platforms=tuple(str(platform) for platform in platforms),
            virtual_packages=virtual,
            accelerator=str(accelerator),
            minimum_driver=driver,
            lacking=lacking,
            sources=self._sources(path.parent),
            pins_path=path,
            places=self.places,
        )

    def _channels(self, document: Document) -> tuple[str, ...]:
        channels = self.entries(document, "channels")
        for index, channel in enumerate(channels):
            where = document.where("channels", index)
            if not isinstance(channel, str):
                self.add(where, f"{channel!r} is not a channel", "write a channel's name or URL")
            elif split(channel) is None:
                self.add(where, f'"{mask(channel)}" is no URL', "write a channel's name or URL")
            elif kind := secret_in(channel):
                self.add(
                    where,
                    f"channel {mask(channel)} carries {kind}",
                    "write it as an environment variable: https://$USER:$PASSWORD@host/channel",
                )
            elif is_defaults(channel):
                self.add(
                    where,
                    f'"{channel}" is one of the defaults channels, whose terms forbid this use',
                    "use conda-forge",
                )
            elif is_local(channel):
                self.add(
                    where,
                    f'"{channel}" exists on this machine only',
                    "name the channel's public URL; a folder is mapped to it when solving",
                )
        return tuple(str(channel) for channel in channels)

    def _virtual(self, document: Document, platforms: list[str]) -> dict[str, dict[str, str]]:
        section = self.mapping(document, "virtual-packages")
        tables: dict[str, dict[str, str]] = {}
        for platform in section:
            if platform not in platforms:
                self.add(
                    document.where("virtual-packages", platform),
                    f'"{platform}" is not one of the platforms{closest(str(platform), platforms)}',
                    f"the platforms here are: {', '.join(platforms)}",
                )
                continue
            tables[platform] = self.table(document, "virtual-packages", platform)
            for name in tables[platform]:
                if not name.startswith("__"):
                    self.add(
                        document.where("virtual-packages", platform, name),
                        f'"{name}" is not a virtual package',
                        "their names begin with two underscores: __glibc, __cuda",
                    )
        for platform in platforms:
            if platform not in section:
                self.add(
                    document.where("virtual-packages"),
                    f"says nothing of {platform}",
                    "name at least the __glibc that images of this platform have",
                )
        return tables

    def _driver(self, document: Document, accelerator: object) -> str:
        """Return the minimum driver, which a CUDA variant must declare and no other may."""
        driver = document.data.get("minimum-driver", "")
        where = document.where("minimum-driver")
        if accelerator == "cuda" and not (isinstance(driver, str) and DRIVER.match(driver)):
            self.add(
                where,
                '"minimum-driver" is missing, or is no version of NVIDIA\'s driver in quotes',
                'write the oldest one that its CUDA runs on, such as minimum-driver: "525.60.13"',
            )
        elif accelerator == "cpu" and driver:
            self.add(where, "a variant without CUDA needs no driver", "take minimum-driver out")
        return str(driver)

    def _sources(self, folder: Path) -> dict[str, str]:
        digests: dict[str, str] = {}
        for name in CHANNEL_SOURCES:
            path = folder / name
            if path.is_file():
                try:
                    digests[name] = _meaning(path)
                except ValueError as failure:
                    self.add(shown(path), str(failure), f"correct {shown(path)}")
                self.places[f"sources.{name}"] = shown(path)
        return digests


def _meaning(path: Path) -> str:
    """Return `sha256:…` of a file less its comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        meaning = json.dumps(tomllib.loads(text), sort_keys=True)
    else:
        lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
        meaning = "\n".join(line for line in lines if line)
    return f"sha256:{hashlib.sha256(meaning.encode()).hexdigest()}"
