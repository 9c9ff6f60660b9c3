"""What the doctor reads, from files and libraries of made-up machines."""

from __future__ import annotations

import ctypes
import sys
import warnings
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from doctor.facts import Gpu, Port, Setting, Torch, Unknown
from doctor.probe_limits import cgroup_limit, memory_total, probe_limits
from doctor.probe_network import probe_network
from doctor.probe_nvidia import ask_libcuda, ask_nvml, module_version, probe_nvidia
from doctor.probe_settings import probe_blocked, probe_settings, read_conf
from doctor.probe_torch import cuda_version, probe_torch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MEMORY = ("memory", "memory.max", "memory.limit_in_bytes")


def machine(root: Path, files: dict[str, str]) -> Path:
    """Lay out the files of a made-up machine below `root`."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 1073741824),
        (
            {  # the narrowest of all groups counts
                "proc/self/cgroup": "0::/job/step\n",
                "sys/fs/cgroup/job/memory.max": "1000\n",
                "sys/fs/cgroup/job/step/memory.max": "2000\n",
            },
            1000,
        ),
        (
            {  # version 1, in a container: the path is the host's
                "proc/self/cgroup": "4:memory:/docker/0123\n0::/docker/0123\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "536870912\n",
            },
            536870912,
        ),
        (
            {  # version 1 without a limit
                "proc/self/cgroup": "4:memory:/\n",
                "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
            },
            None,
        ),
    ],
)
def test_the_memory_limit_is_read(tmp_path: Path, files: dict[str, str], limit: int | None) -> None:
    """Both versions of control groups, whole and in containers."""
    assert cgroup_limit(machine(tmp_path, files), *MEMORY) == limit


def test_the_limits_of_this_process_are_read(tmp_path: Path) -> None:
    """A pids limit is the processes' limit, and a /dev/shm that is not there is unknown."""
    root = machine(
        tmp_path,
        {
            "proc/meminfo": "MemTotal:       25276510 kB\nMemFree: 1 kB\n",
            "proc/self/cgroup": "0::/\n",
            "sys/fs/cgroup/pids.max": "7\n",
        },
    )
    limits = probe_limits(root)
    assert (limits.processes, limits.memory) == (7, None)
    assert limits.memory_total == memory_total(root) == 25276510 * 1024
    assert isinstance(limits.shared_memory, Unknown)
    assert limits.cores >= 1


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("", ""),
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  525.85.12  Sat Jan 28 02:10:06 UTC\n",
            "525.85.12",
        ),
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build\n",
            "570.86.15",
        ),
        ("NVRM version: NVIDIA UNIX aarch64 Kernel Module  580.65  Sun\n", "580.65"),
    ],
)
def test_the_module_tells_its_version(text: str, version: str) -> None:
    """Open and closed modules word it differently."""
    assert module_version(text) == version


def test_a_host_that_hides_its_gpus_is_recognised(tmp_path: Path) -> None:
    """Cards on the bus and the module's version show in a container without device files."""
    root = machine(
        tmp_path,
        {
            "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX Kernel Module  550.54 a",
            "proc/sys/kernel/osrelease": "6.8.0-generic\n",
            "sys/bus/pci/devices/0000:01:00.0/vendor": "0x10de\n",
            "sys/bus/pci/devices/0000:01:00.0/class": "0x030200\n",
            "sys/bus/pci/devices/0000:01:00.1/vendor": "0x10de\n",
            "sys/bus/pci/devices/0000:01:00.1/class": "0x040300\n",
            "sys/bus/pci/devices/0000:02:00.0/vendor": "0x8086\n",
            "sys/bus/pci/devices/0000:02:00.0/class": "0x030000\n",
            "dev/null": "",
        },
    )
    found = probe_nvidia(root)
    assert (found.module, found.nodes, found.cards, found.is_wsl) == ("550.54", (), 1, False)


def test_wsl_is_recognised_by_its_kernel(tmp_path: Path) -> None:
    """WSL has no module and no nvidia0, but /dev/dxg."""
    release = "5.15.90.1-microsoft-standard-WSL2\n"
    found = probe_nvidia(machine(tmp_path, {"proc/sys/kernel/osrelease": release, "dev/dxg": ""}))
    assert (found.is_wsl, found.nodes, found.module) == (True, ("dxg",), "")


def test_a_missing_libcuda_is_unknown() -> None:
    """Neither a library that is not there nor one without CUDA's functions gives a number."""
    for name in ("libnowhere.so.1", "libc.so.6"):
        version, start = ask_libcuda(name)
        assert isinstance(version, Unknown)
        assert isinstance(start, Unknown)


def test_libcuda_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """12090 is CUDA 12.9, and what cuInit returns is kept."""

    def version(pointer: Any) -> int:  # noqa: ANN401 - ctypes'
        pointer._obj.value = 12090
        return 0

    library = SimpleNamespace(cuDriverGetVersion=version, cuInit=lambda _flags: 803)
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: library)
    assert ask_libcuda() == ((12, 9), 803)


NOT_SUPPORTED, FUNCTION_NOT_FOUND, UNKNOWN, DEPRECATED = 3, 13, 999, 26  # nvml.h


class NVMLError(Exception):
    """NVML's own, with nvml.h's number as `value`."""

    def __init__(self, name: str, value: int) -> None:
        """Tell which function has failed, and how."""
        words = {NOT_SUPPORTED: "Not Supported", FUNCTION_NOT_FOUND: "Function Not Found"}
        super().__init__(f"{name}: {words.get(value, value)}")
        self.value = value


def fake_nvml(failing: str = "", peers: int = 0, value: int = NOT_SUPPORTED) -> Any:  # noqa: ANN401 - for the module pynvml
    """Return what the doctor calls of pynvml, for two GPUs.

    The function of the name `failing` fails with `value`; `peers` is the status of the pair.
    """
    answers: dict[str, Callable[..., Any]] = {
        "nvmlInit": lambda: None,
        "nvmlSystemGetDriverVersion": lambda: b"570.86.15",
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetName": lambda _handle: "NVIDIA L4",
        "nvmlDeviceGetCudaComputeCapability": lambda _handle: (8, 9),
        # Idle; power limit and heat.
        "nvmlDeviceGetCurrentClocksEventReasons": lambda handle: (0x1, 0x4 | 0x40)[handle],
        "nvmlDeviceGetCurrentClocksThrottleReasons": lambda _handle: 0x80,
        "nvmlDeviceGetApplicationsClock": lambda _handle, _which: 1000,
        "nvmlDeviceGetDefaultApplicationsClock": lambda _handle, _which: 2040,
        "nvmlDeviceGetP2PStatus": lambda _one, _other, _what: peers,
    }

    def fail(*_words: object) -> None:
        raise NVMLError(failing, value)

    nvml = SimpleNamespace(**answers, is_closed=False)
    nvml.NVMLError = NVMLError
    nvml.nvmlShutdown = lambda: setattr(nvml, "is_closed", True)
    if failing:
        setattr(nvml, failing, fail)
    return nvml


def test_nvml_is_asked() -> None:
    """Versions in bytes, capabilities, reasons by name; and NVML is closed again."""
    nvml = fake_nvml(peers=3)
    driver, gpus, severed = ask_nvml(nvml)
    assert driver == "570.86.15"
    assert gpus == (
        Gpu(0, "NVIDIA L4", (8, 9), (), (1000, 2040)),
        Gpu(1, "NVIDIA L4", (8, 9), ("power limit", "hardware thermal slowdown"), (1000, 2040)),
    )
    assert severed == ("GPU 0 and 1: the topology doesn't support it",)
    assert nvml.is_closed


def test_what_nvml_refuses_is_unknown() -> None:
    """A failure anywhere makes unknown what depends on it, and nothing else."""
    for failing in ("nvmlInit", "nvmlDeviceGetCount"):
        assert all(isinstance(answer, Unknown) for answer in ask_nvml(fake_nvml(failing)))
    _, gpus, severed = ask_nvml(fake_nvml("nvmlDeviceGetCurrentClocksEventReasons"))
    assert [type(gpu.slowdowns) for gpu in gpus] == [Unknown, Unknown]
    assert severed == ()
    _, gpus, severed = ask_nvml(fake_nvml("nvmlDeviceGetP2PStatus"))
    assert len(gpus) == 2
    assert severed == Unknown("nvmlDeviceGetP2PStatus: Not Supported")


def test_an_old_driver_is_asked_by_the_old_name() -> None:
    """Drivers before 535 have no event reasons, and older packages no such function."""
    event = "nvmlDeviceGetCurrentClocksEventReasons"
    old_driver = fake_nvml(event, value=FUNCTION_NOT_FOUND)
    old_package = fake_nvml()
    delattr(old_package, event)
    for nvml in (old_driver, old_package):
        _, gpus, _ = ask_nvml(nvml)
        assert [gpu.slowdowns for gpu in gpus] == [("power brake",), ("power brake",)]


def test_a_gpu_without_application_clocks_has_none() -> None:
    """Some GPUs never had any, CUDA 14's NVML will have none; another failure is unknown."""
    for value in (NOT_SUPPORTED, DEPRECATED):
        _, gpus, _ = ask_nvml(fake_nvml("nvmlDeviceGetDefaultApplicationsClock", value=value))
        assert [gpu.clocks for gpu in gpus] == [None, None]
    _, gpus, _ = ask_nvml(fake_nvml("nvmlDeviceGetApplicationsClock", value=UNKNOWN))
    assert [gpu.clocks for gpu in gpus] == [Unknown("nvmlDeviceGetApplicationsClock: 999")] * 2


def test_the_network_is_read(tmp_path: Path) -> None:
    """Interfaces, ports with their states, and device files."""
    port = "sys/class/infiniband/mlx5_0/ports/1"
    root = machine(
        tmp_path,
        {
            "sys/class/net/eth0/mtu": "1500",
            "sys/class/net/bonding_masters": "",
            f"{port}/state": "4: ACTIVE\n",
            f"{port}/link_layer": "Ethernet\n",
            "dev/infiniband/uverbs0": "",
            "dev/infiniband/rdma_cm": "",
        },
    )
    network = probe_network(root)
    assert network.interfaces == ("eth0",)
    assert network.ports == (Port("mlx5_0", 1, "ACTIVE", "Ethernet"),)
    assert network.verbs == ("uverbs0",)
    assert probe_network(tmp_path / "nowhere").ports == ()


def test_settings_come_in_nccls_order(tmp_path: Path) -> None:
    """The environment before the user's file before the administrator's."""
    machine(
        tmp_path,
        {
            "home/.nccl.conf": "# mine\nNCCL_DEBUG=INFO\nNCCL_IB_HCA==mlx5_0\n",
            "etc/nccl.conf": "NCCL_DEBUG=TRACE\nNCCL_IB_HCA=no\nNCCL_P2P_DISABLE=1\n",
        },
    )
    environ = {"NCCL_DEBUG": "WARN", "PATH": "/bin", "OMP_X": "", "CUDA_VISIBLE_DEVICES": ""}
    found = probe_settings(environ, tmp_path / "home", tmp_path / "etc")
    environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
    assert "TORCH_DISTRIBUTED_DEBUG" in probe_settings(environ, tmp_path, tmp_path)
    assert found == {
        "NCCL_DEBUG": Setting("WARN", "the environment"),
        "CUDA_VISIBLE_DEVICES": Setting("", "the environment"),
        "NCCL_IB_HCA": Setting("=mlx5_0", str(tmp_path / "home/.nccl.conf")),
        "NCCL_P2P_DISABLE": Setting("1", str(tmp_path / "etc/nccl.conf")),
    }


def test_a_named_file_replaces_the_users(tmp_path: Path) -> None:
    """With NCCL_CONF_FILE, ~/.nccl.conf is not read."""
    machine(tmp_path, {".nccl.conf": "NCCL_DEBUG=INFO\n", "job.conf": "NCCL_NET=IB\n"})
    environ = {"NCCL_CONF_FILE": str(tmp_path / "job.conf")}
    found = probe_settings(environ, tmp_path, tmp_path / "etc")
    assert {name for name in found if name != "NCCL_CONF_FILE"} == {"NCCL_NET"}
    assert read_conf(tmp_path) == {}  # a folder is no file


def test_files_that_can_not_be_used_are_told(tmp_path: Path) -> None:
    """A log in a folder that is not there, and a configuration that is not there."""
    missing = tmp_path / "missing"
    settings = {
        "NCCL_DEBUG_FILE": Setting(f"{missing}/log.%h", "the environment"),
        "NCCL_CONF_FILE": Setting(f"{missing}.conf", "the environment"),
    }
    assert probe_blocked(settings) == {
        "NCCL_DEBUG_FILE": f"{missing}/log.%h can't be written to",
        "NCCL_CONF_FILE": f"{missing}.conf can't be read",
    }
    fine = {"NCCL_DEBUG_FILE": Setting(f"{tmp_path}/log.%h", "the environment")}
    assert probe_blocked(fine) == {}
    folder = {"NCCL_DEBUG_FILE": Setting(str(tmp_path), "the environment")}
    assert probe_blocked(folder) == {"NCCL_DEBUG_FILE": f"{tmp_path} can't be written to"}


def test_pytorch_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is built for; its warning of an old driver is not shown."""

    def count() -> int:
        warnings.warn("The NVIDIA driver on your system is too old", stacklevel=1)
        return 0

    cuda = SimpleNamespace(device_count=count, get_arch_list=lambda: ["sm_90", "compute_90"])
    version = SimpleNamespace(cuda="12.9")
    torch = SimpleNamespace(__version__="2.8.0", version=version, cuda=cuda)
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert probe_torch() == Torch("2.8.0", (12, 9), ("sm_90", "compute_90"), 0)
    version.cuda = None
    assert probe_torch() == Torch("2.8.0", None, (), 0)


def test_a_pytorch_that_is_not_there_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The reason of the failed import is kept."""
    monkeypatch.setitem(sys.modules, "torch", None)
    found = probe_torch()
    assert isinstance(found, Unknown)
    assert found.reason.startswith("torch can't be imported: ")


def test_cuda_versions_are_numbers() -> None:
    """A third number is dropped."""
    assert (cuda_version("12.9"), cuda_version("11.8.0")) == ((12, 9), (11, 8))
