"""What torch.compile needs, and how its lack is told."""

from __future__ import annotations

import importlib.util
import shutil
import sysconfig
from typing import TYPE_CHECKING

import pytest

from ddp.compiler import why_no_compiler

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Return a function that sets which programs, headers and packages there are."""

    def has(*programs: str, headers: bool = True, triton: bool = True) -> None:
        header = tmp_path / "Python.h"
        header.touch()
        if not headers:
            header.unlink()
        monkeypatch.delenv("CC", raising=False)
        monkeypatch.delenv("CXX", raising=False)
        monkeypatch.setattr(sysconfig, "get_paths", lambda: {"include": str(tmp_path)})
        monkeypatch.setattr(shutil, "which", lambda name: name if name in programs else None)
        found = object() if triton else None
        monkeypatch.setattr(importlib.util, "find_spec", {"triton": found}.__getitem__)

    return has


@pytest.mark.parametrize(
    ("programs", "capability"),
    [(("g++",), None), (("clang++",), None), (("cc",), (7, 0)), (("gcc",), (9, 0))],
)
def test_with_all_that_it_needs_nothing_is_missing(
    host: Callable[..., None], programs: tuple[str, ...], capability: tuple[int, int] | None
) -> None:
    """A C++ compiler on the CPU; on GPUs a C compiler and Triton."""
    host(*programs)
    assert why_no_compiler(capability) is None


def test_the_cpu_needs_no_triton(host: Callable[..., None]) -> None:
    """Its kernels are C++."""
    host("g++", triton=False)
    assert why_no_compiler(None) is None


@pytest.mark.parametrize(
    ("programs", "triton", "capability", "reason"),
    [
        (("gcc",), True, None, "there is no C++ compiler (g++, c++, clang++)"),
        (("g++",), True, (8, 0), "there is no C compiler (cc, gcc, clang)"),
        (("gcc",), False, (8, 0), "there is no Triton (the package triton)"),
        (("gcc",), True, (6, 1), "compute capability 6.1 is below 7.0"),
    ],
)
def test_what_is_missing_is_named(
    host: Callable[..., None],
    programs: tuple[str, ...],
    *,
    triton: bool,
    capability: tuple[int, int] | None,
    reason: str,
) -> None:
    """A compiler of the right language, Triton, or a GPU that is new enough."""
    host(*programs, triton=triton)
    assert why_no_compiler(capability) == reason


def test_headers_are_needed_too(host: Callable[..., None], tmp_path: Path) -> None:
    """Images often have a compiler and no Python.h."""
    host("g++", headers=False)
    assert why_no_compiler(None) == f"there is no {tmp_path / 'Python.h'}"


def test_a_chosen_compiler_is_the_one_that_counts(
    host: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """CXX names it, whatever else there is."""
    host("g++")
    monkeypatch.setenv("CXX", "icpx")
    assert why_no_compiler(None) == "there is no C++ compiler (icpx)"
