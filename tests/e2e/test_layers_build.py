"""Layers that are built in other ways than `./inv build` does here: users, and Miniconda."""

from __future__ import annotations

import shlex
import uuid
from typing import TYPE_CHECKING

import pytest

from strata.check.container import idle_container
from strata.check.layers import test_layers as run_layer_tests
from strata.oci import read_layers
from tests.e2e.boxes import ROOT, Boxes, Ended, Image, call
from tests.e2e.miniconda import FAILING, make_installer
from tests.e2e.sshclient import Client, make_key, wait_for_ssh

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from docker import DockerClient

    from strata.engine import Engine

    Build = Callable[..., Ended]

EPOCH = "1793491200"
# A base that has a user of uid 1000 already, as Ubuntu 24.04 has, and one called dev.
TAKEN = """\
FROM {parent}
USER root
RUN userdel --remove dev && useradd --create-home --uid 1000 ubuntu \
 && useradd --create-home --uid 1500 dev
"""
CONDA = "strata-test/miniconda:good"


@pytest.fixture(scope="module")
def base(docker_client: DockerClient) -> str:
    """Return the newest 10-base step, or fail where there is none."""
    for found in docker_client.images.list("strata/embedded/10-base"):
        return str(found.tags[0])
    pytest.fail("there is no image of 10-base; ./inv build makes it", pytrace=False)


@pytest.fixture(scope="module")
def build(engine: Engine) -> Iterator[Build]:
    """Build a folder, with contexts and arguments, under a name; remove the image afterwards."""
    names: list[str] = []

    def make(
        folder: Path,
        name: str,
        parent: str = "",
        contexts: Mapping[str, Path] | None = None,
        **arguments: str,
    ) -> Ended:
        names.append(name)
        options = [
            word for key, text in arguments.items() for word in ("--build-arg", f"{key}={text}")
        ]
        if parent:
            options += ["--build-context", f"parent=docker-image://{parent}"]
            options += ["--build-context", f"tools={ROOT / 'strata/inbuild'}"]
            options += ["--build-arg", f"SOURCE_DATE_EPOCH={EPOCH}"]
        for key, place in (contexts or {}).items():
            options += ["--build-context", f"{key}={place}"]
        argv = ("docker", "buildx", "build", "--provenance=false", "--progress=plain")
        return call(*argv, "--tag", name, *options, str(folder), env=engine.env)

    yield make
    there = [n for n in names if call("docker", "image", "inspect", n, env=engine.env).code == 0]
    if there:
        removed = call("docker", "image", "rm", "--force", *there, env=engine.env)
        assert removed.code == 0, removed.err


@pytest.fixture(scope="module")
def taken(base: str, build: Build, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Make a parent whose uid 1000 and whose name dev are taken."""
    folder = tmp_path_factory.mktemp("taken")
    (folder / "Dockerfile").write_text(TAKEN.format(parent=base))
    done = build(folder, "strata-test/taken:1")
    assert done.code == 0, done.err
    return "strata-test/taken:1"


@pytest.fixture
def passes(docker_client: DockerClient, engine: Engine, tmp_path: Path) -> Callable[..., None]:
    """Run a layer's tests in a container of an image; they all pass, and none is left out."""

    def check(name: str, layer: str) -> None:
        report = tmp_path / "report.xml"
        with idle_container(docker_client, name, "none") as container:
            (outcome,) = run_layer_tests(ROOT, [layer], str(container.name), engine.env, report)
        assert outcome.verdict == "pass", outcome.detail
        assert "skipped" not in outcome.detail

    return check


@pytest.mark.parametrize("uid", ["60", "65534"])
def test_user_of_any_name(passes: Callable[..., None], build: Build, taken: str, uid: str) -> None:
    """With another name, and the number of a group that others need, the layer's tests pass."""
    name = f"strata-test/user:ada-{uid}"
    done = build(ROOT / "layers/10-base", name, taken, USER_NAME="ada", USER_UID=uid)
    assert done.code == 0, done.err
    passes(name, "10-base")


@pytest.mark.parametrize("uid", ["1000", "1001", "2000000"])
def test_user_of_any_uid(
    boxes: Boxes, docker_client: DockerClient, build: Build, taken: str, uid: str
) -> None:
    """The user gets its number, alone, and its home, in less than a megabyte (case U1)."""
    name = f"strata-test/user:{uid}"
    done = build(ROOT / "layers/10-base", name, taken, USER_NAME="dev", USER_UID=uid)
    assert done.code == 0, done.err
    script = (
        f"id; awk -F: '$3 == {uid}' /etc/passwd /etc/group; "
        "find ~ ! -user dev -o ! -group dev; pwd; touch ~/mine ~/work/mine && echo written"
    )
    said = boxes.once(name, command=("sh", "-c", script))
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        f"uid={uid}(dev) gid={uid}(dev) groups={uid}(dev)",
        f"dev:x:{uid}:{uid}::/home/dev:/bin/bash",
        f"dev:x:{uid}:",
        "/home/dev/work",
        "written",
    ]
    image = docker_client.images.get(name)
    layers = read_layers(docker_client.api.get_image(name))[str(image.id)]
    *_, user, work_folder = layers
    assert user.unpacked + work_folder.unpacked < 1_000_000
    assert user.compressed + work_folder.compressed < 1_000_000
    has_ubuntu = boxes.once(name, command=("getent", "passwd", "ubuntu")).code == 0
    assert has_ubuntu == (uid != "1000")


@pytest.fixture
def miniconda(build: Build, image: Image, tmp_path: Path) -> Callable[..., Ended]:
    """Build 20-miniconda with an installer of our own, on an image that has all other doors."""

    def make(name: str, installer: bytes) -> Ended:
        folder = tmp_path / "installer"
        folder.mkdir(exist_ok=True)
        (folder / "Miniconda3-stand-in.sh").write_bytes(installer)
        return build(
            ROOT / "layers/20-miniconda",
            name,
            image("remote"),
            contexts={"installer": folder},
            USER_UID="1000",
        )

    return make


def test_miniconda(
    boxes: Boxes,
    passes: Callable[..., None],
    miniconda: Callable[..., Ended],
    tmp_path: Path,
) -> None:
    """With an installer that keeps its contract the layer passes its tests; fresh volumes, SSH.

    What conda exports is the same behind the doors that start bash and those that don't.
    """
    done = miniconda(CONDA, make_installer(note=str(uuid.uuid4())))
    assert done.code == 0, done.err
    passes(CONDA, "20-miniconda")
    fresh = ("--volume", "/home/dev/.conda", "--volume", "/opt/conda/pkgs")
    script = "touch ~/.conda/mine /opt/conda/pkgs/mine && echo written"
    said = boxes.once(CONDA, *fresh, command=("bash", "-c", script))
    assert (said.code, said.out) == (0, "written"), said.err
    key = make_key(tmp_path, "ada")
    keys = ("--volume", f"{key.file}.pub:/etc/strata/authorized_keys:ro")
    box = boxes.start(CONDA, "--publish", "127.0.0.1::2222", *keys)
    ssh = Client(wait_for_ssh(box), key)
    script = "conda activate base && echo $CONDA_PREFIX && command -v python"
    for said in (ssh.run(script), ssh.login(script), ssh.run(f"bash -c '{script}'")):
        assert (said.code, said.err) == (0, "")
        assert said.out.splitlines() == ["/opt/conda", "/opt/conda/bin/python"]
    show = "env | grep -E '^(_C|CONDA_)' | sort; command -v conda"
    doors = {
        "run": boxes.once(CONDA, command=("sh", "-c", show)),
        "sh": boxes.once(CONDA, "--entrypoint", "sh", command=("-c", show)),
        "exec": box.run("sh", "-c", show),
        "ssh": ssh.run(f"sh -c {shlex.quote(show)}"),
    }
    seen = {door: done.out.splitlines() for door, done in doors.items()}
    assert seen == dict.fromkeys(seen, seen["exec"])
    assert {"CONDA_SHLVL=1", "CONDA_EXE=/opt/conda/bin/conda"} <= set(seen["exec"])
    assert seen["exec"][-1] == "/opt/conda/condabin/conda"


def test_miniconda_is_the_same_whenever_it_is_built(
    docker_client: DockerClient, miniconda: Callable[..., Ended]
) -> None:
    """Neither the installer's clock nor its caches reach the layer: two builds, the same bytes."""
    layers = []
    for name in ("strata-test/miniconda:one", "strata-test/miniconda:two"):
        done = miniconda(name, make_installer(note=str(uuid.uuid4())))  # so that none is cached
        assert done.code == 0, done.err
        layers.append(docker_client.images.get(name).attrs["RootFS"]["Layers"])
    assert layers[0] == layers[1]


def test_failing_installer(miniconda: Callable[..., Ended]) -> None:
    """An installer that fails makes the build fail, with what it said."""
    done = miniconda("strata-test/miniconda:failing", FAILING)
    assert done.code != 0
    assert "installer: no space left" in done.err


def test_installer_that_does_nothing(miniconda: Callable[..., Ended]) -> None:
    """An installer that ends well but installs nothing makes the build fail."""
    done = miniconda("strata-test/miniconda:nothing", b"#!/bin/sh\nexit 0\n")
    assert done.code != 0
    assert "/opt/conda/bin/conda" in done.err


def test_installer_that_ends_in_the_middle(miniconda: Callable[..., Ended]) -> None:
    """An installer that is cut off makes the build fail, though half of it is there."""
    whole = make_installer(note=str(uuid.uuid4()))
    done = miniconda("strata-test/miniconda:half", whole[: len(whole) - 300])
    assert done.code != 0
    assert "strata-test/miniconda:half" not in done.out
