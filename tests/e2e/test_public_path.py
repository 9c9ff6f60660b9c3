"""A public variant, built from upstreams on loopback by the code that builds the real ones."""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from typing import TYPE_CHECKING

import pytest
import requests

from strata.check.container import idle_container
from strata.check.layers import test_layers as run_layer_tests
from strata.contexts import make_contexts
from strata.interpreter import fetch_rattler
from strata.pipeline import prepare
from strata.store import list_images
from strata.workspace import Workspace
from tests.e2e.boxes import call
from tests.e2e.miniconda import FAILING
from tests.e2e.registry import serve as serve_registry
from tests.e2e.upstreams import (
    BASE,
    BASE_NAME,
    PACKAGES,
    TOKEN,
    VARIANT,
    Upstreams,
    broken,
    locked_files,
    make_channel,
    make_installer_of,
    make_project,
    python_files,
)
from tests.packages.site import Answer, Site, serve_site
from tests.projects import REPOSITORY

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from docker import DockerClient

    from strata.engine import Engine
    from tests.e2e.boxes import Boxes
    from tests.projects import SmallProject

LOCK = f"locks/{VARIANT}/conda-lock.yml"
OURS = re.compile(rf"strata/({VARIANT}/.+|[a-z]+:{VARIANT})")
INDEX = "application/vnd.oci.image.index.v1+json"
BLOBS = "blobs/docker/registry/v2/blobs/sha256"
MANIFESTS = (
    "application/vnd.oci.image.manifest.v1+json, "
    "application/vnd.docker.distribution.manifest.v2+json"
)
BUILD = ("build", "--variant", VARIANT, "--no-check")


def tagged(engine: Engine) -> list[str]:
    """Return the names that images of the variant have in the engine."""
    return [name for name in list_images(engine) if OURS.match(name)]


def remove(sdk: DockerClient, *tags: str) -> None:
    """Remove images by name."""
    for tag in tags:
        sdk.images.remove(tag, force=True)


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    """Serve on loopback."""
    with serve_site() as served:
        yield served


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Run a registry; yield its address and its folder."""
    folder = tmp_path_factory.mktemp("registry")
    for host in serve_registry(folder):
        yield host, folder


def reworded(host: str, digest: str) -> str:
    """Put the same image under a digest that no engine has seen: it must ask the registry."""
    place = f"http://{host}/v2/{BASE_NAME}/manifests"
    known = requests.get(f"{place}/{digest}", headers={"Accept": MANIFESTS}, timeout=60)
    known.raise_for_status()
    text = json.dumps({**known.json(), "annotations": {"test": str(uuid.uuid4())}}).encode()
    made = f"sha256:{hashlib.sha256(text).hexdigest()}"
    kind = {"Content-Type": known.headers["Content-Type"]}
    answer = requests.put(f"{place}/{made}", text, headers=kind, timeout=60)
    assert answer.status_code == 201, answer.text
    return made


def indexed(registry: tuple[str, Path], amd64: str) -> str:
    """Put an index, as all real bases are, whose image for arm64 the registry has lost."""
    host, folder = registry
    digests = {"arm64": reworded(host, amd64), "amd64": amd64}
    index = {
        "schemaVersion": 2,
        "mediaType": INDEX,
        "manifests": [
            {
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": digest,
                "size": blob_file(folder, digest).stat().st_size,
                "platform": {"os": "linux", "architecture": architecture},
            }
            for architecture, digest in digests.items()
        ],
    }
    text = json.dumps(index).encode()
    made = f"sha256:{hashlib.sha256(text).hexdigest()}"
    place = f"http://{host}/v2/{BASE_NAME}/manifests/{made}"
    answer = requests.put(place, text, headers={"Content-Type": INDEX}, timeout=60)
    assert answer.status_code == 201, answer.text
    blob_file(folder, digests["arm64"]).unlink()
    return made


def blob_file(folder: Path, digest: str) -> Path:
    """Return where a registry keeps a blob."""
    hexes = digest.removeprefix("sha256:")
    return folder / BLOBS / hexes[:2] / hexes / "data"


@pytest.fixture(scope="module")
def upstreams(
    docker_client: DockerClient,
    engine: Engine,
    registry: tuple[str, Path],
    site: Site,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Upstreams]:
    """Make the three upstreams and the project, once."""
    folder = tmp_path_factory.mktemp("public")
    parents = docker_client.images.list("strata/embedded/10-base")
    if not parents:
        pytest.fail("there is no image of 10-base; ./inv build makes it", pytrace=False)
    parent, host = str(parents[0].tags[0]), registry[0]
    base = f"{host}/{BASE_NAME}:24.04"
    (folder / "base").mkdir()
    (folder / "base/Dockerfile").write_text(BASE.format(parent=parent))
    build = ("docker", "buildx", "build", "--provenance=false", "--tag", base, folder / "base")
    try:
        for argv in (build, ("docker", "push", base)):
            done = call(*map(str, argv), env=engine.env)
            assert done.code == 0, done.err
        digest = indexed(registry, reworded(host, str(docker_client.images.get(base).id)))
    finally:
        remove(docker_client, *[t for i in docker_client.images.list(base) for t in i.tags])
    python = python_files(docker_client, parent)
    installer = make_installer_of(python)
    channel = make_channel(folder, python)
    project = make_project(folder / "project", digest, installer, channel)
    seed = folder / "seed"
    workspace = Workspace(root=project.root, build=project.root / "build", cache=seed)
    fetch_rattler(workspace, "linux/amd64")
    made = Upstreams(
        site=site,
        registry=host,
        registry_folder=registry[1],
        digest=digest,
        installer=installer,
        channel=channel,
        project=project,
        engine=engine.env,
        seed=seed,
        files=locked_files(project, channel, f"/t/{TOKEN}/conda-forge/"),
    )
    assert {name.rsplit("-", 2)[0].rsplit("/", 1)[-1] for name in made.files} == set(PACKAGES)
    yield made
    remove(docker_client, *tagged(engine))


@pytest.fixture
def public(upstreams: Upstreams) -> Upstreams:
    """Return the upstreams, all in order."""
    upstreams.heal()
    return upstreams


def build(
    public: Upstreams, cache: Path, *options: str, **more: str
) -> subprocess.CompletedProcess[str]:
    """Run `./inv build`; see that it ends without a traceback, and without the token."""
    done = public.project.inv(*BUILD, *options, env=public.env(cache, **more), timeout=600)
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    assert TOKEN not in done.stdout + done.stderr
    return done


def fetch_again(public: Upstreams, cache: Path, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Let a healthy upstream answer, lay out all that a build needs; return what was asked for."""
    public.heal()
    for name, value in public.env(cache).items():
        monkeypatch.setenv(name, value)
    root = public.project.root
    workspace = Workspace(root=root, build=root / "build", cache=cache)
    plan = prepare(workspace, [], VARIANT)
    contexts = make_contexts(workspace, plan, {step.name for step in plan.steps})
    packages = [p for folder in contexts.steps.values() for p in (folder / "packages").iterdir()]
    assert {path.name for path in packages} == {path.name for path in public.files.values()}
    assert (contexts.rattler / "python/bin/python3").exists()
    return set(public.site.paths())


WRONG = Answer(body=b"not what the lock names")


@pytest.mark.parametrize(
    "fault",
    [
        ("numpy", WRONG, 3, "numpy-2.4.6-py311_0.conda is not the file that is pinned"),
        ("installer", WRONG, 3, "Linux-x86_64.sh is not the file that is pinned"),
        ("numpy", Answer(status=404), 4, "answers 404"),
        ("installer", Answer(status=404), 4, "answers 404"),
        ("numpy", Answer(status=401), 4, "it wants a token"),
    ],
    ids=["package", "installer", "package-404", "installer-404", "token"],
)
def test_a_download_that_fails(
    public: Upstreams,
    engine: Engine,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    fault: tuple[str, Answer, int, str],
) -> None:
    """It is named, nothing gets a name in the engine, and the next run asks only for the rest."""
    what, answer, code, said = fault
    path = public.installer_path if what == "installer" else public.package(what)
    public.site.put(path, answer)
    cache = public.cache(tmp_path / "cache")
    done = build(public, cache)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr
    layer = "20-miniconda" if what == "installer" else "30-pytorch"
    assert f"error: layers/{layer}: " in done.stderr
    assert tagged(engine) == []
    left = fetch_again(public, cache, monkeypatch)
    assert path in left
    assert left <= {path, public.installer_path}


def damage(project: SmallProject, kind: str) -> None:
    """Damage the lock by hand."""
    text = (project.root / LOCK).read_text()
    if kind == "no hash":
        found = re.search(r"    sha256: [0-9a-f]{64}\n", text)
        assert found
        text = text.replace(found[0], "", 1)
    else:
        text = text.replace("manager: conda", "manager: pip", 1)
    project.write(LOCK, text)


@pytest.mark.parametrize(("kind", "said"), [("no hash", "sha256"), ("pip entry", "comes from pip")])
def test_a_lock_that_cannot_be_trusted(
    public: Upstreams, engine: Engine, tmp_path: Path, kind: str, said: str
) -> None:
    """It stops the build with exit code 3 before anybody is asked for anything."""
    whole = (public.project.root / LOCK).read_text()
    damage(public.project, kind)
    try:
        done = build(public, tmp_path)
    finally:
        public.project.write(LOCK, whole)
    assert (done.returncode, said in done.stderr) == (3, True), done.stderr
    assert public.site.asked == []
    assert tagged(engine) == []


def test_an_installer_that_fails(public: Upstreams, engine: Engine, tmp_path: Path) -> None:
    """The right file, and it ends badly: exit code 4, the layer is named, nothing gets a name."""
    sources, right = f"locks/{VARIANT}/sources.toml", hashlib.sha256(public.installer).hexdigest()
    public.site.put(public.installer_path, FAILING)
    public.project.replace(sources, right, hashlib.sha256(FAILING).hexdigest())
    try:
        done = build(public, public.cache(tmp_path / "cache"))
    finally:
        public.project.replace(sources, hashlib.sha256(FAILING).hexdigest(), right)
    assert done.returncode == 4, done.stderr
    assert "layers/20-miniconda/Dockerfile" in done.stderr
    assert "installer: no space left" in done.stderr
    assert tagged(engine) == []


def test_the_public_path(
    public: Upstreams, boxes: Boxes, docker_client: DockerClient, engine: Engine, tmp_path: Path
) -> None:
    """Wrong bases stop the build; then it is built, though three downloads go badly at first."""
    cache = public.cache(tmp_path / "cache")
    site, project = public.site, public.project
    numpy, python, torch = (public.package(name) for name in ("numpy", "python", "pytorch"))
    data = {path: public.files[path].read_bytes() for path in (numpy, python, torch)}
    site.put(numpy, Answer(status=500), Answer(status=500), data[numpy])
    site.put(python, broken(data[python]), data[python])
    elsewhere = site.put("/elsewhere/torch", data[torch])
    site.put(torch, Answer(status=302, headers={"Location": elsewhere}))

    absent = f"sha256:{'0' * 64}"
    sources = f"locks/{VARIANT}/sources.toml"
    project.replace(sources, public.digest, absent)
    done = build(public, cache)
    project.replace(sources, absent, public.digest)
    assert done.returncode == 4, done.stderr
    assert f"{BASE_NAME}@{absent}: the registry has no such image" in done.stderr
    assert tagged(engine) == []
    once = sorted(site.paths())
    again = [path for path in set(once) if once.count(path) > 1]
    assert sorted(again) == sorted([numpy, python])

    manifest = blob_file(public.registry_folder, public.digest)
    whole = manifest.read_bytes()
    manifest.write_bytes(whole.replace(b"{", b"{ ", 1))
    done = build(public, cache)
    manifest.write_bytes(whole)
    assert done.returncode == 3, done.stderr
    assert "the registry has another image under this digest" in done.stderr
    assert tagged(engine) == []

    done = build(public, cache)
    assert done.returncode == 0, done.stderr
    assert sorted(site.paths()) == once
    assert {f"strata/lab:{VARIANT}", f"strata/slim:{VARIANT}"} <= set(tagged(engine))
    _has_no_secret(public)
    _look_inside(boxes)
    with idle_container(docker_client, f"strata/lab:{VARIANT}", "none") as container:
        layers, report = ["10-base", "20-miniconda"], tmp_path / "report.xml"
        outcomes = run_layer_tests(REPOSITORY, layers, str(container.name), engine.env, report)
    assert [outcome.verdict for outcome in outcomes] == ["pass", "pass"], outcomes


def _has_no_secret(public: Upstreams) -> None:
    """See that the token is in no file of the build and in no image's history."""
    build_folder = public.project.root / "build"
    files = [path for path in build_folder.rglob("*") if path.suffix in {".json", ".log"}]
    assert files
    assert [path for path in files if TOKEN.encode() in path.read_bytes()] == []
    image = f"strata/lab:{VARIANT}"
    for argv in (("history", "--no-trunc", image), ("image", "inspect", image)):
        said = call("docker", *argv, env=dict(public.engine))
        assert (said.code, TOKEN in said.out) == (0, False)


def _look_inside(boxes: Boxes) -> None:
    """See that the image holds what the lock says, and nothing that installed it."""
    script = """
    id
    getent passwd 1000
    ls --directory /usr/bin/python3* /usr/lib/python3* 2>/dev/null || echo no Python
    ls -x /mnt /opt
    python -c 'import sys, torch; print(sys.prefix, torch.__version__)'
    grep --count == /opt/env/conda-meta/pip-constraints.txt
    ls /opt/env/conda-meta/*.json | wc -l
    conda activate base && command -v python && conda --version
    """
    said = boxes.once(f"strata/lab:{VARIANT}", command=("bash", "-euc", script))
    assert (said.code, said.err) == (0, "")
    assert said.out.splitlines() == [
        "uid=1000(dev) gid=1000(dev) groups=1000(dev)",
        "dev:x:1000:1000::/home/dev:/bin/bash",
        "no Python",
        "/mnt:",
        "",
        "/opt:",
        "conda  env  strata",
        "/opt/env 2.10.0",
        "7",
        str(len(PACKAGES)),
        "/opt/conda/bin/python",
        "conda 26.9.0",
    ]
