"""Links between GPUs, as a double of NVML tells of them."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from ddp.links import bounds_of, look_at_links


class NVMLError(Exception):
    """NVML's error."""


class NotSupportedError(NVMLError):
    """What is asked for isn't there."""


class InvalidArgumentError(NVMLError):
    """No such number."""


def nvml(
    nvlinks: int, version: int = 6, generation: int = 5, capability: tuple[int, int] = (9, 0)
) -> Any:  # noqa: ANN401 - a double
    """Return a module that answers as pynvml does, for GPUs with so many NVLinks.

    `version` is nvml.h's nvmlNvlinkVersion_t: 5 is NVLink 3.1, 6 is 4.0, 7 is 5.0.
    """
    module: Any = ModuleType("pynvml")
    module.NVMLError = NVMLError
    module.NVMLError_NotSupported = NotSupportedError
    module.NVMLError_InvalidArgument = InvalidArgumentError
    module.NVML_NVLINK_MAX_LINKS = 18
    module.nvmlInit = lambda: None
    module.nvmlShutdown = lambda: None
    module.nvmlSystemGetDriverVersion = lambda: "570.86.15"
    module.nvmlDeviceGetHandleByUUID = lambda uuid: uuid
    module.nvmlDeviceGetMaxPcieLinkGeneration = lambda _: generation
    module.nvmlDeviceGetMaxPcieLinkWidth = lambda _: 16
    module.nvmlDeviceGetCudaComputeCapability = lambda _: capability

    def state(_: object, link: int) -> int:
        if nvlinks == 0:
            raise NotSupportedError
        if link >= nvlinks:
            raise InvalidArgumentError
        return 1

    module.nvmlDeviceGetNvLinkState = state
    module.nvmlDeviceGetNvLinkVersion = lambda _, __: version
    return module


@pytest.mark.parametrize(
    ("double", "nvlinks", "nvlink", "pcie"),
    [
        (nvml(18), 18, 450.0, 63.008),
        (nvml(18, version=7), 18, 450.0, 63.008),
        (nvml(12, version=5, generation=4, capability=(8, 0)), 12, 300.0, 31.504),
        (nvml(18, version=7, capability=(10, 0)), 18, 900.0, 63.008),
        (nvml(0), 0, 0, 63.008),
        (nvml(18, version=99, generation=9, capability=(12, 0)), 18, None, None),
    ],
)
def test_links_are_told_with_their_speed_in_one_direction(
    monkeypatch: pytest.MonkeyPatch, double: ModuleType, nvlinks: int, nvlink: float, pcie: float
) -> None:
    """H100: 450 GB/s, whatever the driver tells, A100: 300, B200: 900; an unknown version: none."""
    monkeypatch.setitem(sys.modules, "pynvml", double)
    found = look_at_links(["GPU-1"])
    assert (found["driver"], found["reason"]) == ("570.86.15", None)
    link = found["links"][0]
    assert (link["nvlinks"], link["nvlink_gb_per_s"]) == (nvlinks, nvlink)
    assert link["pcie_gb_per_s"] == pytest.approx(pcie)


def test_a_driver_that_does_not_answer_leaves_links_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With NVML's own words."""
    double = nvml(18)

    def fail() -> None:
        raise NVMLError("Driver Not Loaded")

    double.nvmlInit = fail
    monkeypatch.setitem(sys.modules, "pynvml", double)
    assert look_at_links(["GPU-1"]) == {
        "driver": None,
        "links": [],
        "reason": "NVML: Driver Not Loaded",
    }


def test_without_nvml_links_are_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason names the package; without a GPU there is nothing to ask."""
    monkeypatch.setitem(sys.modules, "pynvml", None)
    assert "nvidia-ml-py" in look_at_links(["GPU-1"])["reason"]
    assert look_at_links([])["reason"] == "there is no GPU"
    assert look_at_links([None])["reason"] == "this torch doesn't tell the UUIDs of the GPUs"


def fail(*_: object) -> None:
    """Be a call that this board or driver lacks."""
    raise NotSupportedError("Not Supported")


@pytest.mark.parametrize(
    ("question", "lost"),
    [
        ("nvmlSystemGetDriverVersion", {"driver"}),
        ("nvmlDeviceGetMaxPcieLinkGeneration", {"pcie_generation", "pcie_gb_per_s"}),
        ("nvmlDeviceGetMaxPcieLinkWidth", {"pcie_width", "pcie_gb_per_s"}),
        ("nvmlDeviceGetNvLinkVersion", {"nvlink_gb_per_s"}),
        ("nvmlDeviceGetCudaComputeCapability", {"nvlink_gb_per_s"}),
        (
            "nvmlDeviceGetHandleByUUID",
            {"pcie_generation", "pcie_width", "pcie_gb_per_s", "nvlinks", "nvlink_gb_per_s"},
        ),
    ],
)
def test_one_answer_that_is_lacking_costs_no_other(
    monkeypatch: pytest.MonkeyPatch, question: str, lost: set[str]
) -> None:
    """The driver and all other fields stay, and the reason names the call once for two GPUs."""
    double = nvml(18)
    setattr(double, question, fail)
    monkeypatch.setitem(sys.modules, "pynvml", double)
    found = look_at_links(["GPU-1", "GPU-2"])
    assert found["reason"] == f"NVML: {question}: Not Supported"
    for link in found["links"]:
        told = {"driver": found["driver"], **link}
        assert {name for name, value in told.items() if value is None} == lost
    assert len(found["links"]) == 2


def test_nvlinks_that_cannot_be_asked_are_unknown_not_absent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Only NVML's own "no such link" means that there is none."""
    double = nvml(18)

    def lost(_: object, __: int) -> int:
        raise NVMLError("GPU is lost")

    double.nvmlDeviceGetNvLinkState = lost
    monkeypatch.setitem(sys.modules, "pynvml", double)
    found = look_at_links(["GPU-1"])
    assert found["reason"] == "NVML: nvmlDeviceGetNvLinkState: GPU is lost"
    assert (found["links"][0]["nvlinks"], found["links"][0]["nvlink_gb_per_s"]) == (None, None)
    assert found["links"][0]["pcie_generation"] == 5


@pytest.mark.parametrize(
    ("nvlinks", "nvlink", "pcie", "gpus", "bound"),
    [
        (18, 450.0, 63.0, 2, {"NVLink (nominal)": 450.0}),
        (0, 0, 63.0, 2, {"PCIe (nominal)": 63.0}),
        (18, None, 63.0, 2, {}),
        (None, None, 63.0, 2, {}),
        (0, 0, None, 2, {}),
        (18, 450.0, 63.0, 1, {}),
    ],
)
def test_the_link_that_bounds_is_nvlink_else_pcie(
    nvlinks: int | None,
    nvlink: float | None,
    pcie: float | None,
    gpus: int,
    bound: dict[str, float],
) -> None:
    """It is named where it is known, and where there are two GPUs to link."""
    link = {"nvlinks": nvlinks, "nvlink_gb_per_s": nvlink, "pcie_gb_per_s": pcie}
    found = bounds_of({"memory_copy_gb_per_s": 900.0}, [link] * gpus)
    assert found == {"memory copy": 900.0, **bound}


def test_a_measured_copy_to_a_peer_bounds_too() -> None:
    """It stands beside the memory copy."""
    limits = {"memory_copy_gb_per_s": 900.0, "peer_copy_gb_per_s": 270.0}
    assert bounds_of(limits, []) == {"memory copy": 900.0, "peer copy": 270.0}
