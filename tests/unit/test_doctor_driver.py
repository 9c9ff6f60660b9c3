"""The driver against PyTorch's CUDA, on many machines."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from doctor.facts import HOST, Gpu, Unknown
from doctor.judge_driver import (
    OLDEST_DRIVER,
    can_go_forward,
    judge_driver,
    judge_start,
    version_tuple,
)
from strata.lock.accelerator import OLDEST_DRIVER as LOCKED
from tests.unit.doctor_machines import DGX, H100, LAPTOP, NO_LIBRARY, with_nvidia, with_torch

GEFORCE = "NVIDIA GeForce RTX 3090"


def named(name: str, count: int = 1) -> dict[str, Any]:
    """Return a change to GPUs of that name."""
    return {"gpus": tuple(Gpu(index, name, (8, 6), ()) for index in range(count))}


@pytest.mark.parametrize(
    ("driver", "cuda", "wanted", "severity", "words"),
    [
        # Backward compatibility: a driver runs every older CUDA.
        ("575.57.08", (12, 9), (12, 9), "ok", "runs CUDA 12.9"),
        ("580.65.06", (13, 0), (12, 9), "ok", "runs CUDA 12.9"),
        ("575.57.08", (12, 9), (11, 8), "ok", "runs CUDA 11.8"),
        # Minor-version compatibility: from the major's least driver on.
        ("525.60.13", (12, 0), (12, 9), "info", "minor-version compatibility"),
        ("450.80.02", (11, 0), (11, 8), "info", "minor-version compatibility"),
        ("580.65.06", (13, 0), (13, 2), "info", "minor-version compatibility"),
        # Too old for the major.
        ("525.60.12", (12, 0), (12, 9), "error", "needs 525.60.13 or newer"),
        ("470.256.02", (11, 4), (12, 9), "error", "needs 525.60.13 or newer"),
        ("450.51.06", (11, 0), (11, 8), "error", "needs 450.80.02 or newer"),
        ("575.57.08", (12, 9), (13, 0), "error", "needs 580 or newer"),
        # Forward compatibility: the package's libcuda is newer than the module.
        ("470.256.02", (12, 9), (12, 9), "info", "by forward compatibility"),
        # The module would do, but an older libcuda is in use.
        ("580.65.06", (12, 4), (13, 0), "error", "another libcuda is in use"),
        # A major that we don't know the least driver of.
        ("580.65.06", (13, 0), (14, 0), "unknown", "the least driver for CUDA 14.0 is not known"),
    ],
)
def test_a_driver_is_judged_as_compatibility_works(
    driver: str, cuda: tuple[int, int], wanted: tuple[int, int], severity: str, words: str
) -> None:
    """Backward, minor-version and forward compatibility each have their own outcome."""
    machine = with_nvidia(with_torch(DGX, cuda=wanted), driver=driver, module=driver, cuda=cuda)
    finding = judge_driver(machine)
    assert (finding.id, finding.severity) == ("driver", severity)
    assert words in finding.evidence


def test_eight_h100_with_an_old_driver_may_go_forward() -> None:
    """On data-centre GPUs the fix names the upgrade, an older CUDA, and the exact package."""
    old = with_nvidia(DGX, driver="470.256.02", module="470.256.02", cuda=(11, 4))
    fix = judge_driver(old).fix or ""
    assert fix.startswith(
        "upgrade the host's NVIDIA driver to branch 525 or newer, or use an image"
    )
    assert "cuda-compat-12-9" in fix
    assert "/usr/local/cuda-12.9/compat" in fix


def test_geforce_may_not_go_forward() -> None:
    """Where forward compatibility is not supported, the fix doesn't offer it."""
    old = with_nvidia(DGX, driver="470.256.02", cuda=(11, 4), **named(GEFORCE))
    fix = judge_driver(old).fix or ""
    assert "branch 525" in fix
    assert "cuda-compat" not in fix


def test_one_geforce_among_data_centre_gpus_counts() -> None:
    """One GPU that can't go forward is enough not to offer it."""
    mixed = (*named(H100)["gpus"], *named(GEFORCE)["gpus"])
    old = with_nvidia(DGX, driver="470.256.02", cuda=(11, 4), gpus=mixed)
    assert "cuda-compat" not in (judge_driver(old).fix or "")


@pytest.mark.parametrize(
    ("name", "can"),
    [
        (H100, True),
        ("NVIDIA A100-SXM4-80GB", True),
        ("Tesla V100-SXM2-32GB", True),
        ("Tesla T4", True),
        ("NVIDIA A10G", True),
        ("NVIDIA L40S", True),
        ("NVIDIA GH200 480GB", True),
        (GEFORCE, False),
        ("NVIDIA RTX A4000", False),
        ("NVIDIA RTX 6000 Ada Generation", False),
        ("NVIDIA TITAN V", False),
        ("Quadro RTX 8000", False),
    ],
)
def test_data_centre_gpus_are_known_by_name(name: str, can: bool) -> None:  # noqa: FBT001 - a table
    """Tesla's heirs can go forward; GeForce, TITAN, Quadro and RTX can't."""
    assert can_go_forward(name) is can


@pytest.mark.parametrize(
    ("driver", "severity"), [("528.33", "info"), ("527.41", "error"), ("536.40", "info")]
)
def test_wsl_counts_as_windows_does(driver: str, severity: str) -> None:
    """Under WSL the least driver is that of Windows, and the fix is in Windows."""
    machine = with_nvidia(DGX, is_wsl=True, module="", driver=driver, cuda=(12, 0), nodes=("dxg",))
    finding = judge_driver(machine)
    assert finding.severity == severity
    if severity == "error":
        assert finding.fix is not None
        assert "upgrade the NVIDIA driver in Windows (install none inside WSL)" in finding.fix
        assert "cuda-compat" not in finding.fix


def test_a_version_comes_from_the_module_without_nvml() -> None:
    """Without NVML the kernel module's version is judged."""
    machine = with_nvidia(DGX, driver=Unknown("no pynvml"), module="470.256.02", cuda=NO_LIBRARY)
    finding = judge_driver(machine)
    assert finding.severity == "error"
    assert finding.evidence.startswith("driver 470.256.02; PyTorch's CUDA 12.9 needs 525.60.13")


def test_without_libcuda_the_branch_decides() -> None:
    """A newer major's branch runs any older CUDA; the same major's at least by minor version."""
    newer = with_nvidia(DGX, driver="580.65.06", cuda=NO_LIBRARY)
    same = with_nvidia(DGX, driver="570.86.15", cuda=NO_LIBRARY)
    assert judge_driver(newer).severity == "ok"
    assert judge_driver(same).severity == "info"


def test_an_unknown_version_is_never_ok() -> None:
    """A driver that doesn't tell its version is unknown."""
    machine = with_nvidia(DGX, driver=Unknown("no pynvml"), module="", cuda=NO_LIBRARY)
    assert judge_driver(machine).severity == "unknown"


def test_the_locks_know_the_same_drivers() -> None:
    """What runs in the image can't import strata: the two tables of least drivers agree."""
    assert {str(major): least for major, least in OLDEST_DRIVER.items()} == {
        major: version_tuple(text) for major, text in LOCKED.items()
    }


def test_no_gpu_is_no_fault() -> None:
    """A machine without a driver is told of, and is fit."""
    assert judge_driver(LAPTOP).severity == "info"
    assert judge_start(LAPTOP).severity == "info"


@pytest.mark.parametrize(
    ("driver", "severity", "words"),
    [
        ("580.65.06", "ok", "runs images with CUDA 13 and older"),
        ("570.86.15", "ok", "runs images with CUDA 12 and older"),
        ("470.256.02", "ok", "runs images with CUDA 11 and older"),
        ("418.87.00", "error", "is too old for CUDA 11"),
    ],
)
def test_a_host_is_told_what_its_driver_runs(driver: str, severity: str, words: str) -> None:
    """Without a PyTorch to compare with, the driver's branch says which images run."""
    host = with_nvidia(DGX, driver=driver, cuda=NO_LIBRARY)
    finding = judge_driver(replace(host, scope=HOST, torch=Unknown("not on the host")))
    assert finding.severity == severity
    assert words in finding.evidence


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (802, "sudo systemctl start nvidia-fabricmanager"),
        (803, "restart the host"),
        (804, "take the compat folder off LD_LIBRARY_PATH"),
        (999, "sudo modprobe nvidia_uvm"),
        (100, "docker run --gpus all"),
        (12345, "sudo dmesg"),
    ],
)
def test_a_driver_that_does_not_start_is_explained(code: int, words: str) -> None:
    """Each code of cuInit has its own fix, and an unlisted one is an error as well."""
    finding = judge_start(with_nvidia(DGX, start=code))
    assert finding.severity == "error"
    assert f"cuInit returns {code}" in finding.evidence
    assert words in (finding.fix or "")


def test_a_driver_that_starts_is_ok() -> None:
    """CuInit's success is the only ok."""
    assert judge_start(DGX).severity == "ok"


def test_device_files_without_libcuda_name_the_capabilities() -> None:
    """A container with GPUs but without the driver's library was started without `compute`."""
    finding = judge_start(with_nvidia(DGX, start=NO_LIBRARY))
    assert finding.severity == "error"
    assert "NVIDIA_DRIVER_CAPABILITIES=compute,utility" in (finding.fix or "")
