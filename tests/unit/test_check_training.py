"""The training check: what `ddp-check` says, as an outcome; and containers for checks."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import requests.exceptions
from docker.errors import APIError, NotFound
from docker.types import DeviceRequest

from ddp.shared_memory import Need
from strata.check.container import (
    HOST,
    PID,
    RANK_BYTES,
    container_options,
    remove,
    remove_orphans,
    remove_own,
    shared_gibibytes,
)
from strata.check.nodes import LOGS
from strata.check.options import Training
from strata.check.training import check_training, training_key

if TYPE_CHECKING:
    from collections.abc import Sequence

REPORT: dict[str, Any] = {
    "verdict": "pass",
    "label": "CPU, gloo",
    "world_size": 2,
    "phases": [{"name": "all-reduce", "outcome": "pass"}],
}


class Container:
    """A container that ends as it is told."""

    def __init__(self, *, code: int = 0, stdout: str = "", stderr: str = "") -> None:
        """End with a code, having written this."""
        self.code, self.stdout, self.stderr = code, stdout, stderr
        self.refuses: Exception | None = None
        self.labels: dict[str, str] = {}
        self.removed = 0

    def start(self) -> None:
        """Start, unless the engine refuses."""
        if isinstance(self.refuses, APIError):
            raise self.refuses

    def wait(self, timeout: float) -> dict[str, int]:
        """End, unless it takes too long."""
        assert timeout > 0
        if self.refuses:
            raise self.refuses
        return {"StatusCode": self.code}

    def logs(self, *, stdout: bool, stderr: bool) -> bytes:
        """Return what it wrote to one of the two."""
        assert stdout != stderr
        return (self.stdout if stdout else self.stderr).encode()

    def get_archive(self, path: str) -> tuple[list[bytes], None]:
        """Return what ranks wrote: nothing here."""
        raise NotFound(path)

    def remove(self, *, force: bool, v: bool) -> None:
        """Count."""
        assert force
        assert v
        self.removed += 1


class Engine:
    """The part of Docker's SDK that makes containers; it keeps how they were asked for."""

    def __init__(self, container: Container) -> None:
        """Give this container to whoever asks."""
        self.container = container
        self.argv: list[str] = []
        self.options: dict[str, Any] = {}
        self.containers = SimpleNamespace(create=self._create)
        self.info = lambda: {"SecurityOptions": ["name=seccomp,profile=builtin"]}

    def _create(self, image: str, argv: Sequence[str], **options: Any) -> Container:  # noqa: ANN401 - as docker has it
        assert image == "strata/x:y"
        self.argv, self.options = list(argv), options
        return self.container


class Network:
    """A network that a check has made."""

    def __init__(self, pid: int) -> None:
        """Belong to a process."""
        self.attrs = {"Labels": {PID: str(pid)}}
        self.removed = 0

    def remove(self) -> None:
        """Count."""
        self.removed += 1


def check(container: Container, nproc: str = "", gpus: str = "none") -> tuple[str, str]:
    """Run the check in this container; return verdict and detail."""
    sdk: Any = Engine(container)
    how = Training(nproc=nproc, gpus=gpus)
    with TemporaryDirectory() as folder:
        outcome = check_training(sdk, "strata/x:y", how, Path(folder) / "logs")
    assert outcome.name == "ddp"
    assert outcome.key == training_key(how)
    assert container.removed == 1
    return outcome.verdict, outcome.detail


def test_a_pass_says_on_what() -> None:
    """On the CPU it reads so, and never as a pass on GPUs (case G1)."""
    assert check(Container(stdout=json.dumps(REPORT))) == ("pass", "CPU, gloo, 2 ranks")


def test_what_a_pass_left_out_is_told() -> None:
    """A phase that was not run stands beside the pass, with its reason."""
    phases = [*REPORT["phases"], {"name": "faults", "outcome": "not run", "reason": "takes long"}]
    told = check(Container(stdout=json.dumps(REPORT | {"phases": phases})))
    assert told == ("pass", "CPU, gloo, 2 ranks\nnot run: faults: takes long")


def test_what_was_measured_is_kept_and_drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The report and its plot lie beside the logs, and the outcome names the plot."""
    drawn: list[list[str]] = []
    monkeypatch.setattr("strata.check.training.run", lambda argv, **_: drawn.append(argv[1:]))
    report = REPORT | {"phases": [{"name": "collectives", "outcome": "pass"}]}
    sdk: Any = Engine(Container(stdout=json.dumps(report)))
    logs = tmp_path / "build/checks/v-x"
    outcome = check_training(sdk, "strata/x:y", Training(), logs)
    assert json.loads((logs / "report.json").read_text()) == report
    assert drawn == [["-m", "ddp.plot", str(logs / "report.json"), str(logs / "plot.svg")]]
    assert (outcome.verdict, outcome.plot) == ("pass", "checks/v-x/plot.svg")


def test_what_measured_nothing_names_no_plot(tmp_path: Path) -> None:
    """A check that failed before it measured has none, and neither has one without a report."""
    for container in (Container(stdout=json.dumps(REPORT)), Container(code=1)):
        sdk: Any = Engine(container)
        outcome = check_training(sdk, "strata/x:y", Training(), tmp_path / "checks/v-x")
        assert outcome.plot == ""


def test_a_failed_phase_is_named() -> None:
    """With its reason, the exit code and the last lines."""
    phases = [{"name": "all-reduce", "outcome": "fail", "reason": "rank 1: sum is 2, not 3"}]
    report = json.dumps(REPORT | {"verdict": "fail", "phases": phases})
    verdict, detail = check(Container(code=6, stdout=report, stderr="last words\n"))
    assert verdict == "fail"
    assert detail.startswith(
        "CPU, gloo, 2 ranks\nall-reduce: rank 1: sum is 2, not 3\nexit 6\nlast words\nlogs: /"
    )


@pytest.mark.parametrize(
    "container",
    [
        Container(code=6, stdout=json.dumps(REPORT)),
        Container(code=0, stdout=json.dumps(REPORT | {"verdict": "fail"})),
        Container(code=0, stdout=json.dumps({"label": "CPU, gloo"})),
        Container(code=0, stdout=""),
        Container(code=0, stdout="[]"),
        Container(code=137, stdout='{"verdict": "pa', stderr="Killed"),
    ],
    ids=["code", "verdict", "no-verdict", "silent", "list", "killed"],
)
def test_only_code_and_verdict_together_are_a_pass(container: Container) -> None:
    """What ends well without a report, or reports well and ends badly, has failed."""
    verdict, _ = check(container)
    assert verdict == "fail"


def test_what_a_broken_check_said_is_told() -> None:
    """Its code and its last lines."""
    _, detail = check(Container(code=1, stderr="Traceback\nImportError: torch\n"))
    assert detail == "exit 1, no report:\nTraceback\nImportError: torch"


def test_an_image_without_the_check_has_failed() -> None:
    """The engine's reason is told; it is no traceback."""
    container = Container()
    container.refuses = APIError("400", explanation='exec: "ddp-check": not found')
    verdict, detail = check(container)
    assert (verdict, detail) == (
        "fail",
        'ddp-check did not start: exec: "ddp-check": not found',
    )


def test_a_check_that_takes_too_long_has_failed() -> None:
    """It is removed."""
    container = Container()
    container.refuses = requests.exceptions.ReadTimeout()
    assert check(container) == ("fail", "it did not end within 300 s")


@pytest.mark.parametrize(
    ("nproc", "gpus", "argv"),
    [
        ("", "none", []),
        ("4", "none", ["--nproc", "4"]),
        ("", "all", ["--require-gpu"]),
    ],
)
def test_gpus_are_required_where_they_are_given(
    nproc: str, gpus: str, argv: list[str], tmp_path: Path
) -> None:
    """Then a run on the CPU is no pass."""
    sdk: Any = Engine(Container(stdout=json.dumps(REPORT)))
    check_training(sdk, "strata/x:y", Training(nproc=nproc, gpus=gpus), tmp_path / "logs")
    assert sdk.argv == ["ddp-check", "--json", "--logs", LOGS, *argv]
    assert ("device_requests" in sdk.options) == (gpus == "all")


def test_containers_are_as_a_careful_user_starts_them() -> None:
    """No network, no privileges, room for shared memory (case D1), and our mark."""
    options = container_options(Training())
    assert options == {
        "network_mode": "none",
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "shm_size": "1g",
        "labels": {HOST: platform.node(), PID: str(os.getpid())},
    }


@pytest.mark.parametrize(
    ("nproc", "gpus", "gibibytes"),
    [
        ("", "none", 1),
        ("auto", "none", 1),
        ("22", "none", 1),
        ("23", "none", 2),
        ("64", "none", 3),
        ("", "all", 8),
        ("8", "all by CDI", 8),
        ("200", "all", 9),
    ],
)
def test_shared_memory_grows_with_the_ranks(nproc: str, gpus: str, gibibytes: int) -> None:
    """Each rank's loaders have room; on GPUs the container alone knows how many there are."""
    how = Training(nproc=nproc, gpus=gpus)
    assert shared_gibibytes(how) == gibibytes
    assert container_options(how)["shm_size"] == f"{gibibytes}g"
    if nproc.isdecimal():
        assert gibibytes << 30 >= Need(int(nproc)).bytes


def test_host_and_image_agree_on_what_a_rank_needs() -> None:
    """What the memory phase asks for a rank is what a container is given."""
    assert Need(1).bytes == RANK_BYTES


def test_gpus_are_asked_for_in_the_engines_way() -> None:
    """By capabilities from NVIDIA's runtime; as names, and nothing else, from the driver "cdi"."""
    (by_runtime,) = container_options(Training(gpus="all"))["device_requests"]
    assert by_runtime == DeviceRequest(count=-1, capabilities=[["gpu"]])
    (by_cdi,) = container_options(Training(gpus="all by CDI"))["device_requests"]
    assert by_cdi == DeviceRequest(driver="cdi", device_ids=["nvidia.com/gpu=all"])
    assert (by_cdi["Count"], by_cdi["Options"], by_cdi["Capabilities"]) == (0, {}, [])


def test_only_what_nobody_owns_any_more_is_removed() -> None:
    """A check that runs beside ours keeps its containers."""
    ours, orphan = Container(), Container()
    ours.labels, orphan.labels = {PID: str(os.getpid())}, {PID: "4194305"}
    asked: list[dict[str, Any]] = []

    def listed(**options: Any) -> list[Container]:  # noqa: ANN401 - as docker has it
        asked.append(options)
        return [ours, orphan]

    networks = [Network(os.getpid()), Network(4194305)]
    sdk: Any = SimpleNamespace(
        containers=SimpleNamespace(list=listed),
        networks=SimpleNamespace(list=lambda **_: networks),
    )
    assert remove_orphans(sdk) == 1
    assert [network.removed for network in networks] == [0, 1]
    label = f"{HOST}={platform.node()}"
    assert asked == [{"all": True, "filters": {"label": label}, "ignore_removed": True}]
    assert (ours.removed, orphan.removed) == (0, 1)
    remove_own(sdk)
    assert (ours.removed, orphan.removed) == (1, 1)


@pytest.mark.parametrize("status", [404, 409, 500])
def test_a_container_that_somebody_else_removes_is_no_failure(status: int) -> None:
    """But an engine that refuses is one."""
    answer = requests.Response()
    answer.status_code = status
    refused = (NotFound if status == 404 else APIError)("refused", response=answer)
    calls = []

    def refuse(**_: bool) -> None:
        calls.append(status)
        raise refused

    container: Any = SimpleNamespace(remove=refuse)
    if status == 500:
        with pytest.raises(APIError):
            remove(container)
    else:
        remove(container)
    assert calls == [status]
