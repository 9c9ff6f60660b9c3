"""The image's manifest beside what is installed."""

from __future__ import annotations

import json
import platform
from typing import TYPE_CHECKING, Any

import pytest

from ddp.manifest import Installed, disagreements, look_at_environment, look_at_manifest

if TYPE_CHECKING:
    from pathlib import Path

PACKAGES = [
    ("python", "3.11.2", "py311_0"),
    ("pytorch", "2.13.0", "cpu_py311_0"),
    ("numpy", "2.4.6", "py311_0"),
    ("typing-extensions", "4.16.0", "pyh123_0"),
    ("certifi", "2025.01.31", "pyhd8ed1ab_0"),
    ("tzdata", "2025b", "h78e105d_0"),
]
MANIFEST: dict[str, Any] = {
    "packages": [
        {"name": name, "version": version, "build": build, "layer": "30-pytorch"}
        for name, version, build in PACKAGES
    ]
}
RECORDS: dict[str, list[str]] = {"-".join(package): [] for package in PACKAGES}
METADATA = "lib/python3.11/site-packages/numpy-2.4.6.dist-info/METADATA"
GONE = f"numpy is not whole ({METADATA} is gone)"
VERSIONS = {
    "torch": ["2.13.0+cpu"],
    "numpy": ["2.4.6"],
    "typing-extensions": ["4.16.0"],
    "certifi": ["2025.1.31"],
    "tzdata": ["2025.2"],
}


def test_what_is_as_it_was_built_agrees() -> None:
    """Local versions, leading zeros and conda's own names are no difference."""
    assert disagreements(MANIFEST, Installed("3.11.2", VERSIONS, RECORDS)) == []


@pytest.mark.parametrize(
    ("python", "versions", "records", "expected"),
    [
        (
            "3.11.2",
            {**VERSIONS, "numpy": ["1.26.4"]},
            RECORDS,
            ["numpy is 1.26.4, the manifest says 2.4.6 (layer 30-pytorch)"],
        ),
        (
            "3.11.2",
            {**VERSIONS, "torch": ["2.13.0+cpu", "2.12.0"]},
            RECORDS,
            ["torch is there 2 times: 2.13.0+cpu, 2.12.0"],
        ),
        (
            "3.12.1",
            VERSIONS,
            RECORDS,
            ["python is 3.12.1, the manifest says 3.11.2 (layer 30-pytorch)"],
        ),
        (
            "3.11.2",
            VERSIONS,
            {name: gone for name, gone in RECORDS.items() if not name.startswith("tzdata")},
            ["conda has no record of tzdata, the manifest says 2025b (layer 30-pytorch)"],
        ),
        (
            "3.11.2",
            {name: found for name, found in VERSIONS.items() if name != "numpy"},
            RECORDS | {"numpy-2.4.6-py311_0": [METADATA]},
            [f"{GONE}, the manifest says 2.4.6 (layer 30-pytorch)"],
        ),
        (
            "3.11.2",
            {**VERSIONS, "numpy": ["1.26.4"]},
            RECORDS | {"numpy-2.4.6-py311_0": [METADATA]},
            ["numpy is 1.26.4, the manifest says 2.4.6 (layer 30-pytorch)"],
        ),
    ],
)
def test_what_was_changed_afterwards_is_named(
    python: str,
    versions: dict[str, list[str]],
    records: dict[str, list[str]],
    expected: list[str],
) -> None:
    """With both versions and the layer (case C8)."""
    assert disagreements(MANIFEST, Installed(python, versions, records)) == expected


def test_without_a_manifest_nothing_agrees(tmp_path: Path) -> None:
    """It is unknown, with a reason."""
    found = look_at_manifest(tmp_path / "none.json", tmp_path)
    assert found["agrees"] is None
    assert found["reason"] == f"there is no {tmp_path / 'none.json'}"


def test_another_python_is_not_the_images(tmp_path: Path) -> None:
    """Its packages are not compared."""
    manifest = tmp_path / "manifest.json"
    manifest.write_text(json.dumps(MANIFEST))
    found = look_at_manifest(manifest, tmp_path)
    assert found["agrees"] is None
    assert "the manifest is of" in found["reason"]


def test_the_running_python_is_looked_at(tmp_path: Path) -> None:
    """Its version, its distributions, and conda's records in the prefix."""
    record = tmp_path / "conda-meta/numpy-2.4.6-py311_0.json"
    record.parent.mkdir()
    record.write_text(json.dumps({"files": ["bin/f2py", METADATA]}))
    found = look_at_environment(tmp_path)
    assert found.python == platform.python_version()
    assert len(found.versions["pytest"]) == 1
    assert found.records == {"numpy-2.4.6-py311_0": [METADATA]}
    (tmp_path / METADATA).parent.mkdir(parents=True)
    (tmp_path / METADATA).touch()
    assert look_at_environment(tmp_path).records == {"numpy-2.4.6-py311_0": []}
