"""Asks the NVIDIA driver: its device files, libcuda, and NVML."""

from __future__ import annotations

import ctypes
import importlib
import re
from itertools import combinations
from pathlib import Path
from typing import Any

from doctor.facts import Gpu, Nvidia, Unknown

# nvml.h, nvmlClocksEventReasons; what merely tells of idling or of a setting is left out.
SLOWDOWNS = {
    0x04: "power limit",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
SM_CLOCK = 1  # nvml.h, nvmlClockType_t
# nvml.h, nvmlReturn_t; older packages have no class for some of them.
NOT_SUPPORTED, FUNCTION_NOT_FOUND, DEPRECATED = 3, 13, 26
# nvml.h, nvmlGpuP2PStatus_t and nvmlGpuP2PCapsIndex_t.
CAN_READ = 0
CAN_WRITE = 1
PEER_OK = 0
PEER_REASONS = {
    1: "the chipset doesn't support it",
    2: "the GPU doesn't support it",
    3: "the topology doesn't support it",
    4: "it is disabled by a setting of the driver",
    5: "not supported",
}
NVIDIA = "0x10de"
DISPLAY_CONTROLLER = "0x03"
NO_NVML = "NVML can't be asked: there is no Python package nvidia-ml-py (pynvml)"


def probe_nvidia(root: Path = Path("/")) -> Nvidia:
    """Return what the driver tells; `root` is where /proc, /sys and /dev are."""
    cuda, start = ask_libcuda()
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        driver: Any = Unknown(NO_NVML)
        gpus: Any = Unknown(NO_NVML)
        severed: Any = Unknown(NO_NVML)
    else:
        driver, gpus, severed = ask_nvml(nvml)
    release = _read(root / "proc/sys/kernel/osrelease").lower()
    dev = root / "dev"
    nodes = sorted(node.name for node in dev.iterdir()) if dev.is_dir() else []
    return Nvidia(
        is_wsl="microsoft" in release,
        module=module_version(_read(root / "proc/driver/nvidia/version")),
        nodes=tuple(name for name in nodes if re.fullmatch(r"nvidia\d+|nvidiactl|dxg", name)),
        cards=count_cards(root / "sys/bus/pci/devices"),
        cuda=cuda,
        start=start,
        driver=driver,
        gpus=gpus,
        severed=severed,
    )


def count_cards(devices: Path) -> int:
    """Return how many NVIDIA display controllers (PCI class 03) sysfs lists."""
    folders = devices.iterdir() if devices.is_dir() else ()
    return sum(
        _read(folder / "vendor").strip() == NVIDIA
        and _read(folder / "class").startswith(DISPLAY_CONTROLLER)
        for folder in folders
    )


def module_version(text: str) -> str:
    """Return the version in /proc/driver/nvidia/version, "" in an empty text.

    Its first line is "NVRM version: NVIDIA UNIX [Open] x86_64 Kernel Module
    [for x86_64]  570.86.15  ...".
    """
    found = re.search(r"Kernel Module\s.*?(\d+\.\d+(?:\.\d+)?)\s", f"{text} ")
    return found[1] if found else ""


def ask_libcuda(name: str = "libcuda.so.1") -> tuple[Any, Any]:
    """Return the newest CUDA of this libcuda and what cuInit returns, each maybe `Unknown`.

    CUDA driver API: cuDriverGetVersion (1000 major + 10 minor; needs no
    cuInit) and cuInit, which makes no context on any GPU.
    """
    try:
        library = ctypes.CDLL(name)
        version = ctypes.c_int()
        code = library.cuDriverGetVersion(ctypes.byref(version))
        start = library.cuInit(0)
    except (OSError, AttributeError) as error:
        return Unknown(str(error)), Unknown(str(error))
    if code != 0:
        return Unknown(f"cuDriverGetVersion returned {code}"), start
    return (version.value // 1000, version.value % 1000 // 10), start


def ask_nvml(nvml: Any) -> tuple[Any, Any, Any]:  # noqa: ANN401 - the module pynvml
    """Return driver version, GPUs and severed pairs by NVML, each maybe `Unknown`."""
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        reason = Unknown(f"NVML doesn't start: {error}")
        return reason, reason, reason
    try:
        driver = _text(nvml.nvmlSystemGetDriverVersion())
        handles = [
            nvml.nvmlDeviceGetHandleByIndex(index) for index in range(nvml.nvmlDeviceGetCount())
        ]
        gpus = tuple(_gpu(nvml, index, handle) for index, handle in enumerate(handles))
        return driver, gpus, _severed(nvml, handles)
    except nvml.NVMLError as error:
        reason = Unknown(f"NVML failed: {error}")
        return reason, reason, reason
    finally:
        nvml.nvmlShutdown()


def _gpu(nvml: Any, index: int, handle: Any) -> Gpu:  # noqa: ANN401 - NVML's
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    slowdowns: tuple[str, ...] | Unknown
    try:
        bits = _clock_reasons(nvml, handle)
        slowdowns = tuple(name for bit, name in SLOWDOWNS.items() if bits & bit)
    except nvml.NVMLError as error:
        slowdowns = Unknown(str(error))
    name = _text(nvml.nvmlDeviceGetName(handle))
    return Gpu(index, name, (major, minor), slowdowns, _clocks(nvml, handle))


def _clock_reasons(nvml: Any, handle: Any) -> int:  # noqa: ANN401 - NVML's
    """Return why the clocks are as they are, as bits, by its new name or by its old one.

    Drivers before 535 and older packages know only the old name, which CUDA 14's
    NVML will refuse (NVML API, "Deprecation Notices").
    """
    ask = getattr(nvml, "nvmlDeviceGetCurrentClocksEventReasons", None)
    if ask is not None:
        try:
            return int(ask(handle))
        except nvml.NVMLError as error:
            if error.value != FUNCTION_NOT_FOUND:
                raise
    return int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))


def _clocks(nvml: Any, handle: Any) -> tuple[int, int] | Unknown | None:  # noqa: ANN401 - NVML's
    """Return the application clock that is set and the default one.

    Many GPUs' default is below their highest, and boosts: that is no setting of
    anybody's.  CUDA 14's NVML will have no application clocks.
    """
    try:
        is_set = nvml.nvmlDeviceGetApplicationsClock(handle, SM_CLOCK)
        return is_set, nvml.nvmlDeviceGetDefaultApplicationsClock(handle, SM_CLOCK)
    except nvml.NVMLError as error:
        if error.value in (NOT_SUPPORTED, DEPRECATED):
            return None
        return Unknown(str(error))


def _severed(nvml: Any, handles: list[Any]) -> tuple[str, ...] | Unknown:  # noqa: ANN401 - NVML's
    lines = []
    try:
        for (i, one), (j, other) in combinations(enumerate(handles), 2):
            states = [
                nvml.nvmlDeviceGetP2PStatus(one, other, what) for what in (CAN_READ, CAN_WRITE)
            ]
            bad = [state for state in states if state != PEER_OK]
            if bad:
                reason = PEER_REASONS.get(bad[0], f"NVML status {bad[0]}")
                lines.append(f"GPU {i} and {j}: {reason}")
    except nvml.NVMLError as error:
        return Unknown(str(error))
    return tuple(lines)


def _text(value: Any) -> str:  # noqa: ANN401 - bytes in older versions of pynvml
    return value.decode() if isinstance(value, bytes) else str(value)


def _read(file: Path) -> str:
    return file.read_text() if file.is_file() else ""
