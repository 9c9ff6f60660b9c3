"""Miniconda, for the people who work in the image: theirs to use, not to change."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.layers.conftest import Layer


@pytest.mark.parametrize("shell", ["sh -c", "bash -lc", "bash -euo pipefail -lc"])
def test_conda_answers(layer: Layer, shell: str) -> None:
    """`conda` is on PATH in every kind of shell, and tells its version."""
    assert re.fullmatch(r"conda \d+\.\d+\.\d+", layer.out(f"{shell} 'conda --version'"))
    assert layer.out(f"{shell} 'command -v conda'") == "/opt/conda/condabin/conda"


def test_environment_comes_first(layer: Layer) -> None:
    """Conda's own Python is on nobody's way: its folder of programs is not on PATH."""
    path = layer.out('printf %s "$PATH"').split(":")
    assert path[:3] == ["/opt/env/bin", "/opt/conda/condabin", "/opt/strata/bin"]
    assert "/opt/conda/bin" not in path


def test_channels(layer: Layer) -> None:
    """Only conda-forge is asked, strictly, and no channel whose terms must be accepted."""
    settings = layer.lines("cat /opt/conda/.condarc")
    assert {"channels: [conda-forge]", "channel_priority: strict", "default_channels: []"} <= set(
        settings
    )
    assert layer.out("stat --format '%U %a' /opt/conda/.condarc") == "root 644"


def test_closed_to_the_user(layer: Layer) -> None:
    """The user can read all of conda and change none of it."""
    assert layer.find("-writable ! -type l", "/opt/conda") == []
    assert layer.lines("find /opt/conda ! -readable") == []


def test_nothing_of_the_installer(layer: Layer) -> None:
    """Neither the installer nor its packages are in the image."""
    assert layer.find("-type f", "/opt/conda/pkgs") == []
    assert not layer.host.file("/tmp/miniconda.sh").exists  # noqa: S108
