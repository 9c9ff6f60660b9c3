"""Whether what is installed is what the image's manifest says."""

from __future__ import annotations

import json
import platform
import re
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MANIFEST = Path("/opt/strata/manifest.json")
PREFIX = Path("/opt/env")
METADATA = ".dist-info/METADATA"
# conda's names of packages that have another one in Python.
PYTHON_NAMES = {"pytorch": "torch"}
# Builds of Python packages: py311_0, pyhd8ed1ab_0, cuda129_mkl_py311_h0_1.
PYTHON_BUILD = re.compile(r"(^|_)py(h|\d)")


@dataclass(frozen=True)
class Installed:
    """What is in an environment.

    `versions` holds, by normalised name, the version of every distribution in
    the order of `sys.path`: the first is the one that is imported.  `records` are
    conda's names of packages, as NAME-VERSION-BUILD, each with the metadata of
    Python's packages that it has brought and that are gone.
    """

    python: str
    versions: Mapping[str, Sequence[str]]
    records: Mapping[str, Sequence[str]]


def look_at_manifest(file: Path = MANIFEST, prefix: Path = PREFIX) -> dict[str, Any]:
    """Return how the running Python agrees with the manifest, for the report's facts.

    `agrees` is None where there is nothing to compare, with the `reason`.
    """
    if not file.is_file():
        return {"agrees": None, "reason": f"there is no {file}", "disagreements": []}
    if Path(sys.prefix) != prefix:
        reason = f"this Python is of {sys.prefix}, the manifest is of {prefix}"
        return {"agrees": None, "reason": reason, "disagreements": []}
    found = disagreements(json.loads(file.read_text()), look_at_environment(prefix))
    return {"agrees": not found, "reason": None, "disagreements": found}


def look_at_environment(prefix: Path) -> Installed:
    """Return what the running Python finds, and what conda has noted in `prefix`."""
    versions: dict[str, list[str]] = {}
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        versions.setdefault(normalised(name), []).append(distribution.version)
    records = {file.stem: _gone(prefix, file) for file in prefix.glob("conda-meta/*.json")}
    return Installed(platform.python_version(), versions, records)


def _gone(prefix: Path, record: Path) -> list[str]:
    """Return which metadata that a record of conda's lists is not there any more."""
    files = json.loads(record.read_text())["files"]
    metadata_files = sorted(file for file in files if file.endswith(METADATA))
    return [file for file in metadata_files if not (prefix / file).exists()]


def disagreements(manifest: Mapping[str, Any], installed: Installed) -> list[str]:
    """Return one sentence for each package that is not as the manifest says."""
    found = []
    for package in manifest["packages"]:
        name, version, layer = package["name"], package["version"], package["layer"]
        said = f"the manifest says {version} (layer {layer})"
        record = f"{name}-{version}-{package['build']}"
        if record not in installed.records:
            found.append(f"conda has no record of {name}, {said}")
        changes: list[str] = []
        if name == "python":
            if _comparable(installed.python) != _comparable(version):
                changes = [f"python is {installed.python}, {said}"]
        elif PYTHON_BUILD.search(package["build"]):
            changes = _compare(PYTHON_NAMES.get(name, name), version, said, installed)
        # Another version replaces the metadata, too: then that is said already.
        if not changes and installed.records.get(record):
            changes = [f"{name} is not whole ({installed.records[record][0]} is gone), {said}"]
        found += changes
    return found


def _compare(name: str, version: str, said: str, installed: Installed) -> list[str]:
    versions = installed.versions.get(normalised(name), ())
    found = []
    if versions and _comparable(versions[0]) != _comparable(version):
        found.append(f"{name} is {versions[0]}, {said}")
    if len(versions) > 1:
        found.append(f"{name} is there {len(versions)} times: {', '.join(versions)}")
    return found


def normalised(name: str) -> str:
    """Return the name as PEP 503 compares names."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _comparable(version: str) -> list[str]:
    # PEP 440 drops leading zeros (2025.01.31 is 2025.1.31), and conda the local part.
    return [part.lstrip("0") or "0" for part in version.partition("+")[0].split(".")]
