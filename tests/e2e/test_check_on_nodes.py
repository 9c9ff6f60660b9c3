"""`check --nodes 2`: containers that train together, and one of them killed in the middle."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from strata.check.container import HOST
from strata.check.options import Training
from strata.check.training import check_training
from tests.e2e.boxes import until

if TYPE_CHECKING:
    from pathlib import Path

    from docker import DockerClient
    from docker.models.containers import Container

    from tests.e2e.boxes import Image

TWO = Training(nproc="1", nodes=2)


def node(sdk: DockerClient, name: str) -> Container | None:
    """Return the running container of a node, when its rank has been started."""
    for container in sdk.containers.list(filters={"label": HOST, "name": f"strata-check-{name}-"}):
        processes = container.top()["Processes"]
        if any("ddp.rank" in " ".join(words) for words in processes):
            return container
    return None


def left(sdk: DockerClient) -> list[str]:
    """Return what checks of two nodes have left in the engine."""
    containers = sdk.containers.list(all=True, filters={"name": "strata-check-node1-"})
    networks = sdk.networks.list(filters={"label": HOST})
    return [str(found.attrs["Name"]) for found in (*containers, *networks)]


def test_two_containers_train_together(
    docker_client: DockerClient, image: Image, tmp_path: Path
) -> None:
    """They pass as one, over a network of their own; what each wrote is kept, nothing is left."""
    outcome = check_training(docker_client, image("slim"), TWO, tmp_path / "logs")
    assert outcome.verdict == "pass", outcome.detail
    assert outcome.detail.splitlines()[0] == "CPU, gloo, 2 ranks on 2 nodes"
    assert outcome.seconds < 300
    assert left(docker_client) == []
    kept = {str(path.relative_to(tmp_path / "logs")) for path in tmp_path.rglob("*.log")}
    for name in ("node0", "node1"):
        files = ["stdout", "stderr", "local-rank-0.stdout", "local-rank-0.stderr"]
        assert {f"{name}/{file}.log" for file in files} <= kept
        document = json.loads((tmp_path / "logs" / name / "stdout.log").read_text())
        hosts = {(host["node"], host["host"]) for host in document["facts"]["hosts"]}
        assert hosts == {(0, "node0"), (1, "node1")}


def test_the_other_ends_when_a_container_is_killed(
    docker_client: DockerClient, image: Image, tmp_path: Path
) -> None:
    """Within 60 s, with the node named; both had what training needs, and both are removed."""
    outcomes: list[Any] = []

    def check() -> None:
        outcomes.append(check_training(docker_client, image("slim"), TWO, tmp_path / "logs"))

    thread = threading.Thread(target=check)
    thread.start()
    try:
        victim = until(lambda: node(docker_client, "node1"), "the rank of node 1", patience=120)
        victim.reload()
        settings = victim.attrs["HostConfig"]
        first = victim.exec_run(["cat", "/proc/1/comm"]).output
        victim.kill()
        killed = time.monotonic()
    finally:
        thread.join()
    assert time.monotonic() - killed < 60
    assert (settings["ShmSize"], settings["CapDrop"], first) == (2**30, ["ALL"], b"tini\n")
    (outcome,) = outcomes
    assert outcome.verdict == "fail"
    assert "on node1 (node 1): went with its host, of which nothing came back" in outcome.detail
    assert "node1: exit 137" in outcome.detail
    assert left(docker_client) == []


@pytest.fixture(scope="module", autouse=True)
def _nothing_before(docker_client: DockerClient) -> None:
    """Fail early where an earlier run has left something."""
    assert left(docker_client) == []
