"""Fixtures of the tests that run the real pip, rattler and conda-lock on small packages."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


class WheelMaker(Protocol):
    """Writes a small wheel, by the wheel specification, and returns its path."""

    def __call__(
        self,
        folder: Path,
        name: str,
        version: str = "1.0",
        *,
        metadata: str = "",
        files: Mapping[str, str] | None = None,
        executable: frozenset[str] = frozenset(),
    ) -> Path:
        """Write it with these extra metadata lines and files."""


@pytest.fixture
def make_wheel() -> WheelMaker:
    """Return a maker of small wheels, pure Python ones."""

    def make(
        folder: Path,
        name: str,
        version: str = "1.0",
        *,
        metadata: str = "",
        files: Mapping[str, str] | None = None,
        executable: frozenset[str] = frozenset(),
    ) -> Path:
        info = f"{name}-{version}.dist-info"
        content = {
            f"{name}/__init__.py": f"NAME = '{name}'\n",
            f"{info}/METADATA": (
                f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}"
            ),
            f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            **(files or {}),
        }
        content[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in content)
        folder.mkdir(parents=True, exist_ok=True)
        wheel = folder / f"{name}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            for path, text in content.items():
                entry = zipfile.ZipInfo(path)
                entry.external_attr = (0o100755 if path in executable else 0o100640) << 16
                archive.writestr(entry, text)
        return wheel

    return make
