"""How the GPUs are connected, as far as NVML tells."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# GB/s (1e9) of one lane in one direction, by PCIe generation, after line coding
# (PCI-SIG: 2.5, 5 GT/s with 8b/10b; 8, 16, 32 GT/s with 128b/130b; 64 GT/s in FLITs).
PCIE_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
# GB/s of one NVLink in one direction (NVIDIA's architecture white papers: P100, V100,
# A100, H100, B200), by nvml.h's nvmlNvlinkVersion_t, which is a list of versions and no
# number: 1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0.
NVLINK = {1: 20.0, 2: 25.0, 3: 25.0, 4: 25.0, 5: 25.0, 6: 25.0, 7: 50.0}
# Some drivers tell 5.0 of Hopper's links, which are 4.0.
HOPPER, HOPPER_NVLINK = 9, 6
# What the report has of each GPU's links.
LINK = ("pcie_generation", "pcie_width", "pcie_gb_per_s", "nvlinks", "nvlink_gb_per_s")


def look_at_links(uuids: Sequence[str | None]) -> dict[str, Any]:
    """Return driver and links of the GPUs with these UUIDs.

    What NVML doesn't answer is None, and `reason` says why.
    """
    unknown: dict[str, Any] = {"driver": None, "links": []}
    if not uuids:
        return {**unknown, "reason": "there is no GPU"}
    known = [uuid for uuid in uuids if uuid is not None]
    if len(known) < len(uuids):
        return {**unknown, "reason": "this torch doesn't tell the UUIDs of the GPUs"}
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        reason = "NVML can't be asked: the package nvidia-ml-py is not installed"
        return {**unknown, "reason": reason}
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return {**unknown, "reason": f"NVML: {error}"}
    answers = _Answers(nvml)
    try:
        driver = answers.ask("nvmlSystemGetDriverVersion")
        links = [_links(answers, uuid) for uuid in known]
    finally:
        nvml.nvmlShutdown()
    reasons = "; ".join(dict.fromkeys(answers.refused))  # each GPU says the same
    return {
        # bytes in older versions of pynvml
        "driver": driver.decode() if isinstance(driver, bytes) else driver,
        "links": links,
        "reason": f"NVML: {reasons}" if reasons else None,
    }


def bounds_of(
    limits: Mapping[str, float], links: Sequence[Mapping[str, float | None]]
) -> dict[str, float]:
    """Return what bounds a collective on this host, in GB/s, by its name for people.  Pure.

    `limits` were measured; what the links between GPUs have by their generation
    is NVLink's, or PCIe's where it is known that there is no NVLink.
    """
    bounds = {"memory copy": limits["memory_copy_gb_per_s"]}
    if "peer_copy_gb_per_s" in limits:
        bounds["peer copy"] = limits["peer_copy_gb_per_s"]
    if len(links) > 1:  # one GPU has nobody to talk to
        name = "PCIe" if links[0]["nvlinks"] == 0 else "NVLink"
        speed = links[0][f"{name.lower()}_gb_per_s"]
        if speed is not None:
            bounds[f"{name} (nominal)"] = speed
    return bounds


class _Answers:
    """What NVML answers: boards and drivers lack one or the other call, and keep the rest."""

    def __init__(self, nvml: Any) -> None:  # noqa: ANN401 - the module pynvml
        """Know nothing that was refused yet."""
        self.nvml = nvml
        self.refused: list[str] = []

    def ask(self, question: str, *arguments: Any) -> Any:  # noqa: ANN401 - as pynvml has it
        """Return the answer, or None and keep what NVML said instead."""
        try:
            return getattr(self.nvml, question)(*arguments)
        except self.nvml.NVMLError as error:
            self.refused.append(f"{question}: {error}")
            return None


def _links(answers: _Answers, uuid: str) -> dict[str, Any]:
    handle = answers.ask("nvmlDeviceGetHandleByUUID", uuid.encode())
    if handle is None:
        return dict.fromkeys(LINK)
    generation = answers.ask("nvmlDeviceGetMaxPcieLinkGeneration", handle)
    width = answers.ask("nvmlDeviceGetMaxPcieLinkWidth", handle)
    versions = _active_nvlinks(answers, handle)
    capability = answers.ask("nvmlDeviceGetCudaComputeCapability", handle)
    lane = PCIE_LANE.get(generation)
    pcie = None if lane is None or width is None else lane * width
    nvlinks = None if versions is None else len(versions)
    values = (generation, width, pcie, nvlinks, _nvlink_speed(versions, capability))
    return dict(zip(LINK, values))  # noqa: B905 - `strict` needs Python 3.10


def _nvlink_speed(versions: list[Any] | None, capability: Any) -> float | None:  # noqa: ANN401
    """Return the GB/s of all links in one direction; None where one is unknown."""
    if versions is None or (versions and capability is None):
        return None
    if versions and capability[0] == HOPPER:
        versions = [version and min(version, HOPPER_NVLINK) for version in versions]
    if not all(version in NVLINK for version in versions):
        return None
    return sum(NVLINK[version] for version in versions)


def _active_nvlinks(answers: _Answers, handle: Any) -> list[Any] | None:  # noqa: ANN401 - NVML's
    """Return the version of every NVLink that is up, None for what can't be known."""
    nvml, versions = answers.nvml, []
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            is_up = nvml.nvmlDeviceGetNvLinkState(handle, link)
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_InvalidArgument):
            break  # nvml.h: this GPU has no NVLink, or none of this number
        except nvml.NVMLError as error:
            answers.refused.append(f"nvmlDeviceGetNvLinkState: {error}")
            return None
        if is_up:
            versions.append(answers.ask("nvmlDeviceGetNvLinkVersion", handle, link))
    return versions
