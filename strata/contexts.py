"""Lays out the folders that the Dockerfiles mount: packages, installer, base."""

from __future__ import annotations

import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from strata.bake import Contexts
from strata.embedded.base import make_base
from strata.embedded.channel import make_channel, verify_channel
from strata.embedded.wheels import fetch_wheels
from strata.errors import LockError
from strata.lock import slice_document
from strata.model import BootstrapBase
from strata.plan import INBUILD

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from strata.plan import Plan, Step
    from strata.workspace import Workspace

BASE_DOCKERFILE = "FROM scratch\nADD base.tar /\n"
SUBDIR = "linux-64"
SHOWN = 5  # packages that an error names


def make_contexts(workspace: Workspace, plan: Plan, build: Collection[str]) -> Contexts:
    """Fetch and make what the steps in `build` need, and lay it out in the build folder.

    Everything dear is kept in the cache; packages are linked from there.
    Raises `LockError` when a package is not the one that the lock names.
    """
    folder = workspace.build / "contexts" / plan.variant.name
    shutil.rmtree(folder, ignore_errors=True)
    base = folder / "base"
    base.mkdir(parents=True)
    steps = [step for step in plan.steps if step.name in build]
    with_packages = [step for step in steps if step.layer.category]
    rattler = folder / "rattler"
    rattler.mkdir()
    # The base is bootstrapped on one core, mostly, while the packages are made on the other.
    with ThreadPoolExecutor(1) as beside:
        bootstrap = plan.variant.base
        tarball = None
        if isinstance(bootstrap, BootstrapBase) and any(step.parent is None for step in steps):
            tarball = beside.submit(make_base, workspace, bootstrap, plan.variant.epoch)
        if with_packages:
            _unpack_rattler(workspace, rattler)
            channel = make_channel(workspace, plan.variant.folder, plan.variant.epoch)
            _verify(plan, channel, with_packages)
            for step in with_packages:
                _lay_environment(folder / step.name, channel, step)
        if tarball:
            _link(tarball.result(), base / "base.tar")
            (base / "Dockerfile").write_text(BASE_DOCKERFILE)
    return Contexts(
        tools=INBUILD,
        rattler=rattler,
        base=base,
        steps={step.name: folder / step.name for step in with_packages},
    )


def _unpack_rattler(workspace: Workspace, folder: Path) -> None:
    """Unpack the wheel of py-rattler that runs inside the build; its hash has been checked."""
    (wheel,) = fetch_wheels(workspace, INBUILD / "requirements.txt").values()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)


def _verify(plan: Plan, channel: Path, steps: Collection[Step]) -> None:
    packages = [package for step in steps for package in step.packages]
    damaged = verify_channel(channel, {p.filename: p.sha256 for p in packages})
    if damaged:
        names = ", ".join(damaged[:SHOWN]) + (" …" if len(damaged) > SHOWN else "")
        raise LockError.at(
            f"locks/{plan.variant.name}/{plan.variant.lock.name}",
            f"{len(damaged)} packages in the channel are not the ones that it names: {names}",
            f"./inv lock --variant {plan.variant.name}, and review what it changes",
        )


def _lay_environment(folder: Path, channel: Path, step: Step) -> None:
    packages = folder / "packages"
    packages.mkdir(parents=True)
    for package in step.packages:
        _link(channel / SUBDIR / package.filename, packages / package.filename)
    (folder / "slice.json").write_text(slice_document(step.packages))
    (folder / "manifest.json").write_text(step.manifest())


def _link(source: Path, target: Path) -> None:
    """Link a file, or copy it where the cache is on another file system."""
    try:
        target.hardlink_to(source)
    except OSError:
        shutil.copyfile(source, target)
