"""What the end-to-end tests share: the engine, and the images that `./inv build` left in it."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from strata.engine import Engine, client, find_engine
from strata.workspace import Workspace
from tests.e2e.boxes import ROOT, Boxes, Image
from tests.e2e.sshclient import FOO, KEYS, PORT, Client, Key, make_key, wait_for_ssh

if TYPE_CHECKING:
    from collections.abc import Iterator

    from docker import DockerClient

    from tests.e2e.boxes import Box

VARIANT = "embedded"


@pytest.fixture(scope="session")
def engine() -> Engine:
    """Return the engine that strata would use, or fail: without one nothing is shown."""
    found = find_engine(Workspace.of(ROOT))
    if found is None:
        pytest.fail("there is no Docker engine; ./inv build starts one", pytrace=False)
    return found


@pytest.fixture(scope="session")
def docker_client(engine: Engine) -> Iterator[DockerClient]:
    """Docker's SDK for that engine."""
    sdk = client(engine, timeout=300)
    try:
        yield sdk
    finally:
        sdk.close()


@pytest.fixture(scope="session")
def image(docker_client: DockerClient) -> Image:
    """Return the reference of a built image, or fail where it is missing."""

    def reference(name: str) -> str:
        found = f"strata/{name}:{VARIANT}"
        if not docker_client.images.list(found):
            pytest.fail(f"there is no image {found}; ./inv build makes it", pytrace=False)
        return found

    return reference


@pytest.fixture
def free_port() -> int:
    """Return a port of this machine's loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def boxes(engine: Engine, image: Image) -> Iterator[Boxes]:
    """Start containers for one test."""
    found = Boxes(engine.env, image)
    try:
        yield found
    finally:
        found.close()


@pytest.fixture(scope="module")
def shared_boxes(engine: Engine, image: Image) -> Iterator[Boxes]:
    """Start containers that the tests of a file share."""
    found = Boxes(engine.env, image)
    try:
        yield found
    finally:
        found.close()


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Key:
    """Make the key that is let in."""
    return make_key(tmp_path_factory.mktemp("ssh"), "ada")


@pytest.fixture(scope="module", params=["remote", "dev"])
def door(request: pytest.FixtureRequest, shared_boxes: Boxes, key: Key) -> tuple[Box, Client]:
    """Start each image that has SSH, as its README says, with a few variables."""
    box = shared_boxes.start(
        request.param,
        *PORT,
        *("--volume", f"{key.file}.pub:{KEYS}:ro"),
        *("--env", f"FOO={FOO}", "--env", "NCCL_DEBUG=INFO", "--env", "JUPYTER_TOKEN=not yours"),
    )
    return box, Client(wait_for_ssh(box), key)
