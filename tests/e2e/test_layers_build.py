"""Layers that are built in other ways than `./inv build` does here: users, and Miniconda."""

from __future__ import annotations

import hashlib
import threading
import uuid
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from strata.check.container import idle_container
from strata.check.layers import test_layers as run_layer_tests
from strata.oci import read_layers
from tests.e2e.boxes import ROOT, Boxes, Ended, call

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
# Keeps the contract of Miniconda's installer: -b for no questions, -p for where to.
INSTALLER = """\
#!/bin/sh
set -eu
[ "$1 $2" = "-b -p" ] && [ "$#" = 3 ]
prefix=$3
mkdir -p "$prefix/bin" "$prefix/condabin" "$prefix/pkgs/cache"
printf '#!/bin/sh\\n[ "$1" = --version ] && echo conda 26.9.0\\n' >"$prefix/bin/conda"
chmod 755 "$prefix/bin/conda"
cp "$prefix/bin/conda" "$prefix/condabin/conda"
echo cached >"$prefix/pkgs/cache/package.conda"
"""
FAILING = "#!/bin/sh\necho 'installer: no space left' >&2\nexit 3\n"


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

    def make(folder: Path, name: str, parent: str = "", **arguments: str) -> Ended:
        names.append(name)
        options = [
            word for key, text in arguments.items() for word in ("--build-arg", f"{key}={text}")
        ]
        if parent:
            options += ["--build-context", f"parent=docker-image://{parent}"]
            options += ["--build-context", f"tools={ROOT / 'strata/inbuild'}"]
            options += ["--build-arg", f"SOURCE_DATE_EPOCH={EPOCH}"]
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
def served(docker_client: DockerClient, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """Serve a folder to the engine's build containers; return it and its address."""
    settings = docker_client.networks.get("bridge").attrs["IPAM"]["Config"][0]
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    server = ThreadingHTTPServer((settings["Gateway"], 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield tmp_path, f"http://{settings['Gateway']}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def miniconda(base: str, build: Build, served: tuple[Path, str]) -> Callable[..., Ended]:
    """Build 20-miniconda with an installer of our own."""
    folder, address = served

    def make(name: str, installer: str, sha256: str = "", path: str = "installer.sh") -> Ended:
        # A comment of its own, so that no cached step answers for this run.
        text = f"{installer}# {uuid.uuid4()}\n"
        (folder / "installer.sh").write_text(text)
        return build(
            ROOT / "layers/20-miniconda",
            name,
            base,
            MINICONDA_URL=f"{address}/{path}",
            MINICONDA_SHA256=sha256 or hashlib.sha256(text.encode()).hexdigest(),
            USER_UID="1000",
        )

    return make


def test_miniconda(
    docker_client: DockerClient,
    engine: Engine,
    miniconda: Callable[..., Ended],
    tmp_path: Path,
) -> None:
    """With an installer that keeps its contract the layer is built and passes its own tests."""
    done = miniconda("strata-test/miniconda:good", INSTALLER)
    assert done.code == 0, done.err
    with idle_container(docker_client, "strata-test/miniconda:good", "none") as container:
        (outcome,) = run_layer_tests(
            ROOT, ["20-miniconda"], str(container.name), engine.env, tmp_path / "report.xml"
        )
    assert outcome.verdict == "pass", outcome.detail
    assert "skipped" not in outcome.detail


def test_wrong_checksum(miniconda: Callable[..., Ended]) -> None:
    """An installer that isn't the pinned one stops the build, which names it, before it runs."""
    done = miniconda("strata-test/miniconda:wrong", FAILING, sha256="0" * 64)
    assert done.code != 0
    assert "/tmp/miniconda.sh: FAILED" in done.err  # noqa: S108
    assert "no space left" not in done.err


def test_failing_installer(miniconda: Callable[..., Ended]) -> None:
    """An installer that fails makes the build fail, with what it said."""
    done = miniconda("strata-test/miniconda:failing", FAILING)
    assert done.code != 0
    assert "installer: no space left" in done.err


def test_installer_that_does_nothing(miniconda: Callable[..., Ended]) -> None:
    """An installer that ends well but installs nothing makes the build fail."""
    done = miniconda("strata-test/miniconda:nothing", "#!/bin/sh\nexit 0\n")
    assert done.code != 0
    assert "/opt/conda/bin/conda" in done.err


def test_missing_download(miniconda: Callable[..., Ended]) -> None:
    """A download that isn't there makes the build fail, with the server's answer."""
    done = miniconda("strata-test/miniconda:missing", INSTALLER, path="absent.sh")
    assert done.code != 0
    assert "404" in done.err
