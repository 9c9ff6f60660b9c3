"""strata installs as a Python package: `pip install -e . && invoke …` works too."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PARTS = ("strata", "layers", "images", "locks", "train", "tasks.py", "pyproject.toml", "README.md")


def test_invoke_works_in_an_editable_install(tmp_path: Path) -> None:
    """After `pip install -e .` in another environment, plain `invoke plan` shows the plan."""
    clone, venv = tmp_path / "clone", tmp_path / "venv"
    clone.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, clone / part)
        else:
            shutil.copyfile(source, clone / part)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    # The dependencies are those of this environment: the test needs no network.
    (site,) = venv.glob("lib/python3*/site-packages")
    packages = next(p for p in sys.path if p.endswith("site-packages"))
    (site / "dependencies.pth").write_text(f"{packages}\n")
    python = venv / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "-e", str(clone)], check=True, capture_output=True)

    done = subprocess.run(
        [python, "-m", "invoke", "plan"],
        cwd=clone,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "30-pytorch" in done.stdout
