"""strata/inbuild/lay, run as the layers' Dockerfiles run it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from strata.digest import folder_digests

LAY = Path(__file__).parents[2] / "strata" / "inbuild" / "lay"
CACHES = ("__pycache__/a.pyc", "x/__pycache__/b.pyc", ".mypy_cache/3.11/c.json", ".ruff_cache/d")


def lay(source: Path, target: Path, umask: int = 0o022) -> dict[str, str]:
    """Lay the files of `source` over `target`; return what is there, by path."""
    subprocess.run(["sh", str(LAY), str(source), str(target)], check=True, umask=umask)
    return {
        path.relative_to(target).as_posix(): (
            f"-> {path.readlink()}" if path.is_symlink() else f"{path.stat().st_mode:o}"
        )
        for path in target.rglob("*")
    }


def make_files(folder: Path) -> None:
    """Write a program, a file below two folders, and a link."""
    (folder / "x" / "y").mkdir(parents=True)
    (folder / "program").write_text("#!/bin/sh\n")
    (folder / "program").chmod(0o700)
    (folder / "x" / "y" / "a file").write_text("text")
    (folder / "x" / "link").symlink_to("y/a file")


def test_modes_are_gits_whatever_the_umask(tmp_path: Path) -> None:
    """Folders and programs get 0755, files 0644; what is there keeps its mode."""
    source, target = tmp_path / "source", tmp_path / "target"
    make_files(source)
    (target / "x").mkdir(parents=True)
    (target / "x").chmod(0o700)
    (source / "x" / "y" / "a file").chmod(0o600)
    assert lay(source, target, 0o077) == {
        "program": "100755",
        "x": "40700",
        "x/link": "-> y/a file",
        "x/y": "40755",
        "x/y/a file": "100644",
    }


def test_what_a_checkout_collects_neither_counts_nor_lands(tmp_path: Path) -> None:
    """With tools' caches and empty folders in it, the same folder gives the same image."""
    clean, used = tmp_path / "clean", tmp_path / "used"
    make_files(clean)
    make_files(used)
    for cache in CACHES:
        (used / cache).parent.mkdir(parents=True)
        (used / cache).write_text(cache)
    (used / "x" / "empty" / "__pycache__").mkdir(parents=True)
    assert folder_digests(used, "layer") == folder_digests(clean, "layer")
    assert lay(used, tmp_path / "from-used") == lay(clean, tmp_path / "from-clean")
