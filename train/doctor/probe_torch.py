"""Asks the PyTorch of this environment what it is built for."""

from __future__ import annotations

import importlib
import warnings

from doctor.facts import Torch, Unknown


def probe_torch() -> Torch | Unknown:
    """Return what this environment's PyTorch is, or why it can't be imported."""
    try:
        torch = importlib.import_module("torch")
    except (ImportError, OSError, RuntimeError) as error:
        return Unknown(f"torch can't be imported: {error}")
    cuda = torch.version.cuda
    with warnings.catch_warnings():
        # An old driver makes torch warn; that is a finding of its own here.
        warnings.simplefilter("ignore")
        gpus = torch.cuda.device_count() if cuda else 0
        architectures = tuple(torch.cuda.get_arch_list()) if cuda else ()
    return Torch(
        version=str(torch.__version__),
        cuda=cuda_version(cuda) if cuda else None,
        architectures=architectures,
        gpus=gpus,
    )


def cuda_version(text: str) -> tuple[int, int]:
    """Return "12.9" or "12.9.1" as (12, 9)."""
    major, minor = text.split(".")[:2]
    return int(major), int(minor)
