"""What the doctor says of the host's engine and disk."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from doctor.facts import Unknown
from strata.doctor.engine import EngineState, judge_engine, probe_engine, state_of
from strata.doctor.host import HOST_ONLY, judge_disk
from strata.doctor.variants import Need, judge_variants, probe_needs
from strata.engine.connect import Engine
from strata.errors import Problem
from strata.workspace import Workspace
from tests.unit.doctor_machines import DGX, LAPTOP

if TYPE_CHECKING:
    from doctor.facts import Nvidia
    from doctor.findings import Finding

HERE = Engine(host="unix:///run/docker.sock", origin="socket")
AWAY = Engine(host="tcp://build.example:2376", origin="DOCKER_HOST")
INFO: dict[str, Any] = {
    "DockerRootDir": "/nowhere/docker",
    "Driver": "overlayfs",
    "DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]],
    "Runtimes": {"runc": {}},
    "CDISpecDirs": [],
    "CgroupVersion": "2",
    "CgroupDriver": "systemd",
    "SecurityOptions": ["name=seccomp,profile=builtin"],
}
VERSION = {"Version": "26.1.5", "Components": [{"Name": "Engine"}]}
GPUS: dict[str, Any] = {"Runtimes": {"nvidia": {}}}
ROOTLESS: dict[str, Any] = {"SecurityOptions": ["name=seccomp", "name=rootless"]}


def state(engine: Engine = HERE, buildx: str = "0.13.1", **changes: Any) -> EngineState:  # noqa: ANN401 - of /info
    """Return what an engine with these answers is."""
    return state_of(engine, {**INFO, **changes}, VERSION, buildx)


def finding(name: str, found: EngineState, nvidia: Any = LAPTOP.nvidia) -> Finding:  # noqa: ANN401
    """Return the engine's finding of that name."""
    (one,) = [f for f in judge_engine(found, nvidia) if f.id == name]
    return one


def test_a_good_engine_is_ok() -> None:
    """Every finding about an engine as strata wants it is ok or info."""
    found = judge_engine(state(), LAPTOP.nvidia)
    assert [(f.id, f.severity) for f in found] == [
        ("engine", "ok"),
        ("engine-cgroups", "ok"),
        ("engine-rootless", "ok"),
        ("engine-gpus", "info"),
    ]


def test_every_lack_is_a_finding() -> None:
    """What keeps strata from building is an error each, with the fix that the build tells."""
    found = judge_engine(state(buildx="", DriverStatus=[]), LAPTOP.nvidia)
    errors = [f for f in found if f.severity == "error"]
    assert [f.id for f in errors] == ["engine", "engine"]
    assert "image store is the classic one" in errors[0].evidence
    assert "containerd-snapshotter" in (errors[0].fix or "")
    assert "docker-buildx" in (errors[1].fix or "")


@pytest.mark.parametrize(
    ("changes", "severity"),
    [
        ({}, "ok"),
        ({"CgroupVersion": "1", "CgroupDriver": "cgroupfs"}, "info"),
        ({"CgroupVersion": ""}, "unknown"),
        ({**ROOTLESS}, "ok"),
        ({**ROOTLESS, "CgroupDriver": "none"}, "warning"),
        ({**ROOTLESS, "CgroupVersion": "1"}, "warning"),
    ],
)
def test_cgroups(changes: dict[str, Any], severity: str) -> None:
    """A rootless engine without cgroups silently ignores limits."""
    assert finding("engine-cgroups", state(**changes)).severity == severity


def test_a_rootless_engine_is_told_of() -> None:
    """Its GPUs need another setting of the toolkit."""
    rootless = finding("engine-rootless", state(**ROOTLESS))
    assert rootless.severity == "info"
    assert "nvidia-container-cli.no-cgroups" in (rootless.fix or "")


@pytest.mark.parametrize(
    ("found", "nvidia", "severity"),
    [
        (state(), LAPTOP.nvidia, "info"),
        (state(), DGX.nvidia, "error"),
        (state(**GPUS), DGX.nvidia, "ok"),
        (state(**GPUS), LAPTOP.nvidia, "info"),
        (state(AWAY), DGX.nvidia, "unknown"),
        (state(AWAY, **GPUS), LAPTOP.nvidia, "ok"),
    ],
)
def test_gpus_for_containers(found: EngineState, nvidia: Any, severity: str) -> None:  # noqa: ANN401
    """A driver without toolkit or CDI is an error; another machine's driver can't be asked."""
    assert finding("engine-gpus", found, nvidia).severity == severity


def test_the_toolkit_is_the_fix() -> None:
    """Root's engine and a rootless one are configured differently."""
    assert "sudo systemctl restart docker" in (
        finding("engine-gpus", state(), DGX.nvidia).fix or ""
    )
    rootless = finding("engine-gpus", state(**ROOTLESS), DGX.nvidia)
    assert "systemctl --user restart docker" in (rootless.fix or "")


def test_the_documentation_has_the_hosts_checks() -> None:
    """docs/doctor.md lists what is asked on the host alone, and all of that is asked."""
    assert HOST_ONLY in (Path(__file__).parents[2] / "docs/doctor.md").read_text()
    rooms = {"cache": (Path("/c"), 1)}
    found = [*judge_engine(state(), LAPTOP.nvidia), judge_variants((), LAPTOP.nvidia)]
    found.append(judge_disk(rooms))
    rows = re.findall(r"^\| `([a-z-]+)`", HOST_ONLY, flags=re.MULTILINE)
    assert rows == [f.id for f in found]


@pytest.mark.parametrize(("driver", "severity"), [("575.57.08", "ok"), ("550.54.15", "warning")])
def test_a_cdi_file_of_another_driver_is_stale(tmp_path: Path, driver: str, severity: str) -> None:
    """After an upgrade of the driver its CDI file must be made anew."""
    file = tmp_path / "nvidia.yaml"
    mount = f"containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.{driver}"
    file.write_text(f"kind: nvidia.com/gpu\nmounts:\n  - {mount}\n")
    (tmp_path / "other.json").write_text('{"kind": "vendor.example/nic"}')
    found = finding("engine-gpus", state(CDISpecDirs=[str(tmp_path)]), DGX.nvidia)
    assert found.severity == severity
    if severity == "warning":
        assert found.evidence == f"{file} is for driver 550.54.15, and 575.57.08 is loaded"
        assert found.fix == f"sudo nvidia-ctk cdi generate --output={file}"


def test_what_the_engine_has_is_the_evidence() -> None:
    """Runtimes and CDI folders are named where GPUs are not offered."""
    found = finding("engine-gpus", state(CDISpecDirs=["/etc/cdi"]), DGX.nvidia)
    assert "(runtimes: runc; CDI folders: /etc/cdi)" in found.evidence


def test_without_an_engine_the_rest_is_unknown() -> None:
    """What can't be asked is never ok."""
    found = judge_engine(None, LAPTOP.nvidia)
    assert [(f.id, f.severity) for f in found] == [
        ("engine", "warning"),
        ("engine-cgroups", "unknown"),
        ("engine-rootless", "unknown"),
        ("engine-gpus", "unknown"),
    ]


def test_an_engine_that_does_not_answer_is_an_error() -> None:
    """Its problems are kept with their fixes."""
    problem = Problem(where="Docker engine", what="it does not answer", fix="start it")
    first = judge_engine((problem,), LAPTOP.nvidia)[0]
    assert (first.severity, first.evidence, first.fix) == (
        "error",
        "Docker engine: it does not answer",
        "start it",
    )


def test_nothing_is_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An engine that is named and not there is a problem, not a reason to install one."""
    monkeypatch.delenv("STRATA_ENGINE", raising=False)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/docker.sock")
    found = probe_engine(Workspace.of(tmp_path))
    assert isinstance(found, tuple)
    assert "there is no such socket" in found[0].what


def test_a_cdi_file_that_is_none_is_a_warning(tmp_path: Path) -> None:
    """A damaged CDI file is named with reason and fix, and the other checks are still made."""
    file = tmp_path / "nvidia.yaml"
    file.write_text("kind: [")
    found = finding("engine-gpus", state(CDISpecDirs=[str(tmp_path)]), DGX.nvidia)
    assert (found.severity, found.evidence.partition(" (")[0]) == (
        "warning",
        f"{file} is no CDI specification",
    )
    assert (found.fix or "").startswith(f"sudo nvidia-ctk cdi generate --output={file}")


@pytest.mark.parametrize(
    ("free", "severity"),
    [(5_000_000_000, "ok"), (4_999_999_999, "warning"), (None, "unknown")],
)
def test_disk(free: int | None, severity: str) -> None:
    """The narrowest folder decides, and one that can't be asked is unknown."""
    rooms = {"cache": (Path("/c"), free), "build folder": (Path("/b"), 9_000_000_000)}
    assert judge_disk(rooms).severity == severity


def test_unknown_is_not_there() -> None:
    """A driver of which nothing can be seen is not there, and one node is enough to be."""
    assert not LAPTOP.nvidia.is_there
    assert isinstance(LAPTOP.nvidia.start, Unknown)
    assert DGX.nvidia.is_there


NEEDS = (
    Need(variant="cuda118-py39", driver="450.80.02"),
    Need(variant="cuda129", driver="525.60.13"),
    Need(variant="cuda130", driver="580"),
)


def driven(version: str) -> Nvidia:
    """Return eight H100 with that driver."""
    return replace(DGX.nvidia, driver=version, module=version)


@pytest.mark.parametrize(
    ("version", "severity", "words"),
    [
        ("580.65.06", "ok", "driver 580.65.06 runs cuda118-py39, cuda129, cuda130"),
        ("570.86.15", "info", "cuda130 needs driver 580"),
        ("525.60.12", "info", "cuda129 needs driver 525.60.13; cuda130 needs driver 580"),
        ("450.80.02", "info", "cuda129 needs driver 525.60.13; cuda130 needs driver 580"),
        ("440.33.01", "error", "cuda118-py39 needs driver 450.80.02; cuda129 needs"),
    ],
)
def test_variants_are_compared_with_the_driver(version: str, severity: str, words: str) -> None:
    """Some that don't run are worth knowing; none that runs is an error."""
    found = judge_variants(NEEDS, driven(version))
    assert found.severity == severity
    assert words in found.evidence


def test_the_variants_that_run_are_the_way_out() -> None:
    """The fix names them, and the upgrade."""
    found = judge_variants(NEEDS, driven("470.256.02"))
    assert found.fix == "upgrade this host's driver (470.256.02), or use cuda118-py39"
    old = judge_variants(NEEDS, driven("440.33.01"))
    assert old.fix == "upgrade this host's driver (440.33.01), or use a CPU variant"


def test_variants_that_can_not_be_compared_are_unknown() -> None:
    """Windows' numbers, no number at all, and pins that can't be read are never ok."""
    assert judge_variants(NEEDS, LAPTOP.nvidia).severity == "info"
    wsl = replace(driven("536.40"), is_wsl=True)
    assert judge_variants(NEEDS, wsl).severity == "unknown"
    silent = replace(DGX.nvidia, driver=Unknown("no pynvml"), module="")
    assert judge_variants(NEEDS, silent).severity == "unknown"
    broken = (*NEEDS, Need(variant="mine", fault="invalid YAML"))
    found = judge_variants(broken, driven("580.65.06"))
    assert (found.severity, found.evidence) == (
        "unknown",
        "mine: its pins can't be read: invalid YAML",
    )


def test_needs_are_read_from_the_pins(tmp_path: Path) -> None:
    """A variant without CUDA needs no driver; broken pins are told of."""
    pins = "accelerator: {}\nchannels: [https://conda.anaconda.org/conda-forge/]\n"
    pins += "platforms: [linux-64]\nvirtual-packages:\n  linux-64: {{__glibc: '2.35'}}\n{}"
    for name, text in {
        "broken": "accelerator: [\n",
        "cpu": pins.format("cpu", ""),
        "cuda": pins.format("cuda", 'minimum-driver: "525.60.13"\n'),
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "pins.yml").write_text(text)
    broken, cuda = probe_needs(tmp_path)
    assert (broken.variant, broken.driver) == ("broken", "")
    assert broken.fault
    assert cuda == Need(variant="cuda", driver="525.60.13")
