"""Fills a folder with all that a variant's build needs (`./inv fetch`)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import requests

from strata.build import build, record_network
from strata.embedded.base import checksum_file, make_base
from strata.embedded.wheels import fetch_wheels, run_pip
from strata.engine import ensure_engine
from strata.errors import HostError
from strata.interpreter import fetch_rattler, installer_python
from strata.locking import WHEELS
from strata.model import BootstrapBase
from strata.pipeline import open_store
from strata.upstream.base import BASES, carry_base
from strata.upstream.carried import SCHEMA, TABLE, TARBALL, WHEELHOUSE, pins_of, read_table
from strata.upstream.fetch import FILES, fetch_installer, fetch_packages, place, refuse_unset
from strata.upstream.reach import recording_of

if TYPE_CHECKING:
    from pathlib import Path

    from strata.model import Variant
    from strata.plan import Plan
    from strata.workspace import Workspace

OURS = "requirements/build.txt"  # what strata itself runs on


def fill_folder(workspace: Workspace, plan: Plan, folder: Path) -> None:
    """Bring everything that the plan's steps are built from into a folder, each file verified.

    The steps are built if they aren't, and what their commands fetch (Debian's
    and Ubuntu's packages) is written down while they run once more.  The folder
    may hold other variants already.  Raises `LockError`, `BuildError` and
    `HostError` as a build does; then the folder is not marked as whole.
    """
    try:
        _fill(workspace, plan, folder)
    except OSError as failed:
        if isinstance(failed, requests.RequestException):  # an OSError, too, but not of a disk
            raise
        raise HostError.at(
            str(failed.filename2 or failed.filename or folder),
            f"cannot be written: {failed.strerror}",
            "make room, or name another folder: ./inv fetch --to DIR",
        ) from None


def _fill(workspace: Workspace, plan: Plan, folder: Path) -> None:
    variant = plan.variant
    refuse_unset(variant)
    files = folder / FILES
    files.mkdir(parents=True, exist_ok=True)
    if isinstance(variant.base, BootstrapBase):
        _carry_tarball(make_base(workspace, variant.base, variant.epoch), folder)
    else:
        carry_base(workspace, variant, variant.base, folder, plan.platform)
    packages = {one.sha256: one for step in plan.steps for one in step.packages}
    if packages:
        packages |= {one.sha256: one for one in installer_python(workspace.root, plan)}
    carried = [fetch_rattler(workspace, plan.platform)] if packages else []
    if packages and (variant.folder / WHEELS).is_file():
        carried += fetch_wheels(workspace, variant.folder / WHEELS).values()
    else:
        fetched = fetch_packages(workspace, variant, packages.values(), plan.steps)
        for sha256, file in fetched.items():
            place(file, files / sha256)
    if layers := [step.layer.name for step in plan.steps if step.layer.installer]:
        file = fetch_installer(workspace, variant, plan.platform, layers[0])
        place(file, files / file.name)
    wheels = folder / WHEELHOUSE
    wheels.mkdir(exist_ok=True)
    for wheel in carried:
        place(wheel, wheels / wheel.name)
    _carry_strata(workspace, folder)
    engine, _ = ensure_engine(workspace)
    with open_store(engine) as store:
        build(workspace, engine, store, plan)
    recording = recording_of(folder)
    steps = record_network(workspace, engine, plan, recording)
    print(f"written down: {len(recording)} downloads of {', '.join(steps) or 'no step'}")
    _mark(folder, variant)


def _carry_tarball(tar: Path, folder: Path) -> None:
    target = folder / BASES / TARBALL
    target.parent.mkdir(exist_ok=True)
    place(tar, target)
    place(checksum_file(tar), checksum_file(target))


def _carry_strata(workspace: Workspace, folder: Path) -> None:
    """Download what strata itself runs on, for `./inv` in the closed network."""
    requirements = workspace.root / OURS
    if requirements.is_file():
        options = ["--no-deps", "--require-hashes", "--only-binary=:all:"]
        places = [f"--dest={folder / 'python'}", f"--requirement={requirements}"]
        run_pip(["download", *options, *places], where=OURS)


def _mark(folder: Path, variant: Variant) -> None:
    table = read_table(folder, "--to") if (folder / TABLE).exists() else {}
    table[variant.name] = pins_of(variant.folder)
    document = {"schema": SCHEMA, "variants": table}
    new = folder / f".{TABLE}.new"
    new.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
    new.replace(folder / TABLE)
