"""A small project with everything that a real one has: four layers, three images, a lock.

Its layers need nothing but a shell, so that it is built within seconds.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from strata.load import load
from strata.lock import inputs_digest, packages_digest, read_lock
from strata.locking import variant_inputs
from strata.plan import make_plan

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from strata.plan import Plan

REPOSITORY = Path(__file__).resolve().parent.parent
VARIANT = "embedded"
CHANNEL = "https://channel.strata.invalid/"
EPOCH = 1_700_000_000
NOWHERE = "unix:///nonexistent/docker.sock"

FILES = {
    "layers/10-one/layer.toml": """\
summary = "The lowest layer"
[args]
COLOUR = "red"
[facts]
colour = "cat /colour"
""",
    "layers/10-one/Dockerfile": """\
FROM parent
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
ARG COLOUR
RUN <<'END'
echo "$COLOUR" > /colour
END
""",
    "layers/20-two/layer.toml": """\
summary = "One more file"
requires = ["10-one"]
""",
    "layers/20-two/Dockerfile": """\
FROM parent
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
ARG COLOUR
RUN echo "two on $COLOUR" > /two
""",
    "layers/30-env/layer.toml": """\
summary = "An environment from the lock"
requires = ["10-one"]
optional = true
category = "env"
contexts = ["data"]
[facts]
tool = "/opt/env/bin/tool --version"
""",
    "layers/30-env/Dockerfile": "FROM parent\nRUN --mount=from=env,target=/mnt/env true\n",
    "layers/30-env/environment.yml": "dependencies:\n- tool\n",
    "layers/40-top/layer.toml": """\
summary = "The highest layer"
requires = ["10-one"]
""",
    "layers/40-top/Dockerfile": """\
FROM parent
RUN --mount=type=bind,source=rootfs,target=/mnt/rootfs cat /mnt/rootfs/etc/top > /top
""",
    "layers/40-top/rootfs/etc/top": "top\n",
    "images/small.toml": 'summary = "One layer"\nlayers = ["10-one"]\n',
    "images/pair.toml": 'summary = "Two layers"\nlayers = ["10-one", "20-two"]\n',
    "images/whole.toml": """\
summary = "All layers, and a training check"
layers = ["10-one", "20-two", "30-env", "40-top"]
checks = ["ddp"]
""",
    "data/words.txt": "words\n",
    f"locks/{VARIANT}/sources.toml": f"""\
platforms = ["linux/amd64"]
epoch = {EPOCH}
[base]
suite = "bookworm"
include = ["python3"]
[left_out]
""",
    f"locks/{VARIANT}/pins.yml": f"""\
accelerator: cpu
channels: ["{CHANNEL}"]
platforms: [linux-64]
virtual-packages: {{linux-64: {{__glibc: "2.36"}}}}
pins:
  tool: 1.*
""",
}


@dataclass(frozen=True)
class SmallProject:
    """A project in a folder of its own, in which one thing can be changed."""

    root: Path

    def write(self, path: str, text: str) -> Path:
        """Write a file below the project's root."""
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def replace(self, path: str, old: str, new: str) -> None:
        """Replace a text that stands in a file."""
        text = (self.root / path).read_text()
        if old not in text:
            raise ValueError(f"{path} does not hold {old!r}")
        self.write(path, text.replace(old, new))

    def leave_out(self, layer: str) -> None:
        """Make the variant do without a layer."""
        text = f'[left_out]\n{layer} = "not needed here"\n'
        self.replace(f"locks/{VARIANT}/sources.toml", "[left_out]\n", text)

    @property
    def lock(self) -> Path:
        """The variant's lock."""
        return self.root / "locks" / VARIANT / "conda-lock.yml"

    def relock(self) -> None:
        """Write the lock that suits the definitions; one without packages if none are needed."""
        project = load(self.root)
        inputs = variant_inputs(project, project.variants[VARIANT])
        packages = [_package("library"), _package("tool", "library")] if inputs.environments else []
        document = {
            "version": 1,
            "metadata": {
                "channels": [{"url": CHANNEL, "used_env_vars": []}],
                "platforms": ["linux-64"],
                "custom_metadata": {
                    "strata-inputs-digest": inputs_digest(inputs),
                    "strata-packages-digest": packages_digest(map(_identity, packages)),
                    **{f"strata-input.{name}": value for name, value in inputs.facts().items()},
                },
            },
            "package": packages,
        }
        self.lock.write_text(json.dumps(document, indent=1))  # JSON is YAML

    def plan(self, *images: str) -> Plan:
        """Load the project and plan some of its images; all of them for none."""
        project = load(self.root)
        chosen = [image for name, image in project.images.items() if not images or name in images]
        return make_plan(project, project.variants[VARIANT], chosen, read_lock(self.lock))

    def inv(
        self, *arguments: str, env: Mapping[str, str] | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a task on the command line; `timeout` is in seconds."""
        return self.run(self.command(*arguments), env=env, timeout=timeout)

    def run(
        self, argv: Sequence[str], *, env: Mapping[str, str] | None = None, timeout: float = 120
    ) -> subprocess.CompletedProcess[str]:
        """Run a program in the project's folder, its stdin empty; `timeout` is in seconds."""
        return subprocess.run(
            argv,
            cwd=self.root,
            env=self.environment(env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=timeout,
            check=False,
        )

    def command(self, *arguments: str) -> list[str]:
        """Return the argv of a task."""
        return [sys.executable, "-m", "invoke", "--search-root", str(self.root), *arguments]

    def environment(self, extra: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return what a task finds in its environment: ours, this strata, an own cache."""
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("GITHUB_", "STRATA_"))}
        return {
            **kept,
            "PYTHONPATH": str(REPOSITORY),
            "PYTHONDONTWRITEBYTECODE": "1",
            "STRATA_CACHE": str(self.root / "cache"),
            **(extra or {}),
        }


def make_project(root: Path) -> SmallProject:
    """Write the small project, whole and without a fault, into a folder."""
    project = SmallProject(root)
    for path, text in FILES.items():
        project.write(path, text)
    shutil.copyfile(REPOSITORY / "tasks.py", root / "tasks.py")
    project.relock()
    return project


def _identity(package: Mapping[str, Any]) -> tuple[str, str, str, str]:
    return (package["platform"], package["name"], package["url"], package["hash"]["sha256"])


def _package(name: str, *dependencies: str) -> dict[str, object]:
    filename = f"{name}-1.0-h0_0.conda"
    return {
        "name": name,
        "version": "1.0",
        "manager": "conda",
        "platform": "linux-64",
        "dependencies": dict.fromkeys(dependencies, ""),
        "url": f"{CHANNEL}linux-64/{filename}",
        "hash": {"md5": "0" * 32, "sha256": name[0].encode().hex() * 32},
        "category": "env",
        "optional": False,
    }
