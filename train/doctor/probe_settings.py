"""Reads the variables that change how training runs: from the environment and NCCL's files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from doctor.facts import Setting

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIXES = (
    "NCCL_",
    "TORCH_NCCL_",
    "TORCH_DISTRIBUTED_",
    "GLOO_",
    "TP_SOCKET_",
    "CUDA_",
    "NVIDIA_",
    "OMP_",
    "MKL_",
)
HIDES = "CUDA_VISIBLE_DEVICES"  # which means something when it is empty, too
ENVIRONMENT = "the environment"


def probe_settings(environ: Mapping[str, str], home: Path, etc: Path) -> dict[str, Setting]:
    """Return the settings in force.

    NCCL reads its files before it looks at a variable and never replaces what
    is set already, in this order: environment, NCCL_CONF_FILE or else
    ~/.nccl.conf, /etc/nccl.conf (NCCL's documentation, "Environment
    Variables").
    """
    found = {
        name: Setting(value, ENVIRONMENT)
        for name, value in environ.items()
        if name.startswith(PREFIXES) and (value or name == HIDES)
    }
    named = environ.get("NCCL_CONF_FILE")
    for file in (Path(named) if named else home / ".nccl.conf", etc / "nccl.conf"):
        for name, value in read_conf(file).items():
            found.setdefault(name, Setting(value, str(file)))
    return found


def read_conf(file: Path) -> dict[str, str]:
    """Return the lines NAME=VALUE of one of NCCL's files; nothing of one that can't be read."""
    try:
        text = file.read_text(errors="replace")
    except OSError:
        return {}  # NCCL passes it over as well; `probe_blocked` tells of one that is named
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if "=" in line and not line.startswith("#"))
    return {name.strip(): value.strip() for name, _, value in pairs if value.strip()}


def probe_blocked(settings: Mapping[str, Setting]) -> dict[str, str]:
    """Return why a file that a setting names can't be used, by the setting's name."""
    found = {}
    log = settings.get("NCCL_DEBUG_FILE")
    if log is not None and not _can_write(Path(log.value)):
        found["NCCL_DEBUG_FILE"] = f"{log.value} can't be written to"
    conf = settings.get("NCCL_CONF_FILE")
    if conf is not None and not os.access(conf.value, os.R_OK):
        found["NCCL_CONF_FILE"] = f"{conf.value} can't be read"
    return found


def _can_write(path: Path) -> bool:
    if "%" not in path.name and path.exists():  # NCCL puts host and pid for %h and %p
        return path.is_file() and os.access(path, os.W_OK)
    return path.parent.is_dir() and os.access(path.parent, os.W_OK | os.X_OK)
