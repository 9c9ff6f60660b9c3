"""Read what decides a solve: every layer's `environment.yml` and a variant's `pins.yml`."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from typing import TYPE_CHECKING

from strata.errors import DefinitionError, Problem, closest
from strata.lock.document import Document, load, shown, unknown_keys
from strata.lock.model import ANY_VERSION, Environment, LockInputs
from strata.lock.urls import is_defaults, is_local, mask, secret_in

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
NAME = re.compile(r"[a-z0-9_][a-z0-9_.-]*\Z")
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


class _Reader:
    """Reads the files and keeps the problems and places that it meets."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.places: dict[str, str] = {}

    def environment(self, category: str, path: Path, accelerator: object) -> Environment:
        document = self._load(path)
        self._keys(document, document.data, ENVIRONMENT_KEYS)
        entries = [("dependencies", *one) for one in self._entries(document, "dependencies")]
        if "cuda" in document.data:
            beside = [("cuda", *one) for one in self._entries(document, "cuda")]
            entries += beside if accelerator == "cuda" else []
        dependencies: dict[str, str] = {}
        for key, index, entry in entries:
            where = document.where(key, index)
            found = DEPENDENCY.match(entry.strip()) if isinstance(entry, str) else None
            if found is None:
                self._add(where, f"{entry!r} is not a conda package", "write NAME or NAME SPEC")
                continue
            name, spec = found[1], " ".join(found[2].split()) or ANY_VERSION
            if self._is_name(where, name):
                if name in dependencies:
                    self._add(where, f"{name} stands twice", "keep one of the two")
                dependencies[name] = spec
                self.places[f"environment.{category}.{name}"] = where
        self.places[f"environment.{category}"] = shown(path)
        return Environment(category=category, path=path, dependencies=dependencies)

    def _entries(self, document: Document, key: str) -> list[tuple[int, object]]:
        return list(enumerate(self._list(document, key)))

    def inputs(
        self,
        environments: Mapping[str, Path],
        path: Path,
        lacking: Mapping[str, tuple[str, ...]],
    ) -> LockInputs:
        document = self._load(path)
        accelerator = document.data.get("accelerator")
        layers = tuple(self.environment(*one, accelerator) for one in environments.items())
        self._keys(document, document.data, PINS_KEYS)
        self._one_of(document.where("accelerator"), "accelerator", accelerator, ACCELERATORS)
        platforms = self._list(document, "platforms")
        for index, platform in enumerate(platforms):
            self._one_of(document.where("platforms", index), "platform", platform, PLATFORMS)
        channels = self._channels(document)
        pins = self._table(document, "pins", needed=False)
        for name in pins:
            self._is_name(document.where("pins", name), name)
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

    def _load(self, path: Path) -> Document:
        document = load(path, error=DefinitionError, fix=f"correct {shown(path)}")
        self.problems += document.twice()
        if not isinstance(document.data, dict):
            raise DefinitionError.at(
                document.where(), "is not a mapping", f"write KEY: VALUE lines in {shown(path)}"
            )
        return document

    def _channels(self, document: Document) -> tuple[str, ...]:
        channels = self._list(document, "channels")
        for index, channel in enumerate(channels):
            where = document.where("channels", index)
            if not isinstance(channel, str):
                self._add(where, f"{channel!r} is not a channel", "write a channel's name or URL")
            elif kind := secret_in(channel):
                self._add(
                    where,
                    f"channel {mask(channel)} carries {kind}",
                    "write it as an environment variable: https://$USER:$PASSWORD@host/channel",
                )
            elif is_defaults(channel):
                self._add(
                    where,
                    f'"{channel}" is one of the defaults channels, whose terms forbid this use',
                    "use conda-forge",
                )
            elif is_local(channel):
                self._add(
                    where,
                    f'"{channel}" exists on this machine only',
                    "name the channel's public URL; a folder is mapped to it when solving",
                )
        return tuple(str(channel) for channel in channels)

    def _virtual(self, document: Document, platforms: list[str]) -> dict[str, dict[str, str]]:
        section = self._mapping(document, "virtual-packages")
        tables: dict[str, dict[str, str]] = {}
        for platform in section:
            if platform not in platforms:
                self._add(
                    document.where("virtual-packages", platform),
                    f'"{platform}" is not one of the platforms{closest(str(platform), platforms)}',
                    f"the platforms here are: {', '.join(platforms)}",
                )
                continue
            tables[platform] = self._table(document, "virtual-packages", platform)
            for name in tables[platform]:
                if not name.startswith("__"):
                    self._add(
                        document.where("virtual-packages", platform, name),
                        f'"{name}" is not a virtual package',
                        "their names begin with two underscores: __glibc, __cuda",
                    )
        for platform in platforms:
            if platform not in section:
                self._add(
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
            self._add(
                where,
                '"minimum-driver" is missing, or is no version of NVIDIA\'s driver in quotes',
                'write the oldest one that its CUDA runs on, such as minimum-driver: "525.60.13"',
            )
        elif accelerator == "cpu" and driver:
            self._add(where, "a variant without CUDA needs no driver", "take minimum-driver out")
        return str(driver)

    def _table(self, document: Document, *keys: str, needed: bool = True) -> dict[str, str]:
        """Return a mapping of texts; a number is refused, since YAML reads 3.10 as 3.1."""
        data = document.data
        for key in keys:
            data = data.get(key) if isinstance(data, dict) else None
        if data is None and not needed:
            return {}
        if not isinstance(data, dict):
            self._add(document.where(*keys), "is not a mapping", "write NAME: VERSION lines")
            return {}
        for name, value in data.items():
            if not isinstance(value, str):
                place = ".".join((*keys, str(name)))
                self._add(
                    document.where(*keys, name),
                    f"{place} is read as {value!r}, not as text",
                    "put quotes around the value",
                )
            self.places[".".join((*keys, str(name)))] = document.where(*keys, name)
        return {str(name): " ".join(str(value).split()) for name, value in data.items()}

    def _list(self, document: Document, key: str) -> list[object]:
        value = document.data.get(key)
        if isinstance(value, list) and value:
            return value
        self._lacks(document, key, "a list (- ENTRY lines)")
        return []

    def _mapping(self, document: Document, key: str) -> dict[str, object]:
        value = document.data.get(key)
        if isinstance(value, dict) and value:
            return value
        self._lacks(document, key, "a mapping (KEY: VALUE lines)")
        return {}

    def _lacks(self, document: Document, key: str, shape: str) -> None:
        what = "is empty or of the wrong kind" if key in document.data else "is missing"
        self._add(document.where(key), f'"{key}" {what}', f"write {shape} there")

    def _sources(self, folder: Path) -> dict[str, str]:
        digests: dict[str, str] = {}
        for name in CHANNEL_SOURCES:
            path = folder / name
            if path.is_file():
                try:
                    digests[name] = _meaning(path)
                except ValueError as failure:
                    self._add(shown(path), str(failure), f"correct {shown(path)}")
                self.places[f"sources.{name}"] = shown(path)
        return digests

    def _keys(self, document: Document, data: object, known: tuple[str, ...]) -> None:
        self.problems += unknown_keys(document, data, known)

    def _one_of(self, where: str, kind: str, value: object, known: tuple[str, ...]) -> None:
        if value not in known:
            what = f"{kind} {value!r} is not known{closest(str(value), known)}"
            self._add(where, what, f"write one of: {', '.join(known)}")

    def _is_name(self, where: str, name: str) -> bool:
        if NAME.match(name) and not name.startswith("__"):
            return True
        self._add(
            where,
            f'"{mask(name)}" is not the name of a conda package',
            "write its name in small letters, with no channel before it",
        )
        return False

    def _add(self, where: str, what: str, fix: str) -> None:
        self.problems.append(Problem(where=where, what=what, fix=fix))


def _meaning(path: Path) -> str:
    """Return `sha256:…` of a file less its comments."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".toml":
        meaning = json.dumps(tomllib.loads(text), sort_keys=True)
    else:
        lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
        meaning = "\n".join(line for line in lines if line)
    return f"sha256:{hashlib.sha256(meaning.encode()).hexdigest()}"
