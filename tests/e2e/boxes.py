"""Containers as users start them, with Docker's own command line, and always removed."""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest

Image = Callable[[str], str]
ROOT = Path(__file__).resolve().parent.parent.parent
Answer = TypeVar("Answer")
ENDS_WITHIN = 120.0  # seconds for a command in a container of its own
PATIENCE = 60.0  # seconds that a service has to come up; this machine may be busy


@dataclass(frozen=True)
class Ended:
    """How a program ended, what it wrote, byte for byte, and how long it took in seconds."""

    code: int
    stdout: bytes
    stderr: bytes
    seconds: float

    @property
    def out(self) -> str:
        """What it wrote to stdout, as text without the last newline."""
        return self.stdout.decode().rstrip("\n")

    @property
    def err(self) -> str:
        """What it wrote to stderr, as text."""
        return self.stderr.decode(errors="replace")


def call(
    *argv: str, env: dict[str, str] | None = None, stdin: bytes = b"", patience: float = 600
) -> Ended:
    """Run a program to its end, whatever its end is, within so many seconds."""
    start = time.monotonic()
    done = subprocess.run(
        argv,
        env={**os.environ, **(env or {})},
        input=stdin,
        capture_output=True,
        timeout=patience,
        check=False,
    )
    return Ended(done.returncode, done.stdout, done.stderr, time.monotonic() - start)


def until(attempt: Callable[[], Answer | None], what: str, patience: float = PATIENCE) -> Answer:
    """Try until there is an answer; fail with `what` after `patience` seconds."""
    end = time.monotonic() + patience
    while True:
        answer = attempt()
        if answer is not None:
            return answer
        if time.monotonic() > end:
            pytest.fail(f"waited {patience:.0f} s in vain for {what}")
        time.sleep(0.1)


@dataclass(frozen=True)
class Box:
    """A container that runs."""

    name: str
    env: dict[str, str]

    def docker(self, *argv: str) -> Ended:
        """Run a docker command."""
        return call("docker", *argv, env=self.env)

    def run(self, *argv: str) -> Ended:
        """Run a command in it, as `docker exec` does."""
        return self.docker("exec", self.name, *argv)

    def port(self, inside: int) -> int:
        """Return the port of this machine's loopback that leads to one of its own."""
        said = self.docker("port", self.name, str(inside))
        assert said.code == 0, said.err
        return int(said.out.splitlines()[0].rpartition(":")[2])

    @property
    def logs(self) -> str:
        """All that it has written so far."""
        said = self.docker("logs", self.name)
        return said.stdout.decode(errors="replace") + said.err

    @property
    def state(self) -> dict[str, Any]:
        """What the engine says of it."""
        said = self.docker("inspect", "--format", "{{json .State}}", self.name)
        found: dict[str, Any] = json.loads(said.stdout)
        return found

    def stop(self) -> tuple[int, float]:
        """Stop it as `docker stop` does; return its exit code and the seconds that it took."""
        said = self.docker("stop", "--time", "20", self.name)
        assert said.code == 0, said.err
        return int(self.state["ExitCode"]), said.seconds

    def ended(self) -> int:
        """Wait for its end; return its exit code."""
        until(lambda: None if self.state["Running"] else True, f"the end of {self.name}")
        return int(self.state["ExitCode"])


@dataclass
class Boxes:
    """Starts containers; `close` removes them."""

    env: dict[str, str]
    image: Image
    names: list[str] = field(default_factory=list)

    def start(self, image: str, *options: str, command: tuple[str, ...] = ()) -> Box:
        """Start a container of an image (its name, or a reference) in the background."""
        reference = image if ":" in image else self.image(image)
        said = call("docker", "run", "--detach", *options, reference, *command, env=self.env)
        if said.out:
            self.names.append(said.out)
        assert said.code == 0, said.err
        return Box(said.out, self.env)

    def once(
        self, image: str, *options: str, command: tuple[str, ...] = (), stdin: bytes = b""
    ) -> Ended:
        """Run a command in a container of its own, to its end; a service that goes on fails."""
        reference = image if ":" in image else self.image(image)
        name = f"strata-test-{uuid.uuid4().hex[:12]}"
        argv = ("docker", "run", "--rm", "--name", name, *options, reference, *command)
        try:
            return call(*argv, env=self.env, stdin=stdin, patience=ENDS_WITHIN)
        except subprocess.TimeoutExpired:
            self.names.append(name)
            pytest.fail(f"still running after {ENDS_WITHIN:.0f} s: {' '.join(argv)}")

    def close(self) -> None:
        """Remove all that was started."""
        if self.names:
            removed = call("docker", "rm", "--force", "--volumes", *self.names, env=self.env)
            assert removed.code == 0, removed.err
