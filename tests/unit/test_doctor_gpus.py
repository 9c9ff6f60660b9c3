"""GPUs: seen or not, with code for them, at full speed, within reach of each other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from doctor.facts import HOST, Facts, Gpu, Torch, Unknown
from doctor.judge_gpus import (
    has_code_for,
    judge_architecture,
    judge_clocks,
    judge_gpus,
    judge_peers,
    judge_torch,
)
from tests.unit.doctor_machines import (
    DGX,
    H100,
    LAPTOP,
    NO_NVML,
    with_nvidia,
    with_settings,
    with_torch,
)

UNGIVEN = with_nvidia(DGX, nodes=(), gpus=NO_NVML, cuda=NO_NVML, start=NO_NVML)


@pytest.mark.parametrize(
    ("machine", "severity", "words"),
    [
        (DGX, "ok", f"8 x {H100}"),
        (LAPTOP, "info", "there is no GPU: ranks train on the CPU, with gloo"),
        (
            with_nvidia(LAPTOP, cards=2),
            "warning",
            "2 NVIDIA cards are on the PCI bus, and no driver",
        ),
        (UNGIVEN, "warning", "the host has driver 575.57.08, and this container was given no GPU"),
        (
            with_nvidia(UNGIVEN, module="", cards=0),
            "warning",
            "built for CUDA, and no NVIDIA driver is here",
        ),
        (with_torch(DGX, gpus=0), "error", "and PyTorch sees no GPU"),
        (with_torch(DGX, cuda=None), "info", "is built for the CPU and uses no GPU"),
        (with_torch(DGX, gpus=4), "info", f"PyTorch sees 4 of 8 x {H100}"),
        (with_nvidia(DGX, gpus=NO_NVML), "ok", "PyTorch sees 8 GPU"),
        (
            with_settings(with_torch(DGX, gpus=0), CUDA_VISIBLE_DEVICES=""),
            "info",
            "CUDA_VISIBLE_DEVICES hides every GPU",
        ),
        (replace(DGX, scope=HOST, torch=Unknown("not here")), "ok", f"8 x {H100}"),
        (
            replace(with_nvidia(DGX, gpus=NO_NVML), scope=HOST, torch=Unknown("not here")),
            "unknown",
            "no pynvml",
        ),
    ],
)
def test_gpus_are_compared_with_what_pytorch_sees(
    machine: Facts, severity: str, words: str
) -> None:
    """From the PCI bus to PyTorch, the place where GPUs get lost is named."""
    finding = judge_gpus(machine)
    assert finding.severity == severity
    assert words in finding.evidence


def test_unlike_gpus_are_told_of() -> None:
    """A T4 beside an H100 slows the job down."""
    gpus = (Gpu(0, H100, (9, 0), ()), Gpu(1, "Tesla T4", (7, 5), ()))
    finding = judge_gpus(with_torch(with_nvidia(DGX, gpus=gpus), gpus=2))
    assert finding.severity == "info"
    assert finding.evidence == f"1 x {H100}, 1 x Tesla T4: the slowest sets the pace"


def test_a_container_without_gpus_is_told_how_to_get_them() -> None:
    """The fix is the option of docker run."""
    assert (judge_gpus(UNGIVEN).fix or "").startswith("docker run --gpus all")


def test_a_broken_pytorch_is_an_error_only_in_an_image() -> None:
    """An import that fails breaks a container; a host needs no PyTorch."""
    broken = replace(LAPTOP, torch=Unknown("torch can't be imported: libgomp.so.1"))
    assert judge_torch(broken).severity == "error"
    assert judge_torch(replace(broken, scope=HOST)).severity == "unknown"
    assert judge_torch(LAPTOP).evidence == "torch 2.13.0+cpu, built for the CPU"
    assert judge_torch(DGX).evidence == "torch 2.8.0, built for CUDA 12.9"


@pytest.mark.parametrize(
    ("architectures", "capability", "has_code"),
    [
        (("sm_80",), (8, 0), True),
        (("sm_80",), (8, 6), True),
        (("sm_86",), (8, 0), False),
        (("sm_80",), (9, 0), False),
        (("compute_80",), (9, 0), True),
        (("compute_90",), (8, 9), False),
        (("sm_90a",), (9, 0), True),
        (("compute_90a",), (10, 0), False),
        (("sm_100f",), (10, 3), True),
        (("sm_100f",), (12, 0), False),
        (("sm_120",), (12, 0), True),
        ((), (9, 0), False),
    ],
)
def test_code_runs_by_the_rules_of_cuda(
    architectures: tuple[str, ...],
    capability: tuple[int, int],
    has_code: bool,  # noqa: FBT001 - a table
) -> None:
    """Binaries run on later minor versions, PTX on anything later, lettered ones on their own."""
    assert has_code_for(architectures, capability) is has_code


def test_a_gpu_without_code_is_named() -> None:
    """A Pascal card in a build for Ampere and Hopper is an error, beside GPUs that are fine."""
    gpus = (Gpu(0, H100, (9, 0), ()), Gpu(1, "Tesla P100-PCIE-16GB", (6, 0), ()))
    finding = judge_architecture(with_nvidia(DGX, gpus=gpus))
    assert finding.severity == "error"
    assert finding.evidence == (
        "GPU 1, Tesla P100-PCIE-16GB, is sm_60, and this PyTorch has code for "
        "sm_80 sm_90 compute_90"
    )
    assert judge_architecture(DGX).severity == "ok"
    assert judge_architecture(with_nvidia(DGX, gpus=NO_NVML)).severity == "unknown"


def test_code_that_is_not_told_is_unknown() -> None:
    """Some PyTorch lists no architectures where CUDA doesn't start: no GPU is said to lack code."""
    silent = replace(DGX, torch=Torch("2.4.0", (12, 9), architectures=(), gpus=0))
    finding = judge_architecture(silent)
    assert finding.severity == "unknown"
    assert "see driver and cuda-start" in finding.evidence


def slowed(*slowdowns: str) -> Facts:
    """Return a machine whose second GPU has these reasons to be slow."""
    gpus = (Gpu(0, H100, (9, 0), ()), Gpu(1, H100, (9, 0), slowdowns))
    return with_nvidia(DGX, gpus=gpus)


def test_heat_is_a_warning_and_a_power_limit_is_not() -> None:
    """A busy GPU runs at its power limit; one that is hot or braked needs a person."""
    assert judge_clocks(DGX).severity == "ok"
    assert judge_clocks(slowed("power limit")).severity == "info"
    hot = judge_clocks(slowed("power limit", "hardware thermal slowdown"))
    assert hot.severity == "warning"
    assert hot.evidence == "GPU 1: power limit, hardware thermal slowdown"
    assert "nvidia-smi -q -d PERFORMANCE" in (hot.fix or "")


def test_a_clock_that_is_set_low_is_told_of() -> None:
    """An application clock below the default one is a setting, which somebody may have wanted."""

    def clocked(clocks: tuple[int, int] | Unknown | None) -> Facts:
        return with_nvidia(DGX, gpus=(Gpu(0, "Tesla V100-SXM2-32GB", (7, 0), (), clocks),))

    low = judge_clocks(clocked((1312, 1530)))
    assert low.severity == "info"
    assert low.evidence == "GPU 0: its clock is set to 1312 MHz, its default is 1530"
    assert judge_clocks(clocked((1530, 1530))).severity == "ok"
    assert judge_clocks(clocked(None)).severity == "ok"
    assert judge_clocks(clocked(Unknown("GPU is lost"))).severity == "unknown"


def test_clocks_that_are_not_told_are_unknown() -> None:
    """Neither a missing NVML nor a GPU that doesn't answer is ok."""
    assert judge_clocks(with_nvidia(DGX, gpus=NO_NVML)).severity == "unknown"
    silent = (Gpu(0, H100, (9, 0), Unknown("Not Supported")),)
    assert judge_clocks(with_nvidia(DGX, gpus=silent)).severity == "unknown"


@pytest.mark.parametrize(
    ("severed", "severity"),
    [
        ((), "ok"),
        (("GPU 0 and 1: the topology doesn't support it",), "warning"),
        (("GPU 0 and 1: the GPU doesn't support it",), "info"),
        (NO_NVML, "unknown"),
    ],
)
def test_severed_pairs_are_judged_by_the_reason(
    severed: tuple[str, ...] | Unknown, severity: str
) -> None:
    """What can be mended is a warning; what the GPU lacks is not."""
    assert judge_peers(with_nvidia(DGX, severed=severed)).severity == severity


def test_wsl_has_no_peer_access() -> None:
    """Under WSL nothing can be done about it."""
    machine = with_nvidia(DGX, is_wsl=True, severed=("GPU 0 and 1: not supported",))
    assert judge_peers(machine).severity == "info"


def test_one_gpu_has_no_pair() -> None:
    """A single GPU has nobody to reach."""
    one = with_nvidia(DGX, gpus=(Gpu(0, H100, (9, 0), ()),))
    assert judge_peers(one).evidence == "1 GPU: there is no pair"
