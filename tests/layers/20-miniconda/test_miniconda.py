"""Miniconda, for the people who work in the image: theirs to use, not to change."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.layers.conftest import Layer


@pytest.mark.parametrize("shell", ["sh -c", "bash -lc", "bash -euo pipefail -lc"])
def test_conda_answers(layer: Layer, shell: str) -> None:
    """`conda` is on PATH in every kind of shell, and tells its version."""
    assert re.fullmatch(r"conda \d+\.\d+\.\d+", layer.out(f"{shell} 'conda --version'"))


def test_environment_comes_first(layer: Layer) -> None:
    """Conda's own Python is on nobody's way: its folder of programs is not on PATH."""
    assert layer.out("command -v conda") == "/opt/conda/condabin/conda"
    path = layer.out('printf %s "$PATH"').split(":")
    assert path[:3] == ["/opt/env/bin", "/opt/conda/condabin", "/opt/strata/bin"]
    assert "/opt/conda/bin" not in path


DOORS = [
    "bash -c",
    "bash -euo pipefail -c",
    "bash -lc",
    "bash -euo pipefail -lc",
    "sh -lc",
    "2>/dev/null bash -ic",  # it complains that it has no terminal
]


@pytest.mark.parametrize("shell", DOORS)
def test_activate(layer: Layer, shell: str) -> None:
    """`conda activate` works in every kind of shell without a word of preparation."""
    script = "conda activate base && echo $CONDA_PREFIX && command -v python"
    assert layer.lines(f"{shell} '{script}'") == ["/opt/conda", "/opt/conda/bin/python"]


@pytest.mark.parametrize("shell", DOORS)
def test_environment_by_name(layer: Layer, shell: str) -> None:
    """The image's environment is active from the start, and conda knows it as `env`."""
    assert layer.out(f"{shell} 'echo $CONDA_SHLVL $CONDA_DEFAULT_ENV $CONDA_PREFIX'") == (
        "1 env /opt/env"
    )
    script = "conda activate env && echo $CONDA_PREFIX && command -v python"
    assert layer.lines(f"{shell} '{script}'") == ["/opt/env", "/opt/env/bin/python"]


@pytest.mark.parametrize("shell", ["bash -c", "bash -lc", "sh -lc"])
def test_shells_export_nothing_more(layer: Layer, shell: str) -> None:
    """What conda's file exports is the image's own environment: every door has the same."""
    show = "env | grep -E '^(CONDA|_C)' | sort"
    assert layer.lines(f'{shell} "{show}"') == layer.lines(show)


def test_shells_say_nothing(layer: Layer) -> None:
    """What makes `conda activate` work prints nothing, to neither side (case S8)."""
    for shell in ("bash -c", "bash -lc", "sh -c", "sh -lc"):
        done = layer.host.run(f"{shell} true")
        assert (done.rc, done.stdout, done.stderr) == (0, "", "")


def test_settings(layer: Layer) -> None:
    """Only conda-forge is asked, strictly; no terms; environments and packages have places."""
    text = layer.lines("grep -v '^#' /opt/conda/.condarc")
    assert text == [
        "channels: [conda-forge]",
        "channel_priority: strict",
        "default_channels: []",
        "plugins: {auto_accept_tos: false}",
        "auto_update_conda: false",
        "notify_outdated_conda: false",
        "envs_dirs: [~/.conda/envs, /opt]",
        "pkgs_dirs: [/opt/conda/pkgs, ~/.conda/pkgs]",
    ]
    assert layer.out("stat --format '%U %a' /opt/conda/.condarc") == "root 644"
    others = "find /opt/conda/condarc.d /etc/conda ~/.condarc ~/.config/conda"
    assert layer.out(f"{others} 2>/dev/null || true") == ""


def test_conda_stays_as_it_is(layer: Layer) -> None:
    """Conda's own environment is frozen (CEP 22), and conda pinned at its version."""
    message = json.loads(layer.out("cat /opt/conda/conda-meta/frozen"))["message"]
    assert message.endswith("Make an environment of your own: conda create --name NAME")
    version = layer.out("conda --version").removeprefix("conda ")
    assert layer.out("cat /opt/conda/conda-meta/pinned") == f"conda =={version}"


def test_closed_to_the_user(layer: Layer) -> None:
    """The user can read all of conda and change none of it but the package cache."""
    assert layer.find("-writable ! -type l", "/opt/conda") == ["/opt/conda/pkgs"]
    assert layer.lines("find /opt/conda ! -readable") == []


def test_places_for_the_user(layer: Layer) -> None:
    """Environments go to the home; it and the cache, where volumes go, are the user's and empty."""
    name = layer.account.name
    for place in (f"{layer.account.home}/.conda", "/opt/conda/pkgs"):
        assert layer.out(f"stat --format '%U %G %a' {place}") == f"{name} {name} 755"
        assert layer.lines(f"ls -A {place}") == []
    script = "mkdir ~/.conda/envs && touch ~/.conda/envs/it && rm -r ~/.conda/envs && echo written"
    assert layer.out(script) == "written"


def test_nothing_of_the_installer(layer: Layer) -> None:
    """Neither the installer nor its packages are in the image, and no time of the build."""
    assert layer.find("-name 'Miniconda*.sh'") == []
    stamps = layer.lines("grep --no-filename '^==>' /opt/conda/conda-meta/history")
    built = layer.out(
        "date --utc --date=@$(stat --format %Y /opt/conda/conda-meta/history) '+%F %T'"
    )
    assert set(stamps) == {f"==> {built} <=="}


def test_modules_are_compiled(layer: Layer) -> None:
    """Conda's modules are compiled, and valid whatever the time of their source (PEP 552)."""
    program = (
        "import json, pathlib; pattern = 'python3*/site-packages/conda/**/*.pyc'; "
        "files = pathlib.Path('/opt/conda/lib').glob(pattern); "
        "print(json.dumps(sorted({p.read_bytes()[4:8].hex() for p in files})))"
    )
    assert layer.out(f'/opt/conda/bin/python -I -B -c "{program}"') == '["01000000"]'
