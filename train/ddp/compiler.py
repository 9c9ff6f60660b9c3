"""What torch.compile needs beside torch, and whether it is here."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sysconfig
from pathlib import Path

# torch refuses older GPUs: Triton, which writes the kernels for GPUs, has none for them.
LEAST_CAPABILITY = (7, 0)


def why_no_compiler(capability: tuple[int, int] | None) -> str | None:
    """Return what is missing, None where nothing is.

    `capability` is the GPU's compute capability, None on the CPU.
    """
    if capability is not None:
        if importlib.util.find_spec("triton") is None:
            return "there is no Triton (the package triton)"
        if capability < LEAST_CAPABILITY:
            return f"compute capability {capability[0]}.{capability[1]} is below 7.0"
    # Triton compiles its launcher as C; the CPU's kernels are C++.
    language = "C++" if capability is None else "C"
    names = ("g++", "c++", "clang++") if capability is None else ("cc", "gcc", "clang")
    chosen = os.environ.get("CXX" if capability is None else "CC")
    if not any(shutil.which(name) for name in ((chosen,) if chosen else names)):
        return f"there is no {language} compiler ({chosen or ', '.join(names)})"
    header = Path(sysconfig.get_paths()["include"]) / "Python.h"
    return None if header.exists() else f"there is no {header}"
