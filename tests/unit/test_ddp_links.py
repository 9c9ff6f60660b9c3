"""Links between GPUs, as a double of NVML tells of them."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from ddp.links import look_at_links


class NVMLError(Exception):
    """NVML's error."""


class NotSupportedError(NVMLError):
    """What is asked for isn't there."""


class InvalidArgumentError(NVMLError):
    """No such number."""


def nvml(nvlinks: int, version: int = 4, generation: int = 5) -> Any:  # noqa: ANN401 - a double
    """Return a module that answers as pynvml does, for GPUs with so many NVLinks."""
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
        (nvml(12, version=3, generation=4), 12, 300.0, 31.504),
        (nvml(0), 0, 0, 63.008),
        (nvml(18, version=9, generation=9), 18, None, None),
    ],
)
def test_links_are_told_with_their_speed_in_one_direction(
    monkeypatch: pytest.MonkeyPatch, double: ModuleType, nvlinks: int, nvlink: float, pcie: float
) -> None:
    """H100: 450 GB/s, A100: 300; a version that is not known has no speed."""
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
