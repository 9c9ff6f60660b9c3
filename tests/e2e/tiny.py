"""A project whose images are built within seconds: their base is a few programs of this machine."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
import tomllib
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.projects import SmallProject, make_project

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from docker import DockerClient

LOWEST = "layers/10-one/layer.toml"
PROGRAMS = ("base64", "bash", "cat", "chmod", "sh", "sleep")
# What takes mmdebstrap's place: it writes the tiny base where the real one would be written.
# It stands beside it, for a bootstrap sees none of the caller's variables.
BOOTSTRAP = """\
#!/bin/sh
set -e
for word; do
  case $word in */base/*) cp "$(dirname "$0")/../tiny.tar" "$word" ;; esac
done
"""
OURS = re.compile(r"strata/(embedded/(10-one|20-two|40-top)|small|pair|whole):")


def tiny_base() -> bytes:
    """Return a tar of some programs of this machine, and the libraries that they need."""
    paths = {name: str(shutil.which(name)) for name in PROGRAMS}
    listed = subprocess.run(
        ["ldd", *paths.values()], check=True, capture_output=True, text=True
    ).stdout
    libraries = {path for path in re.findall(r"/\S+", listed) if not path.endswith(":")}
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", dereference=True) as tar:
        for name, path in paths.items():
            tar.add(path, f"bin/{name}")
        for library in sorted(libraries):
            tar.add(library, library.lstrip("/"))
    return buffer.getvalue()


@dataclass(frozen=True)
class TinyProject(SmallProject):
    """The small project on a tiny base, with what its tasks find in their environment."""

    env: Mapping[str, str]

    def build(self, *argv: str, env: Mapping[str, str] | None = None) -> tuple[int, str, str]:
        """Run `build`; return its exit code, stdout and stderr."""
        done = self.inv("build", *argv, env={**self.env, **(env or {})})
        assert "Traceback" not in done.stdout + done.stderr, done.stderr
        return done.returncode, done.stdout, done.stderr

    def start(self, *argv: str) -> subprocess.Popen[str]:
        """Start a task in a process group of its own."""
        return subprocess.Popen(
            self.command(*argv),
            cwd=self.root,
            env=self.environment(self.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def commit(self) -> str:
        """Commit all that is there but what the build leaves; return the commit's id."""
        self.write(".gitignore", "/build/\n/cache/\n")
        git = ("git", "-c", "user.name=Ada", "-c", "user.email=ada@example.com")
        for words in (("init", "-q"), ("add", "."), ("commit", "-q", "--allow-empty", "-m", "one")):
            done = self.run([*git, *words])
            assert done.returncode == 0, done.stderr
        return self.run(["git", "rev-parse", "HEAD"]).stdout.strip()

    @property
    def marker(self) -> str:
        """What `/colour` holds in images that are built now."""
        text = (self.root / LOWEST).read_text()
        return str(tomllib.loads(text)["args"]["COLOUR"])

    def mark(self) -> str:
        """Give all images another content than any has had; return the new marker."""
        marker = uuid.uuid4().hex
        self.replace(LOWEST, f'"{self.marker}"', f'"{marker}"')
        return marker

    @property
    def record(self) -> Path:
        """Where the record is."""
        return self.root / "build" / "record.json"


def make_tiny_project(folder: Path, engine: Mapping[str, str]) -> TinyProject:
    """Write the tiny project into a folder; `engine` is what the docker client needs to know."""
    small = make_project(folder / "project")
    small.leave_out("30-env")
    small.replace("locks/embedded/pins.yml", "  tool: 1.*\n", "")
    small.relock()
    base, stub = folder / "tiny.tar", folder / "bin" / "mmdebstrap"
    base.write_bytes(tiny_base())
    stub.parent.mkdir()
    stub.write_text(BOOTSTRAP)
    stub.chmod(0o755)
    path = f"{stub.parent}{os.pathsep}{os.environ['PATH']}"
    project = TinyProject(small.root, env={**engine, "PATH": path})
    project.mark()
    return project


def remove_images(sdk: DockerClient) -> None:
    """Remove the images of the tiny project, whatever their digests."""
    for image in sdk.images.list():
        for tag in image.tags:
            if OURS.match(tag):
                sdk.images.remove(tag, force=True)
