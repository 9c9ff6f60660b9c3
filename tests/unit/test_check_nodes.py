"""Containers that train together: how they are started, what is kept, that all are removed."""

from __future__ import annotations

import io
import json
import tarfile
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from docker.errors import APIError, NotFound

from strata.check.nodes import plan_nodes, rank_log, run_nodes
from strata.check.options import Training
from strata.check.training import check_training, training_key

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

COMMON = ["ddp-check", "--json", "--logs", "/tmp/ddp-check-logs"]  # noqa: S108 - in a container


def archive(**files: str) -> bytes:
    """Return a tar of torchrun's logs, by `RANK_STREAM`."""
    sink = io.BytesIO()
    with tarfile.open(fileobj=sink, mode="w") as made:
        for name, text in files.items():
            rank, stream = name.lstrip("r").split("_")
            path = f"ddp-check-logs/ddp-check_x1/attempt_0/{rank}/{stream}.log"
            info = tarfile.TarInfo(path)
            info.size = len(text)
            made.addfile(info, io.BytesIO(text.encode()))
    return sink.getvalue()


class Container:
    """A container that ends with a code, having written a report."""

    def __init__(self, engine: Engine, name: str, options: dict[str, Any]) -> None:
        """Know how it was asked for."""
        self.engine, self.name, self.options = engine, name, options
        self.node = options["hostname"]

    def start(self) -> None:
        """Start, unless the engine refuses."""
        if self.node == self.engine.refuses:
            raise APIError("refused", explanation="no space left")

    def wait(self, timeout: float) -> dict[str, int]:
        """End with the code that was set for this node."""
        assert 0 < timeout <= 300
        return {"StatusCode": self.engine.codes.get(self.node, 0)}

    def logs(self, *, stdout: bool, stderr: bool) -> bytes:
        """Return its report, or its last words."""
        assert stdout != stderr
        return self.engine.said.get(self.node, "").encode() if stdout else b"last words\n"

    def get_archive(self, path: str) -> tuple[list[bytes], None]:
        """Return what ranks 0 and 1 wrote."""
        if self.node == "node1":
            raise NotFound(path)
        return [archive(r0_stdout="zero", r1_stderr="one")], None

    def remove(self, *, force: bool, v: bool) -> None:
        """Note the order."""
        assert force
        assert v
        self.engine.removed.append(self.node)


class Engine:
    """The part of Docker's SDK that makes containers and networks."""

    def __init__(self) -> None:
        """Have no containers."""
        self.made: list[Container] = []
        self.removed: list[str] = []
        self.codes: dict[str, int] = {}
        self.said: dict[str, str] = {}
        self.refuses = ""
        self.networks_asked: list[dict[str, Any]] = []
        self.containers = SimpleNamespace(create=self._create)
        self.networks = SimpleNamespace(create=self._network)
        self.api = SimpleNamespace(create_endpoint_config=lambda aliases: {"Aliases": aliases})
        self.info = lambda: {"SecurityOptions": ["name=seccomp,profile=builtin"]}

    def _create(self, _image: str, _argv: Sequence[str], **options: Any) -> Container:  # noqa: ANN401 - as docker has it
        self.made.append(Container(self, options["name"], options))
        return self.made[-1]

    def _network(self, name: str, **options: Any) -> SimpleNamespace:  # noqa: ANN401 - as docker has it
        self.networks_asked.append(options)
        return SimpleNamespace(name=name, remove=lambda: self.removed.append("network"))


def run(engine: Any, how: Training, logs: Path) -> list[int]:  # noqa: ANN401 - our SDK
    """Run the check; return the exit codes."""
    return [ended.code for ended in run_nodes(engine, "strata/x:y", how, 60.0, logs)]


def test_one_node_needs_no_network(tmp_path: Path) -> None:
    """It is started without any."""
    engine = Engine()
    assert run(engine, Training(), tmp_path) == [0]
    assert engine.networks_asked == []
    assert engine.made[0].options["network_mode"] == "none"
    assert engine.removed == ["node0"]


def test_two_nodes_meet_where_node_0_is() -> None:
    """Each knows its number, and all name the same place."""
    place = ["--nnodes", "2", "--rdzv", "node0:29400"]
    nodes = plan_nodes(Training(nproc="2", nodes=2))
    assert [node.name for node in nodes] == ["node0", "node1"]
    for rank, node in enumerate(nodes):
        expected = [*COMMON, "--nproc", "2", *place[:2], "--node-rank", str(rank), *place[2:]]
        assert list(node.argv) == expected


@pytest.mark.parametrize(
    ("nproc", "expected"),
    [("2", [("0", "1"), ("2", "3")]), ("", [("0",), ("1",)]), ("auto", [("0",), ("1",)])],
)
def test_nodes_of_one_host_share_its_gpus(nproc: str, expected: list[tuple[str, ...]]) -> None:
    """No GPU is in two of them, and each must have its own."""
    nodes = plan_nodes(Training(nproc=nproc, nodes=2, gpus="all"))
    assert [node.gpus for node in nodes] == expected
    assert all("--require-gpu" in node.argv for node in nodes)


def test_the_network_is_private_and_goes_last(tmp_path: Path) -> None:
    """It leads nowhere else, and holds each node under its name."""
    engine = Engine()
    assert run(engine, Training(nodes=2), tmp_path) == [0, 0]
    assert engine.networks_asked[0]["internal"] is True
    for number, made in enumerate(engine.made):
        (config,) = made.options["networking_config"].values()
        assert config == {"Aliases": [f"node{number}"]}
        assert "network_mode" not in made.options
        assert made.options["cap_drop"] == ["ALL"]
        assert made.options["shm_size"] == "1g"
    assert engine.removed == ["node1", "node0", "network"]


@pytest.mark.parametrize(
    ("gpus", "expected"),
    [
        ("all", {"DeviceIDs": ["2", "3"], "Capabilities": [["gpu"]], "Driver": ""}),
        (
            "all by CDI",
            {
                "DeviceIDs": ["nvidia.com/gpu=2", "nvidia.com/gpu=3"],
                "Capabilities": [],
                "Driver": "cdi",
            },
        ),
    ],
)
def test_each_node_gets_its_own_gpus(gpus: str, expected: dict[str, Any], tmp_path: Path) -> None:
    """By number where NVIDIA's runtime gives them, by name where only CDI does."""
    engine = Engine()
    run(engine, Training(nproc="2", nodes=2, gpus=gpus), tmp_path)
    (request,) = engine.made[1].options["device_requests"]
    assert {key: request[key] for key in expected} == expected
    assert request["Count"] == 0


def test_a_node_that_does_not_start_leaves_nothing(tmp_path: Path) -> None:
    """Neither the others, nor the network."""
    engine = Engine()
    engine.refuses = "node1"
    with pytest.raises(APIError):
        run(engine, Training(nodes=3), tmp_path)
    assert engine.removed == ["node2", "node1", "node0", "network"]


def test_limits_are_raised_for_gpus(tmp_path: Path) -> None:
    """NCCL registers memory; an engine that is not root can't raise anything."""
    engine = Engine()
    run(engine, Training(gpus="all"), tmp_path)
    limits = {limit.name: limit.hard for limit in engine.made[0].options["ulimits"]}
    assert limits == {"memlock": -1, "stack": 67108864}
    run(engine, Training(), tmp_path)
    assert "ulimits" not in engine.made[1].options
    engine.info = lambda: {"SecurityOptions": ["name=rootless"]}
    run(engine, Training(gpus="all"), tmp_path)
    assert engine.made[2].options["ulimits"] == []


def test_logs_are_kept_by_node_and_rank(tmp_path: Path) -> None:
    """Also those of a node that ended before it had ranks."""
    engine = Engine()
    engine.said = {"node0": "zero's report"}
    run(engine, Training(nodes=2), tmp_path)
    found = {
        str(path.relative_to(tmp_path)): path.read_text()
        for path in tmp_path.rglob("*")
        if path.is_file()
    }
    assert found == {
        "node0/stdout.log": "zero's report",
        "node0/stderr.log": "last words\n",
        "node0/local-rank-0.stdout.log": "zero",
        "node0/local-rank-1.stderr.log": "one",
        "node1/stdout.log": "",
        "node1/stderr.log": "last words\n",
    }


def test_a_rank_log_can_only_be_named_after_its_rank() -> None:
    """Whatever a container calls its folders, nothing leaves ours."""
    assert rank_log("logs/../x/attempt_0/1/stderr.log") == "local-rank-1.stderr.log"


def outcome(engine: Any, how: Training, logs: Path) -> tuple[str, str]:  # noqa: ANN401 - our SDK
    """Check; return verdict and detail."""
    found = check_training(engine, "strata/x:y", how, logs)
    return found.verdict, found.detail


def test_all_nodes_must_end_well(tmp_path: Path) -> None:
    """The first report tells on what; one bad exit code fails all of it, and is named."""
    report = {"verdict": "pass", "label": "CPU, gloo", "world_size": 4, "phases": []}
    engine = Engine()
    engine.said = {"node0": json.dumps(report), "node1": json.dumps(report)}
    how, logs = Training(nodes=2), tmp_path / "logs"
    assert outcome(engine, how, logs) == ("pass", "CPU, gloo, 4 ranks on 2 nodes")
    engine.codes = {"node1": 6}
    verdict, detail = outcome(engine, how, logs)
    assert verdict == "fail"
    assert detail.splitlines()[1:3] == ["node1: exit 6", "last words"]


def test_a_node_that_was_lost_is_reported_by_another(tmp_path: Path) -> None:
    """Node 0 may be the one that died."""
    reason = "rank 0 on node0 (node 0): went with its host"
    phase = {"name": "training", "outcome": "fail", "reason": reason}
    report = {"verdict": "fail", "label": "CPU, gloo", "world_size": 4, "phases": [phase]}
    engine = Engine()
    engine.said = {"node1": json.dumps(report)}
    engine.codes = {"node0": 137, "node1": 6}
    verdict, detail = outcome(engine, Training(nodes=2), tmp_path / "logs")
    assert verdict == "fail"
    assert f"training: {reason}" in detail
    assert "node0: exit 137" in detail


def test_the_key_tells_how_it_ran() -> None:
    """Ranks, nodes and GPUs."""
    ways = [Training(), Training(nproc="2"), Training(nodes=2), Training(gpus="all")]
    assert len({training_key(how) for how in ways}) == 4
