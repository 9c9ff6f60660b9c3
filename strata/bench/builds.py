"""How each recipe is built, built again, and changed in one line."""

from __future__ import annotations

import shutil
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from strata.errors import BuildError
from strata.run import run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from strata.bench.model import Recipe
    from strata.engine import Engine
    from strata.workspace import Workspace

BASE = "localhost/strata-bench/base:latest"
IMAGE = "lab"
VARIANT = "embedded"
CHANGED_LAYER = "layers/40-jupyter/rootfs/opt/env/etc/jupyter/jupyter_server_config.py"
CHANGE = "# changed by the bench\n"


class Build(Protocol):
    """One recipe in an engine of its own."""

    @property
    def ref(self) -> str:
        """The name of its image."""

    def prepare(self) -> None:
        """Do what comes before the clock starts."""

    def build(self, log: Path) -> float:
        """Build and return the seconds that it took; raises `BuildError`."""

    def change(self) -> None:
        """Change one line of what makes the Jupyter layer."""


@dataclass(frozen=True, kw_only=True)
class StrataBuild:
    """strata itself, run in a clone of the project as a user runs it."""

    clone: Workspace
    engine: Engine
    ref: str = f"strata/{IMAGE}:{VARIANT}"

    def prepare(self) -> None:
        """Do nothing: what it needs is in the cache."""

    def build(self, log: Path) -> float:
        """Run the command to its end."""
        root = self.clone.root
        argv = [sys.executable, "-m", "strata", "--search-root", str(root), "build"]
        argv += ["--image", IMAGE, "--variant", VARIANT, "--no-check"]
        env = {
            "PYTHONPATH": str(root),
            "STRATA_ENGINE": "private",
            "STRATA_CACHE": str(self.clone.cache),
        }
        return _timed(argv, env, log, where="strata", cwd=root)

    def change(self) -> None:
        """Add a line to a file of the layer."""
        _append(self.clone.root / CHANGED_LAYER)


@dataclass(frozen=True, kw_only=True)
class DockerfileBuild:
    """A Dockerfile, built as people build one.

    `laid` holds what `lay_wheels` laid out, `base` the folder of the base's
    Dockerfile; `context` is made by `prepare`, and may be changed.
    """

    recipe: Recipe
    dockerfile: Path
    engine: Engine
    base: Path
    laid: Path
    context: Path

    @property
    def ref(self) -> str:
        """The name of its image."""
        return f"localhost/strata-bench/{self.recipe.name}:latest"

    def prepare(self) -> None:
        """Load the base image, and lay out a build context that may be changed."""
        shutil.copytree(self.laid / "requirements", self.context)
        argv = ["docker", "buildx", "build", "--tag", BASE, str(self.base)]
        fix = "read the lines above from the first ERROR on"
        run(argv, error=BuildError, where="bench base", fix=fix, env=self._env)

    def build(self, log: Path) -> float:
        """Run `docker buildx build` to its end."""
        argv = ["docker", "buildx", "build", "--progress", "plain"]
        argv += ["--file", str(self.dockerfile), "--tag", self.ref]
        argv += ["--build-context", f"parent=docker-image://{BASE}"]
        argv += ["--build-context", f"wheels={self.laid / 'wheels'}", str(self.context)]
        return _timed(argv, self._env, log, where=self.recipe.dockerfile, cwd=self.context)

    def change(self) -> None:
        """Add a line to the requirements; a recipe reads one of the two files for Jupyter."""
        for name in ("requirements.txt", "jupyter.txt"):
            _append(self.context / name)

    @property
    def _env(self) -> dict[str, str]:
        # An attestation would wrap the image into an index.
        return {**self.engine.env, "BUILDX_NO_DEFAULT_ATTESTATIONS": "1"}


def _timed(argv: Sequence[str], env: dict[str, str], log: Path, *, where: str, cwd: Path) -> float:
    start = time.monotonic()
    fix = "read the lines above from the first ERROR on"
    run(argv, error=BuildError, where=f"bench of {where}", fix=fix, env=env, cwd=cwd, log=log)
    return time.monotonic() - start


def _append(file: Path) -> None:
    """Add a line at the end of a file that must be there already."""
    if not file.is_file():
        raise BuildError.at(
            str(file), "is not there, so the bench can't change it", "name another in strata/bench"
        )
    with file.open("a") as text:
        text.write(CHANGE)
