"""What only a machine with GPUs reaches, held against NVML's real Python module."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TRAIN = Path(__file__).resolve().parents[2] / "train"
ASKING = ("ddp/links.py", "doctor/probe_nvidia.py")
# How many arguments the functions of pynvml take: nvidia-ml-py 13.580.65 and 13.595.45,
# by inspect.signature.
PARAMETERS = {
    "nvmlDeviceGetApplicationsClock": 2,
    "nvmlDeviceGetCount": 0,
    "nvmlDeviceGetCudaComputeCapability": 1,
    "nvmlDeviceGetCurrentClocksEventReasons": 1,
    "nvmlDeviceGetCurrentClocksThrottleReasons": 1,
    "nvmlDeviceGetDefaultApplicationsClock": 2,
    "nvmlDeviceGetHandleByIndex": 1,
    "nvmlDeviceGetHandleByUUID": 1,
    "nvmlDeviceGetMaxPcieLinkGeneration": 1,
    "nvmlDeviceGetMaxPcieLinkWidth": 1,
    "nvmlDeviceGetName": 1,
    "nvmlDeviceGetNvLinkState": 2,
    "nvmlDeviceGetNvLinkVersion": 2,
    "nvmlDeviceGetP2PStatus": 3,
    "nvmlInit": 0,
    "nvmlShutdown": 0,
    "nvmlSystemGetDriverVersion": 0,
}
CLASSES = {"NVMLError", "NVMLError_InvalidArgument", "NVMLError_NotSupported"}
CONSTANTS = {"NVML_NVLINK_MAX_LINKS"}


def nodes() -> list[ast.AST]:
    """Return all nodes of the files that ask NVML."""
    return [node for name in ASKING for node in ast.walk(ast.parse((TRAIN / name).read_text()))]


def called(node: ast.Call) -> tuple[str, list[ast.expr]] | None:
    """Return what is asked of NVML and with what: `nvml.NAME(…)`, or `….ask("NAME", …)`."""
    if not isinstance(node.func, ast.Attribute):
        return None
    if isinstance(node.func.value, ast.Name) and node.func.value.id == "nvml":
        return node.func.attr, node.args
    if node.func.attr == "ask" and isinstance(node.args[0], ast.Constant):
        return str(node.args[0].value), node.args[1:]
    return None


def test_what_is_asked_of_nvml_exists() -> None:
    """Each name is one of the real module, also one that is asked for as a text."""
    names = {node.attr for node in nodes() if isinstance(node, ast.Attribute)}
    texts = {str(node.value) for node in nodes() if isinstance(node, ast.Constant)}
    found = {name for name in names | texts if re.fullmatch(r"nvml[A-Z]\w+|NVML\w+", name)}
    assert found - {"NVML"} == {*PARAMETERS, *CLASSES, *CONSTANTS}


def test_nvml_is_called_as_its_functions_are_defined() -> None:
    """Each call has as many arguments as the function takes, by position."""
    calls = [node for node in nodes() if isinstance(node, ast.Call)]
    assert [c for c in calls if called(c) and c.keywords] == []
    found = {(name, len(words)) for name, words in filter(None, map(called, calls))}
    # One is asked through a variable, by its new name or not at all.
    through_variable = {("nvmlDeviceGetCurrentClocksEventReasons", 1)}
    assert found | through_variable == set(PARAMETERS.items())
