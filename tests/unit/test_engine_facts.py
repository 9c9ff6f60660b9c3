"""What is read from an engine's answers, and what makes it unfit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from strata.engine.connect import Engine
from strata.engine.facts import EngineFacts, facts_of, gives_gpus, problems_of, version_tuple
from strata.errors import HostError

if TYPE_CHECKING:
    from pathlib import Path

ENGINE = Engine(host="unix:///run/docker.sock", origin="socket")
FIT = EngineFacts(
    product="Engine",
    version="26.1.5+dfsg1",
    buildx="0.13.1+ds1",
    data_root="/var/lib/docker",
    free_bytes=9_000_000_000,
    storage_driver="overlayfs",
    has_containerd_store=True,
    offers_gpus=False,
)
INFO: dict[str, Any] = {
    "DockerRootDir": "/nowhere/docker",
    "Driver": "overlayfs",
    "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]],
    "Runtimes": {"runc": {}},
    "CDISpecDirs": [],
}
VERSION = {"Version": "26.1.5", "Components": [{"Name": "Engine"}]}


def whats(facts: EngineFacts) -> list[str]:
    """Return what is wrong with such an engine when 5 GB are needed."""
    return [problem.what for problem in problems_of(facts, ENGINE, 5_000_000_000)]


def test_a_fit_engine_has_no_problem() -> None:
    """The engine that strata was measured with passes."""
    assert whats(FIT) == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"version": "20.10.24+dfsg1"}, "its version is 20.10.24+dfsg1, and 24 is the oldest"),
        ({"product": "Podman Engine", "version": "4.3.1"}, "it is Podman, not Docker"),
        ({"has_containerd_store": False, "storage_driver": "overlay2"}, "classic one (overlay2)"),
        ({"buildx": ""}, "`docker buildx` is missing"),
        ({"buildx": "v0.12.1"}, "buildx is v0.12.1, and 0.13 is the oldest"),
        ({"free_bytes": 4_900_000_000}, "has 4.9 GB free, and 5.0 GB are needed"),
    ],
)
def test_each_lack_is_named(change: dict[str, Any], what: str) -> None:
    """Every way in which an engine is unfit is one problem that says which."""
    (said,) = whats(replace(FIT, **change))
    assert what in said


def test_all_lacks_are_named_at_once() -> None:
    """A person who mends an engine learns everything in one run."""
    assert len(whats(replace(FIT, version="23.0.1", buildx="", free_bytes=1))) == 3


def test_the_classic_store_has_two_ways_out() -> None:
    """The fix for the classic image store names the setting and the private engine."""
    (problem,) = problems_of(replace(FIT, has_containerd_store=False), ENGINE, 0)
    assert "containerd-snapshotter" in problem.fix
    assert "STRATA_ENGINE=private" in problem.fix


def test_a_distant_disk_is_not_measured() -> None:
    """Free space is unknown, and no problem, where the data root is not on this machine."""
    facts = facts_of(INFO, VERSION, "0.13.1", is_local=True)
    assert facts.free_bytes is None
    assert whats(facts) == []


def test_a_local_disk_is_measured(tmp_path: Path) -> None:
    """Free space is that of the file system which holds the data root."""
    info = {**INFO, "DockerRootDir": str(tmp_path)}
    assert facts_of(info, VERSION, "0.13.1", is_local=True).free_bytes is not None
    assert facts_of(info, VERSION, "0.13.1", is_local=False).free_bytes is None


def test_the_store_is_read_from_the_driver() -> None:
    """Only the driver type tells the two image stores apart."""
    assert facts_of(INFO, VERSION, "", is_local=True).has_containerd_store
    classic = {**INFO, "DriverStatus": [["Backing Filesystem", "extfs"]]}
    assert not facts_of(classic, VERSION, "", is_local=True).has_containerd_store


def test_gpus_are_offered_by_a_runtime_or_by_cdi(tmp_path: Path) -> None:
    """The nvidia runtime, a listed device and a CDI file each mean that GPUs can be given."""
    (tmp_path / "nvidia.yaml").write_text("kind: nvidia.com/gpu\n")
    offers: list[dict[str, Any]] = [
        {"Runtimes": {"nvidia": {}}},
        {"DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}]},
        {"CDISpecDirs": [str(tmp_path)]},
    ]
    for offer in offers:
        facts = facts_of({**INFO, **offer}, VERSION, "", is_local=True)
        assert facts.offers_gpus
        assert facts.gives_gpus_by_cdi is ("Runtimes" not in offer)
    assert not facts_of(INFO, VERSION, "", is_local=True).offers_gpus


def test_a_damaged_cdi_file_leaves_open_whether_there_are_gpus(tmp_path: Path) -> None:
    """It is neither "no GPU" nor a traceback: exit code 8, unless GPUs are offered otherwise."""
    (tmp_path / "nvidia.yaml").write_text("")
    info = {**INFO, "CDISpecDirs": [str(tmp_path)]}
    facts = facts_of(info, VERSION, "", is_local=True)
    assert not facts.offers_gpus
    with pytest.raises(HostError, match="it is empty") as error:
        gives_gpus(facts)
    assert error.value.exit_code == 8
    assert gives_gpus(facts_of({**info, "Runtimes": {"nvidia": {}}}, VERSION, "", is_local=True))
    assert not gives_gpus(facts_of(info, VERSION, "", is_local=False))


@pytest.mark.parametrize(
    ("text", "numbers"),
    [("v0.13.1+ds1", (0, 13, 1)), ("26.1.5+dfsg1", (26, 1, 5)), ("29", (29,)), ("dev", ())],
)
def test_versions_are_compared_as_numbers(text: str, numbers: tuple[int, ...]) -> None:
    """A distribution's suffix does not matter, and 0.9 is older than 0.13."""
    assert version_tuple(text) == numbers
    assert version_tuple("0.9") < version_tuple("0.13")
