"""Lays out the folders that the Dockerfiles mount: packages, installer, base."""

from __future__ import annotations

import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from strata.bake import Contexts
from strata.embedded.base import make_base
from strata.embedded.channel import make_channel, verify_channel
from strata.embedded.child import call_child
from strata.errors import LockError
from strata.interpreter import fetch_rattler, installer_python
from strata.lock import slice_document
from strata.locking import WHEELS
from strata.model import BootstrapBase
from strata.plan import INBUILD
from strata.upstream.carried import carried_tarball, unpack_folder
from strata.upstream.fetch import fetch_installer, fetch_packages, place, refuse_unset

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from strata.lock import LockedPackage
    from strata.plan import Plan, Step
    from strata.workspace import Workspace

BASE_DOCKERFILE = "FROM scratch\nADD base.tar /\n"
SUBDIR = "linux-64"
INSTALLER = "miniconda.sh"
SHOWN = 5  # packages that an error names


def make_contexts(workspace: Workspace, plan: Plan, build: Collection[str]) -> Contexts:
    """Fetch and make what the steps in `build` need, and lay it out in the build folder.

    Everything dear is kept in the cache; packages are linked from there.
    Raises `LockError` when a package or the installer is not the one that is
    pinned, or nothing is, and `BuildError` when one can't be had.
    """
    refuse_unset(plan.variant)
    if workspace.carried:
        unpack_folder(workspace, workspace.carried)
    folder = workspace.build / "contexts" / plan.variant.name
    shutil.rmtree(folder, ignore_errors=True)
    base = folder / "base"
    base.mkdir(parents=True)
    steps = [step for step in plan.steps if step.name in build]
    with_packages = [step for step in steps if step.layer.category]
    rattler = folder / "rattler"
    rattler.mkdir()
    installer = folder / "installer"
    installer.mkdir()
    # The base is bootstrapped on one core, mostly, while the packages are made on the other.
    with ThreadPoolExecutor(1) as beside:
        bootstrap = plan.variant.base
        tarball = None
        if isinstance(bootstrap, BootstrapBase) and any(step.parent is None for step in steps):
            tarball = beside.submit(_tarball, workspace, bootstrap, plan.variant.epoch)
        if with_packages:
            _unpack_rattler(fetch_rattler(workspace, plan.platform), rattler)
            python = installer_python(workspace.root, plan)
            files = _packages(workspace, plan, with_packages, python)
            for step in with_packages:
                _lay_environment(folder / step.name, files, step)
            _unpack_python(files, rattler / "python", python)
        if layers := [step.layer.name for step in steps if step.layer.installer]:
            found = fetch_installer(workspace, plan.variant, plan.platform, layers[0])
            place(found, installer / INSTALLER)
        if tarball:
            place(tarball.result(), base / "base.tar")
            (base / "Dockerfile").write_text(BASE_DOCKERFILE)
    return Contexts(
        tools=INBUILD,
        rattler=rattler,
        base=base,
        installer=installer,
        steps={step.name: folder / step.name for step in with_packages},
    )


def _unpack_rattler(wheel: Path, folder: Path) -> None:
    """Unpack the wheel of py-rattler that runs inside the build."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)


def _tarball(workspace: Workspace, bootstrap: BootstrapBase, epoch: int) -> Path:
    if workspace.carried:
        return carried_tarball(workspace.carried)
    return make_base(workspace, bootstrap, epoch)


def _packages(
    workspace: Workspace,
    plan: Plan,
    steps: Collection[Step],
    python: Collection[LockedPackage],
) -> Mapping[str, Path]:
    """Return the verified files, by sha256, of the packages of these steps and of the Python."""
    packages = {package.sha256: package for step in steps for package in step.packages}
    if (plan.variant.folder / WHEELS).is_file():
        channel = make_channel(workspace, plan.variant.folder, plan.variant.epoch)
        _verify(plan, channel, packages.values())
        return {p.sha256: channel / SUBDIR / p.filename for p in packages.values()}
    packages |= {package.sha256: package for package in python}
    return fetch_packages(workspace, plan.variant, packages.values(), steps)


def _unpack_python(
    files: Mapping[str, Path], folder: Path, python: Collection[LockedPackage]
) -> None:
    """Unpack the Python that the installer runs on, where the base has none."""
    if python:
        packages = {package.filename: str(files[package.sha256]) for package in python}
        call_child({"do": "unpack", "packages": packages, "out": str(folder)}, str(folder))


def _verify(plan: Plan, channel: Path, packages: Collection[LockedPackage]) -> None:
    damaged = verify_channel(channel, {p.filename: p.sha256 for p in packages})
    if damaged:
        names = ", ".join(damaged[:SHOWN]) + (" …" if len(damaged) > SHOWN else "")
        raise LockError.at(
            f"locks/{plan.variant.name}/{plan.variant.lock.name}",
            f"{len(damaged)} packages in the channel are not the ones that it names: {names}",
            f"./inv lock --variant {plan.variant.name}, and review what it changes",
        )


def _lay_environment(folder: Path, files: Mapping[str, Path], step: Step) -> None:
    packages = folder / "packages"
    packages.mkdir(parents=True)
    for package in step.packages:
        place(files[package.sha256], packages / package.filename)
    (folder / "slice.json").write_text(slice_document(step.packages))
    (folder / "manifest.json").write_text(step.manifest())
