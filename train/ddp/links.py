"""How the GPUs are connected, as far as NVML tells."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

# GB/s (1e9) of one lane in one direction, by PCIe generation, after line coding
# (PCI-SIG: 2.5, 5 GT/s with 8b/10b; 8, 16, 32 GT/s with 128b/130b; 64 GT/s in FLITs).
PCIE_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}
# GB/s of one NVLink in one direction, by its version (NVIDIA's architecture white
# papers: P100, V100, A100, H100, B200).
NVLINK = {1: 20.0, 2: 25.0, 3: 25.0, 4: 25.0, 5: 50.0}


def look_at_links(uuids: Sequence[str | None]) -> dict[str, Any]:
    """Return driver and links of the GPUs with these UUIDs; `reason` says why they are unknown."""
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
        try:
            driver = _text(nvml.nvmlSystemGetDriverVersion())
            links = [_links(nvml, uuid) for uuid in known]
        finally:
            nvml.nvmlShutdown()
    except nvml.NVMLError as error:
        return {**unknown, "reason": f"NVML: {error}"}
    return {"driver": driver, "links": links, "reason": None}


def _links(nvml: Any, uuid: str) -> dict[str, Any]:  # noqa: ANN401 - the module pynvml
    handle = nvml.nvmlDeviceGetHandleByUUID(uuid.encode())
    generation = nvml.nvmlDeviceGetMaxPcieLinkGeneration(handle)
    width = nvml.nvmlDeviceGetMaxPcieLinkWidth(handle)
    versions = _active_nvlinks(nvml, handle)
    return {
        "pcie_generation": generation,
        "pcie_width": width,
        "pcie_gb_per_s": PCIE_LANE[generation] * width if generation in PCIE_LANE else None,
        "nvlinks": len(versions),
        "nvlink_gb_per_s": sum(NVLINK[version] for version in versions)
        if all(version in NVLINK for version in versions)
        else None,
    }


def _active_nvlinks(nvml: Any, handle: Any) -> list[int]:  # noqa: ANN401 - NVML's
    """Return the version of every NVLink that is up."""
    versions = []
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            if nvml.nvmlDeviceGetNvLinkState(handle, link):
                versions.append(nvml.nvmlDeviceGetNvLinkVersion(handle, link))
        except (nvml.NVMLError_NotSupported, nvml.NVMLError_InvalidArgument):
            break  # nvml.h: this GPU has no NVLink, or none of this number
    return versions


def _text(value: Any) -> str:  # noqa: ANN401 - bytes in older versions of pynvml
    return value.decode() if isinstance(value, bytes) else str(value)
