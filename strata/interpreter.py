"""What runs the installer inside an image build: py-rattler, and a Python where the base has none.

An Ubuntu image has no Python; the installer (`strata/inbuild/install_env.py`)
needs one that py-rattler's wheel runs on.  A lock's own is taken, unpacked on
the host and mounted: it leaves nothing in the image.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.embedded.wheels import fetch_wheels
from strata.errors import LockError
from strata.load import load
from strata.lock import read_lock
from strata.lock.slice import closure, dependencies
from strata.model import MACHINES, PLATFORMS, BootstrapBase
from strata.plan import INBUILD

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from strata.lock import LockedPackage
    from strata.plan import Plan
    from strata.workspace import Workspace

PYTHON = "python"
OLDEST = (3, 10)  # that py-rattler's wheel (cp310-abi3) runs on
REQUIREMENTS = {
    "linux/amd64": INBUILD / "requirements.txt",
    "linux/arm64": INBUILD / "requirements-aarch64.txt",
}


def fetch_rattler(workspace: Workspace, platform: str) -> Path:
    """Return the wheel of py-rattler that runs inside a build for the platform, its hash checked.

    Raises what `fetch_wheels` raises.
    """
    (wheel,) = fetch_wheels(workspace, REQUIREMENTS[platform], MACHINES[platform]).values()
    return wheel


def installer_python(root: Path, plan: Plan) -> tuple[LockedPackage, ...]:
    """Return the packages of the Python that installs the plan's environments, sorted by name.

    None where the base brings its own.  The variant's Python if it is new
    enough, else that of the first other variant, by name, with one for the
    same platform: it decides nothing of what is installed.  `root` is the
    project's.  Raises `LockError` where there is none.
    """
    if isinstance(plan.variant.base, BootstrapBase):
        return ()
    own = {package.name: package for step in plan.steps for package in step.packages}
    if is_new_enough(own):
        return _python(own)
    for name, variant in sorted(load(root).variants.items()):
        is_other = name != plan.variant.name and not isinstance(variant.base, BootstrapBase)
        if is_other and plan.platform in variant.platforms and variant.lock.is_file():
            packages = read_lock(variant.lock).on(PLATFORMS[plan.platform])
            if is_new_enough(packages):
                return _python(packages)
    oldest = ".".join(map(str, OLDEST))
    raise LockError.at(
        f"locks/{plan.variant.name}/{plan.variant.lock.name}",
        f"the installer needs a Python of {oldest} or newer, and no lock has one"
        f" for {plan.platform}",
        "add a variant with a newer Python for this platform, such as cpu, and lock it",
    )


def is_new_enough(packages: Mapping[str, LockedPackage]) -> bool:
    """Whether the packages have a Python that runs the installer."""
    if PYTHON not in packages:
        return False
    major, minor = packages[PYTHON].version.split(".")[:2]
    return (int(major), int(minor)) >= OLDEST


def _python(packages: Mapping[str, LockedPackage]) -> tuple[LockedPackage, ...]:
    names = closure(dependencies(packages.values()), [PYTHON])
    return tuple(packages[name] for name in sorted(names))
