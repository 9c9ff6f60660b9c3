"""The three upstreams of a public variant, on loopback, and a project that builds from them.

- A registry (Debian's) with a base that is like Ubuntu 24.04's: a user `ubuntu` of
  uid 1000, and no Python.
- A web server with an installer that keeps Miniconda's contract.
- The same server with a conda channel of thirteen small packages, from which a lock
  of the real shape was solved, by the real solver.

The project has the real layers; its variant names the public places, and the mirrors
lead to these.  `docs/mirrors.md` says how.
"""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tarfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from strata.embedded.child import call_child
from strata.load import load
from strata.lock import read_lock, solve_lock
from strata.locking import variant_inputs
from tests.e2e.miniconda import make_installer
from tests.packages.site import Answer
from tests.projects import EPOCH, REPOSITORY, SmallProject

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from docker import DockerClient

    from tests.packages.site import Site

VARIANT = "standin"
LAYERS = ("10-base", "20-miniconda", "30-pytorch", "40-jupyter")
IMAGES = ("lab", "slim")
CHANNEL = "https://conda.anaconda.org/conda-forge/"
BASE_NAME = "library/ubuntu"
INSTALLER = "Miniconda3-py311_26.9.0-1-Linux-x86_64.sh"
TOKEN = "loopback-s3cret"  # noqa: S105 - of a server that lives for one test
PYTHON = "python3.11"
SITE_PACKAGES = f"lib/{PYTHON}/site-packages"
# What a Python can do without, and nothing of what an installer needs.
LEFT_OUT = {
    "__pycache__",
    "dist-packages",
    "distutils",
    "ensurepip",
    "idlelib",
    "lib2to3",
    "pydoc_data",
    "sitecustomize.py",
    "unittest",
}
BASE = """\
FROM {parent}
USER root
RUN userdel --remove dev && useradd --create-home --uid 1000 --shell /bin/bash ubuntu \
 && rm -rf /usr/bin/python3* /usr/lib/python3* /opt/strata
# Ubuntu's has none, and the parent's would be made anew, as root's, in dev's home.
WORKDIR /
"""
# Debian's own looks for nothing in site-packages outside of a virtual environment.
SITECUSTOMIZE = f"""\
import os, site, sys
site.addsitedir(os.path.join(sys.prefix, "{SITE_PACKAGES}"))
"""
JUPYTER = """\
#!/opt/env/bin/python
print("4.6.3")
"""
SOURCES = """\
platforms = ["linux/amd64"]
epoch = {epoch}
[base]
image = "docker.io/{name}:24.04"
digest = "{digest}"
[installer]
url = "https://repo.anaconda.com/miniconda/Miniconda3-py311_26.9.0-1-Linux-{{arch}}.sh"
[installer.sha256]
"linux/amd64" = "{sha256}"
"""
PINS = f"""\
accelerator: cuda
minimum-driver: "525.60.13"
channels: ["{CHANNEL}"]
platforms: [linux-64]
virtual-packages: {{linux-64: {{__cuda: "12.0", __glibc: "2.36", __linux: "5.10", __unix: "0"}}}}
pins:
  cuda-version: 12.9.*
  python: 3.11.*
  pytorch: 2.10.* cuda129*
"""
# name: version, build, platform, what it depends on
PACKAGES: dict[str, tuple[str, str, str, list[str]]] = {
    "tzdata": ("2026a", "h0_0", "noarch", []),
    "libzlib": ("1.3.2", "h0_0", "linux-64", ["__glibc >=2.17"]),
    "python": ("3.11.9", "h0_0_cpython", "linux-64", ["libzlib >=1.3,<2", "tzdata"]),
    "pip": ("26.3", "py311_0", "linux-64", ["python >=3.11,<3.12"]),
    "setuptools": ("84.2", "py311_0", "linux-64", ["python >=3.11,<3.12"]),
    "numpy": ("2.4.6", "py311_0", "linux-64", ["python >=3.11,<3.12"]),
    "cuda-version": ("12.9", "h0_0", "noarch", []),
    "nccl": ("2.29.3.1", "h0_0", "linux-64", ["cuda-version >=12,<13", "__cuda >=12"]),
    "nvidia-ml-py": ("13.1", "py311_0", "linux-64", ["python >=3.11,<3.12"]),
    "pytorch": (
        "2.10.0",
        "cuda129_mkl_py311_0",
        "linux-64",
        ["cuda-version >=12.9,<13", "nccl", "numpy", "python >=3.11,<3.12"],
    ),
    "ipykernel": ("7.1.0", "py311_0", "linux-64", ["python >=3.11,<3.12"]),
    "jupyterlab": ("4.6.3", "py311_0", "linux-64", ["ipykernel", "python >=3.11,<3.12"]),
}
# rattler may crash when an interpreter ends, so packages are made in a child.
MAKE = """
import datetime, json, os, sys
from rattler_build import assemble_package, collect_files
for name, (version, build, platform, depends) in json.load(sys.stdin).items():
    assemble_package(
        name, version, platform, build, f"channel/{platform}", depends=depends,
        noarch="generic" if platform == "noarch" else None,
        files=collect_files(f"files/{name}", include_hidden=True), compression_level=1,
        timestamp=datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc),
        detect_prefix=False,
    )
os._exit(0)
"""


@dataclass(frozen=True, kw_only=True)
class Upstreams:
    """The upstreams and the project.

    `registry` is `HOST:PORT`, `registry_folder` its storage, `digest` the base's;
    `engine` is what the docker client needs to know.
    """

    site: Site
    registry: str
    registry_folder: Path
    digest: str
    installer: bytes
    channel: Path
    project: SmallProject
    engine: Mapping[str, str]
    seed: Path
    files: Mapping[str, Path] = field(default_factory=dict)

    @property
    def mirror(self) -> str:
        """The path of the channel on the server, which nobody finds without the token."""
        return f"/t/{TOKEN}/conda-forge/"

    @property
    def installer_path(self) -> str:
        """The path of the installer on the server."""
        return f"/miniconda/{INSTALLER}"

    def env(self, cache: Path, **more: str) -> dict[str, str]:
        """Return what a task finds in its environment: the mirrors, the token, a cache."""
        address = self.site.address
        return {
            **self.engine,
            "STRATA_CACHE": str(cache),
            "STRATA_REGISTRY_MIRROR": self.registry,
            "STRATA_CHANNEL_MIRROR": f"{address}/t/$STANDIN_TOKEN/conda-forge",
            "STRATA_INSTALLER_MIRROR": f"{address}/miniconda",
            "STANDIN_TOKEN": TOKEN,
            **more,
        }

    def heal(self) -> None:
        """Let the server answer as it should, and forget what it was asked."""
        self.site.answers.clear()
        for path, file in self.files.items():
            self.site.put(path, file.read_bytes())
        self.site.put(self.installer_path, self.installer)
        self.site.asked.clear()

    def package(self, name: str) -> str:
        """Return the path of a package on the server."""
        (path,) = (p for p in self.files if p.rsplit("/", 1)[-1].startswith(f"{name}-"))
        return path

    def cache(self, folder: Path) -> Path:
        """Make a cache that holds the installer's own wheel and nothing else."""
        shutil.copytree(self.seed, folder)
        return folder


def broken(body: bytes) -> Answer:
    """Return an answer that ends in the middle."""
    return Answer(body=body, sent=len(body) // 2)


def python_files(sdk: DockerClient, parent: str) -> dict[str, bytes]:
    """Return the files of the embedded base's Python, by their place in a prefix."""
    container = sdk.containers.create(parent)
    try:
        files = {}
        for source, target in ((f"/usr/lib/{PYTHON}", "lib"), (f"/usr/bin/{PYTHON}", "bin")):
            blocks, _ = container.get_archive(source)
            with tarfile.open(fileobj=io.BytesIO(b"".join(blocks))) as tar:
                for member in tar:
                    content = tar.extractfile(member) if member.isreg() else None
                    if content and not LEFT_OUT.intersection(member.name.split("/")):
                        files[f"{target}/{member.name}"] = content.read()
    finally:
        container.remove()
    # As everywhere but at Debian: what is installed goes to site-packages.
    place = f"lib/{PYTHON}/sysconfig.py"
    files[place] = files[place].replace(b"= 'posix_local'", b"= 'posix_prefix'")
    return {**files, f"lib/{PYTHON}/sitecustomize.py": SITECUSTOMIZE.encode()}


def make_channel(folder: Path, python: Mapping[str, bytes]) -> Path:
    """Make the packages and their index; return the channel's folder."""
    for name in PACKAGES:
        for path, data in package_files(name, python).items():
            file = folder / "files" / name / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
            file.chmod(0o755 if path.startswith("bin/") else 0o644)
    for link in ("python", "python3"):
        (folder / "files/python/bin" / link).symlink_to(PYTHON)
    channel = folder / "channel"
    for subdir in ("linux-64", "noarch"):
        (channel / subdir).mkdir(parents=True)
    subprocess.run(
        [sys.executable, "-c", MAKE], input=json.dumps(PACKAGES), text=True, cwd=folder, check=True
    )
    call_child({"do": "index", "channel": str(channel)}, str(channel))
    return channel


def package_files(name: str, python: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the files of a package."""
    version, _, _, depends = PACKAGES[name]
    if name == "python":
        return dict(python)
    if not any(word.startswith("python") for word in depends):
        return {f"share/{name}/version": version.encode()}
    module = "torch" if name == "pytorch" else name.replace("-", "_")
    files = {
        f"{SITE_PACKAGES}/{module}/__init__.py": f"__version__ = '{version}'\n".encode(),
        f"{SITE_PACKAGES}/{module}-{version}.dist-info/METADATA": (
            f"Metadata-Version: 2.1\nName: {module}\nVersion: {version}\n".encode()
        ),
    }
    return {**files, "bin/jupyter": JUPYTER.encode()} if name == "jupyterlab" else files


def make_project(root: Path, digest: str, installer: bytes, channel: Path) -> SmallProject:
    """Write the project, and solve its lock from the channel's folder."""
    project = SmallProject(root)
    for layer in LAYERS:
        shutil.copytree(REPOSITORY / "layers" / layer, root / "layers" / layer)
    project.write("images/lab.toml", (REPOSITORY / "images/lab.toml").read_text())
    project.write("images/slim.toml", (REPOSITORY / "images/slim.toml").read_text())
    project.write("train/trainer/__init__.py", "")  # the real one needs a real torch
    shutil.copyfile(REPOSITORY / "tasks.py", root / "tasks.py")
    sources = SOURCES.format(
        epoch=EPOCH,
        name=BASE_NAME,
        digest=digest,
        sha256=hashlib.sha256(installer).hexdigest(),
    )
    project.write(f"locks/{VARIANT}/sources.toml", sources)
    project.write(f"locks/{VARIANT}/pins.yml", PINS)
    definitions = load(root)
    variant = definitions.variants[VARIANT]
    solve_lock(variant_inputs(definitions, variant), channel, CHANNEL, variant.lock)
    return project


def locked_files(project: SmallProject, channel: Path, mirror: str) -> dict[str, Path]:
    """Return each locked package's file by its path on the mirror."""
    lock = read_lock(project.root / "locks" / VARIANT / "conda-lock.yml")
    return {
        f"{mirror}{package.url.removeprefix(CHANNEL)}": channel / package.subdir / package.filename
        for package in lock.packages
    }


def make_installer_of(python: Mapping[str, bytes]) -> bytes:
    """Return the installer, which brings a Python as Miniconda's does."""
    files = {**python, "bin/python": python[f"bin/{PYTHON}"]}
    files.pop(f"bin/{PYTHON}")
    return make_installer(files)
