"""A host that is not fit is refused before anything is built, and one with nothing to build is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.tiny import TinyProject, make_tiny_project, remove_images

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import DockerClient

    from strata.engine import Engine

# Python runs a sitecustomize on its path before anything else: it makes the disk of a folder
# look as if it had so many bytes free, every engine too old, or without GPUs.
DISK = """\
import collections, shutil
usage, free = shutil.disk_usage, collections.namedtuple("usage", "total used free")
def of(path):
    is_full = str(path).startswith({folder!r})
    return free(10**12, 10**12 - {left}, {left}) if is_full else free(10**12, 0, 10**12)
shutil.disk_usage = of
"""
OLD = """\
from docker.api.daemon import DaemonApiMixin
version = DaemonApiMixin.version
def old(self, api_version=True):
    told = version(self, api_version)
    return {**told, "Version": "20.10.24"} if "Version" in told else told
DaemonApiMixin.version = old
"""
NO_GPUS = """\
from docker.api.daemon import DaemonApiMixin
info = DaemonApiMixin.info
def without(self):
    return {**info(self), "Runtimes": {}, "DiscoveredDevices": [], "CDISpecDirs": []}
DaemonApiMixin.info = without
"""


@pytest.fixture(scope="module")
def project(
    tmp_path_factory: pytest.TempPathFactory, engine: Engine, docker_client: DockerClient
) -> Iterator[TinyProject]:
    """Make the tiny project, not yet built, and remove its images afterwards."""
    yield make_tiny_project(tmp_path_factory.mktemp("tiny"), engine.env)
    remove_images(docker_client)


def patched(project: TinyProject, code: str) -> dict[str, str]:
    """Return the environment in which `code` is Python's sitecustomize."""
    file = project.write("site/sitecustomize.py", code)
    return {"PYTHONPATH": f"{file.parent}:{project.environment()['PYTHONPATH']}"}


def build_with(project: TinyProject, code: str) -> tuple[int, str, str]:
    """Build one image without checks while `code` is Python's sitecustomize."""
    return project.build("--no-check", "--image", "small", env=patched(project, code))


# The order of these is their frugality: the project is built once, in the second.
def test_an_engine_that_is_too_old_is_refused(project: TinyProject) -> None:
    """It ends with 8 and its version, before a bake file is written."""
    code, _, err = build_with(project, OLD)
    assert code == 8, err
    assert ": its version is 20.10.24, and 24 is the oldest that works\n" in err
    assert not list(project.root.glob("build/bake-*"))


def test_only_a_build_needs_much_room(project: TinyProject, docker_client: DockerClient) -> None:
    """Full disks end with 8 before bake; with nothing to build, a little room is enough."""
    root = docker_client.info()["DockerRootDir"]
    code, _, err = build_with(project, DISK.format(folder=root, left=4_900_000_000))
    assert code == 8, err
    assert f"{root} has 4.9 GB free, and 5.0 GB are needed\n" in err
    code, _, err = build_with(project, DISK.format(folder=str(project.root), left=1_000_000_000))
    assert code == 8, err
    assert f"error: cache: {project.root}/cache has 1.0 GB free" in err
    assert f"error: build folder: {project.root}/build has 1.0 GB free" in err
    assert not list((project.root / "build").glob("bake-*"))
    assert not docker_client.images.list("strata/small")

    assert project.build("--no-check", "--image", "small")[0] == 0
    code, _, err = build_with(project, DISK.format(folder="/", left=300_000_000))
    assert code == 0, err
    code, _, err = build_with(project, DISK.format(folder="/", left=100_000_000))
    assert code == 8, err
    assert f"{root} has 0.1 GB free, and 0.2 GB are needed\n" in err


def test_gpus_that_are_asked_for_must_be_there(project: TinyProject) -> None:
    """`check --gpus all` without GPUs ends with 8, and nothing is checked (case G1)."""
    assert project.build("--no-check", "--image", "small")[0] == 0
    before = project.record.read_bytes()
    env = {**project.env, **patched(project, NO_GPUS)}
    done = project.inv("check", "--image", "small", "--gpus", "all", env=env)
    assert done.returncode == 8, done.stderr
    assert "error: --gpus all: the engine gives containers no GPUs\n" in done.stderr
    assert project.record.read_bytes() == before
