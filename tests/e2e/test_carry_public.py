"""The whole way of a public variant into a closed network: `fetch`, all closed, `build --from`."""

from __future__ import annotations

import hashlib
import os
import shutil
import socket
import threading
import uuid
from contextlib import ExitStack, contextmanager
from socketserver import StreamRequestHandler, ThreadingTCPServer
from typing import TYPE_CHECKING

import pytest

from tests.e2e.registry import serve as serve_registry
from tests.e2e.test_carry import holders
from tests.e2e.test_public_path import remove, tagged, upstreams
from tests.e2e.upstreams import PACKAGES, TOKEN, VARIANT, Upstreams
from tests.packages.site import Answer, Site, serve_site

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

    from docker import DockerClient

    from strata.engine import Engine
    from tests.e2e.boxes import Boxes

__all__ = ["upstreams"]

LAB = f"strata/lab:{VARIANT}"
PASSWORD = "of-the-index-s3cret"  # noqa: S105 - of a server that lives for one test
INDEX = "/simple/py-rattler/"
# Nothing of this machine's own pip configuration: the index that is named is the only place.
PIP = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}
LOOK = """
python -c 'import sys, torch; print(sys.prefix, torch.__version__)'
ls /opt/env/conda-meta/*.json | wc -l
conda activate base && conda --version
jupyter --version
"""


@pytest.fixture(scope="module")
def running() -> Iterator[ExitStack]:
    """Hold the servers; who closes it closes them all."""
    with ExitStack() as servers:
        yield servers


@pytest.fixture(scope="module")
def site(running: ExitStack) -> Site:
    """Serve on loopback until all is closed."""
    return running.enter_context(serve_site())


@pytest.fixture(scope="module")
def registry(running: ExitStack, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """Run a registry until all is closed; return its address and its folder."""
    folder = tmp_path_factory.mktemp("registry")
    return running.enter_context(contextmanager(serve_registry)(folder)), folder


def fetch(
    upstreams: Upstreams, cache: Path, folder: Path, secrets: tuple[str, ...]
) -> subprocess.CompletedProcess[str]:
    """Run `./inv fetch` with every mirror; see that no secret is said."""
    index = upstreams.site.address.replace("http://", "http://ada:$INDEX_PASSWORD@")
    more = {"STRATA_PYTHON_INDEX": f"{index}/simple/", "INDEX_PASSWORD": PASSWORD, **PIP}
    argv = ("fetch", "--variant", VARIANT, "--image", "lab", "--to", str(folder))
    done = upstreams.project.inv(*argv, env=upstreams.env(cache, **more), timeout=600)
    assert "Traceback" not in done.stderr, done.stderr
    assert [secret for secret in secrets if secret in done.stdout + done.stderr] == []
    return done


class Watch(ThreadingTCPServer):
    """A proxy that answers nobody, and notes what it is asked: a request's first line."""

    daemon_threads = True

    def __init__(self) -> None:
        """Listen on a free port of loopback."""
        super().__init__(("127.0.0.1", 0), _Note)
        self.asked: list[str] = []
        self.address = f"http://127.0.0.1:{self.server_address[1]}"


class _Note(StreamRequestHandler):
    server: Watch

    def handle(self) -> None:
        """Note the first line and hang up."""
        self.server.asked.append(self.rfile.readline().decode())


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Wait for whoever asks the network, by http or by https."""
    with Watch() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def build_from(
    upstreams: Upstreams, watch: Watch, cache: Path, folder: Path
) -> subprocess.CompletedProcess[str]:
    """Run `./inv build --from`, without a mirror; see that nothing asks the network."""
    env = {**upstreams.engine, **PIP, "STRATA_CACHE": str(cache), "STRATA_PROXY": watch.address}
    argv = ("build", "--variant", VARIANT, "--image", "lab", "--no-check", "--from", str(folder))
    done = upstreams.project.inv(*argv, env=env, timeout=600)
    assert "Traceback" not in done.stderr, done.stderr
    assert watch.asked == []
    return done


def is_open(address: str) -> bool:
    """Whether anybody listens at `HOST:PORT`."""
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        return probe.connect_ex((host, int(port))) == 0


def test_the_whole_way_into_a_closed_network(
    *,
    upstreams: Upstreams,
    running: ExitStack,
    watch: Watch,
    engine: Engine,
    docker_client: DockerClient,
    boxes: Boxes,
    tmp_path: Path,
) -> None:
    """What was fetched into a folder builds the very same layers when nobody is left to ask."""
    project, site, folder = upstreams.project, upstreams.site, tmp_path / "carried away"
    upstreams.heal()
    (wheel,) = (upstreams.seed / "wheels").glob("py_rattler-*.whl")
    site.put(f"{INDEX}{wheel.name}", wheel.read_bytes())
    online = tmp_path / "online"
    secrets = (TOKEN, PASSWORD)

    occupied = project.write("occupied", "")
    done = fetch(upstreams, online, occupied, secrets)
    assert (done.returncode, "cannot be written: Not a dir" in done.stderr) == (8, True), (
        done.stderr
    )
    assert site.asked == []

    # The index refuses: pip says so, without the password that it was given.
    site.put(INDEX, Answer(status=403))
    done = fetch(upstreams, online, folder, secrets)
    assert (done.returncode, "No matching distribution" in done.stderr) == (4, True), done.stderr
    assert "authorization" in dict(site.asked)[INDEX]
    assert not (folder / "carried.json").exists()
    assert tagged(engine) == []

    page = f'<a href="{wheel.name}">{wheel.name}</a>'.encode()
    site.put(INDEX, Answer(body=page, headers={"Content-Type": "text/html"}))
    done = fetch(upstreams, online, folder, secrets)
    assert done.returncode == 0, done.stderr
    assert "downloads of 10-base" in done.stdout
    assert [h for secret in secrets for h in holders(secret, folder, online, project.root)] == []
    layers = docker_client.images.get(LAB).attrs["RootFS"]["Layers"]

    # Another machine, in a closed network: no image, no cache, no server.
    running.close()
    assert [is_open(host) for host in (site.address[7:], upstreams.registry)] == [False, False]
    remove(docker_client, *tagged(engine))
    shutil.rmtree(project.root / "build")
    # The engine's own cache has all steps of this content, but for what this changes.
    marked = f"USER 0\nENV STRATA_TEST={uuid.uuid4().hex}\n"
    project.replace("layers/10-base/Dockerfile", "USER 0\n", marked)
    offline = tmp_path / "offline"
    away = folder / "files" / hashlib.sha256(upstreams.installer).hexdigest()
    for name, code, said in (("gone", 4, "is not in"), ("other", 3, "is not the file")):
        held = away.rename(tmp_path / name)
        if name == "other":
            away.write_bytes(b"#!/bin/sh\n")
        done = build_from(upstreams, watch, offline, folder)
        held.replace(away)
        assert (done.returncode, said in done.stderr) == (code, True), done.stderr
        assert tagged(engine) == []

    done = build_from(upstreams, watch, offline, folder)
    assert done.returncode == 0, done.stderr
    # All was done anew: apt's packages, conda and both environments.
    news = ("Fetched ", "conda 26.9.0", "installed 10 packages", "installed 2 packages")
    assert [new for new in news if new not in done.stderr] == []
    assert docker_client.images.get(LAB).attrs["RootFS"]["Layers"] == layers
    looked = boxes.once(LAB, command=("bash", "-euc", LOOK))
    assert (looked.code, looked.err) == (0, "")
    assert looked.out.splitlines() == [
        "/opt/env 2.10.0",
        str(len(PACKAGES)),
        "conda 26.9.0",
        "4.6.3",
    ]
