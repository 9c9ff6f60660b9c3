"""The code is clean: linters, types and formats, as pinned in requirements/test.txt."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def tracked(*patterns: str) -> list[str]:
    """Return the files of the project that match, as git sees them."""
    argv = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *patterns]
    listing = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [name for name in listing.splitlines() if (ROOT / name).is_file()]


def scripts() -> list[str]:
    """Return the project's shell scripts: whatever starts with a shell's first line."""
    return [
        name
        for name in tracked()
        if (ROOT / name).read_bytes()[:20].startswith((b"#!/bin/sh", b"#!/bin/bash"))
    ]


def complaints(*argv: str, cwd: Path = ROOT, stdin: str = "") -> str:
    """Run a linter and return what it says; nothing when it is content."""
    done = subprocess.run(
        [str(BIN / argv[0]), *argv[1:]],
        cwd=cwd,
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
    )
    said = done.stdout + done.stderr
    return (said or f"exit code {done.returncode}") if done.returncode else ""


def test_ruff_finds_nothing() -> None:
    """Every rule of ruff holds, but for the exceptions that pyproject.toml gives reasons for."""
    assert complaints("ruff", "check", "--quiet", ".") == ""


def test_the_format_is_ruffs() -> None:
    """Every Python file is formatted."""
    assert complaints("ruff", "format", "--check", "--quiet", ".") == ""


def test_types_are_strict() -> None:
    """Mypy's strict mode finds no error."""
    assert complaints("mypy", "--no-error-summary") == ""


def test_shell_scripts_are_clean() -> None:
    """Shellcheck and shfmt find nothing in any script."""
    found = scripts()
    assert "inv" in found
    assert complaints("shellcheck", "--severity=style", *found) == ""
    assert complaints("shfmt", "-d", "-i", "2", "-ci", *found) == ""


def test_shell_scripts_are_short() -> None:
    """No shell script is longer than 40 lines: what is longer is written in Python."""
    lengths = {name: len((ROOT / name).read_text().splitlines()) for name in scripts()}
    assert {name: n for name, n in lengths.items() if n > 40} == {}


@pytest.mark.parametrize("dockerfile", tracked("layers/*/Dockerfile", "bench/*.Dockerfile"))
def test_hadolint_finds_nothing(dockerfile: str) -> None:
    """Every layer's Dockerfile passes hadolint."""
    assert complaints("hadolint", "--config", "layers/.hadolint.yaml", dockerfile) == ""


def test_a_fault_is_found(tmp_path: Path) -> None:
    """The linters would say so if there were something."""
    bad = tmp_path / "bad.py"
    bad.write_text("import os\n")
    assert "F401" in complaints("ruff", "check", "--select", "F", str(bad), cwd=tmp_path)
    assert "SC2086" in complaints("shellcheck", "-s", "sh", "-", stdin="#!/bin/sh\nrm $1\n")
    assert "DL3006" in complaints("hadolint", "-", stdin="FROM debian\n")
