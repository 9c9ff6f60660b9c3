"""Runs ddp-check as its users do: in the built image, or in a given Python with torch."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = "STRATA_TRAIN_PYTHON"
IMAGE = "strata/train:embedded"
SCHEMA = json.loads((ROOT / "docs/ddp-check.schema.json").read_text())
IN_IMAGE = "/opt/strata/train"
# What a careful cluster allows: nothing here may need more.
CLOSED = ["--read-only", "--cap-drop", "ALL", "--user", "54321:54321"]
# What data loaders need: Docker's own 64 MiB are too little, which is a phase of its own.
SHARED_MEMORY = "--shm-size=1g"
TIMEOUT = 400
# No GPU is used even where there is one: these are tests of gloo ranks.
ENVIRONMENT = {"CUDA_VISIBLE_DEVICES": ""}


@dataclass(frozen=True)
class Result:
    """How a run ended; `left` are its processes that were still there."""

    code: int
    out: str
    err: str
    left: list[str]

    @property
    def document(self) -> dict[str, Any]:
        """What --json has printed: one JSON document, as its schema says, and nothing else."""
        document: dict[str, Any] = json.loads(self.out)
        jsonschema.validate(document, SCHEMA)
        return document

    def phase(self, name: str) -> dict[str, Any]:
        """Return one phase of the document."""
        return next(phase for phase in self.document["phases"] if phase["name"] == name)


@dataclass(frozen=True)
class Trainer:
    """A Python with torch, and the files of train/; `tmp` is how the image's /tmp is mounted."""

    image: str = IMAGE
    tmp: str = "/tmp"  # noqa: S108 - of the container

    def command(self, env: Mapping[str, str], network: str) -> tuple[list[str], str]:
        """Return how to start Python, and where it finds the files of train/."""
        words = shlex.split(os.environ.get(PYTHON, ""))
        if words:
            return words, str(ROOT / "train")
        settings = [word for name, value in env.items() for word in ("-e", f"{name}={value}")]
        volume = ["-v", f"{ROOT / 'train'}:{IN_IMAGE}:ro"]
        run = ["docker", "run", "--rm", "--network", network, SHARED_MEMORY, *CLOSED]
        run += [f"--tmpfs={self.tmp}", *settings, *volume]
        return [*run, self.image, "python"], IN_IMAGE

    def start(
        self,
        *argv: str,
        env: Mapping[str, str] | None = None,
        network: str = "none",
        sent: int = 0,
        processes: int = 0,
    ) -> subprocess.Popen[str]:
        """Start ddp-check; send it the signal `sent` once so many processes run."""
        words = ["-W", "error", "{train}/ddp_check.py", *argv]
        return self._start(words, env, network, sent, processes)

    def _start(
        self,
        words: Sequence[str],
        env: Mapping[str, str] | None,
        network: str,
        sent: int = 0,
        processes: int = 0,
    ) -> subprocess.Popen[str]:
        env = {**ENVIRONMENT, **(env or {})}
        python, train = self.command(env, network)
        probe = ["-c", (ROOT / "tests/train/probe.py").read_text(), str(sent), str(processes)]
        program = [python[-1], *(word.replace("{train}", train) for word in words)]
        return subprocess.Popen(
            [*python, *probe, *program],
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def finish(self, process: subprocess.Popen[str]) -> Result:
        """Wait for a started run and return how it ended."""
        try:
            out, err = process.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        err, found, left = err.rpartition("left: ")
        if not found:
            pytest.fail(f"the run broke before its end:\n{left}", pytrace=False)
        return Result(process.returncode, out, err, json.loads(left))

    def python(
        self, *words: str, env: Mapping[str, str] | None = None, network: str = "none"
    ) -> Result:
        """Run Python to its end; `{train}` in a word is where the files of train/ are."""
        return self.finish(self._start(words, env, network))

    def check(self, *argv: str, **settings: Any) -> Result:  # noqa: ANN401 - as `start` has them
        """Run ddp-check to its end."""
        return self.finish(self.start(*argv, **settings))


@pytest.fixture(scope="session")
def trainer() -> Trainer:
    """Return a trainer, or fail: without a Python that has torch nothing is shown."""
    if not os.environ.get(PYTHON):
        look: Sequence[str] = ["docker", "image", "inspect", IMAGE]
        done = subprocess.run(look, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.fail(
                f"there is no image {IMAGE} (`./inv build` makes it) and {PYTHON} names no "
                f"Python with torch: {done.stderr.strip()}",
                pytrace=False,
            )
    return Trainer()
