"""A variant is added in five steps: those of docs/variants.md, done to the letter."""

from __future__ import annotations

import hashlib
import re
import shutil
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from strata.lock import read_lock
from tests.packages.records import CHANNEL_DIRS, lay_out
from tests.packages.site import serve_site
from tests.projects import SmallProject

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
NAME = "cuda129-jammy"
STEPS = (ROOT / "docs" / "variants.md").read_text(encoding="utf-8").split("## `./inv lock`")[0]
BLOCK = re.compile(r"^ +```(\w+)\n(.*?)^ +```$", re.MULTILINE | re.DOTALL)
MANIFEST = b'{"schemaVersion": 2, "manifests": []}'
INSTALLER = b"#!/bin/sh\n# stands in for Miniconda's\n"


def blocks(kind: str) -> list[str]:
    """Return the page's blocks of a language, without their indentation."""
    return [textwrap.dedent(text) for found, text in BLOCK.findall(STEPS) if found == kind]


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> SmallProject:
    """Copy this project's definitions."""
    root = tmp_path_factory.mktemp("project")
    for name in ("images", "layers", "locks", "train"):
        shutil.copytree(ROOT / name, root / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copyfile(ROOT / "tasks.py", root / "tasks.py")
    return SmallProject(root)


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Stand in for Docker Hub, Miniconda's site and conda-forge, as mirrors would."""
    folder = lay_out(tmp_path_factory.mktemp("channel"))
    with serve_site() as site:
        site.put("/v2/library/ubuntu/manifests/22.04", MANIFEST)
        site.put(
            "/miniconda/",
            b'<a href="Miniconda3-py312_26.7.1-1-Linux-x86_64.sh">.</a>',
        )
        site.put("/miniconda/Miniconda3-py312_26.7.1-1-Linux-x86_64.sh", INSTALLER)
        for subdir in CHANNEL_DIRS:
            path = f"{subdir}/repodata.json"
            site.put(f"/conda-forge/{path}", (folder / path).read_bytes())
        yield {
            "STRATA_REGISTRY_MIRROR": site.address.removeprefix("http://"),
            "STRATA_INSTALLER_MIRROR": f"{site.address}/miniconda/",
            "STRATA_CHANNEL_MIRROR": f"{site.address}/conda-forge/",
        }


@pytest.fixture(scope="module")
def said(project: SmallProject, outside: dict[str, str]) -> dict[str, str]:
    """Write the page's files, run its commands (the last as a dry run), and keep what each says."""
    for text in (*blocks("toml"), *blocks("yaml")):
        place = text.splitlines()[0].removeprefix("# ")
        project.write(place, text)
    commands = [line for text in blocks("sh") for line in text.splitlines()]
    results = {}
    for command in commands:
        words = command.removeprefix("./inv ").split()
        dry = ["--dry-run"] if words[0] == "build" else []
        done = project.inv(*words, *dry, env=outside)
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        results[command] = done.stdout
    return results


def test_the_page_has_two_files_and_six_commands(said: dict[str, str]) -> None:
    """All of them were found, and each ended well."""
    assert (len(blocks("toml")), len(blocks("yaml"))) == (1, 1)
    assert [command.split()[1] for command in said] == [
        "pin",
        "lock",
        "lock",
        "list",
        "plan",
        "build",
    ]


def test_pin_fills_in_what_was_unset(said: dict[str, str], project: SmallProject) -> None:
    """With the digest that the registry has, and the hash of the installer."""
    assert said
    text = (project.root / "locks" / NAME / "sources.toml").read_text()
    assert f'digest = "sha256:{hashlib.sha256(MANIFEST).hexdigest()}"' in text
    assert f'"linux/amd64" = "{hashlib.sha256(INSTALLER).hexdigest()}"' in text


def test_the_lock_names_the_public_channel_alone(
    said: dict[str, str], project: SmallProject
) -> None:
    """Though it was solved against a mirror on this machine."""
    lock = read_lock(project.root / "locks" / NAME / "conda-lock.yml")
    assert {package.url.rsplit("/", 2)[0] for package in lock.packages} == {
        "https://conda.anaconda.org/conda-forge"
    }
    assert "127.0.0.1" not in lock.path.read_text()
    assert lock.on("linux-64")["pytorch"].version == "2.10.0"
    assert "locks/README.md is written anew" in said[f"./inv lock --variant {NAME}"]
    assert (
        f"| {NAME} | linux/amd64 | ubuntu:22.04 | 3.12."
        in (project.root / "locks" / "README.md").read_text()
    )


def test_the_variant_is_there_for_every_task(said: dict[str, str]) -> None:
    """Its lock is current, it is listed, and its plan shows a tree with sizes."""
    assert f"locks/{NAME}/conda-lock.yml is current" in said["./inv lock --check"].splitlines()
    assert f"  {NAME}  docker.io/library/ubuntu:22.04, linux/amd64" in said["./inv list"]
    plan = said[f"./inv plan --variant {NAME}"]
    assert plan.startswith(f"variant {NAME} on linux/amd64\n  10-base ")
    assert re.search(r"30-pytorch +[0-9a-f]{16}  build +\d+ packages, 3\.\d\d GB += train", plan)
    assert "not offered: text: 35-text is left out: nobody here needs it" in plan
