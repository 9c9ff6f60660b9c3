"""strata installs as a Python package: `pip install -e . && invoke build` works too."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.e2e.tiny import make_tiny_project, remove_images

if TYPE_CHECKING:
    from docker import DockerClient

    from strata.engine import Engine

ROOT = Path(__file__).parents[2]


def test_invoke_works_in_an_editable_install(
    tmp_path: Path, engine: Engine, docker_client: DockerClient
) -> None:
    """After `pip install -e .` in another environment, plain `invoke build` builds and records."""
    project = make_tiny_project(tmp_path, engine.env)
    shutil.copytree(ROOT / "strata", project.root / "strata")
    shutil.copytree(ROOT / "train", project.root / "train")
    for name in ("pyproject.toml", "README.md"):
        shutil.copyfile(ROOT / name, project.root / name)
    venv = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    # The dependencies are those of this environment: the test needs no network.
    (site,) = venv.glob("lib/python3*/site-packages")
    packages = next(p for p in sys.path if p.endswith("site-packages"))
    (site / "dependencies.pth").write_text(f"{packages}\n")
    python = venv / "bin" / "python"
    pip = [str(python), "-m", "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "-e", str(project.root)], check=True, capture_output=True)

    environment = project.environment(project.env)
    del environment["PYTHONPATH"]
    try:
        done = subprocess.run(
            [python, "-m", "invoke", "build", "--image", "small", "--no-check"],
            cwd=project.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
    finally:
        remove_images(docker_client)

    assert done.returncode == 0, done.stderr
    assert "strata/small:embedded" in done.stdout
    assert project.record.is_file()
