"""Which Python runs the installer in an image build."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

import strata.interpreter
from strata.errors import LockError
from strata.interpreter import installer_python
from strata.lock import LockedPackage
from strata.model import BootstrapBase, ImageBase

if TYPE_CHECKING:
    from strata.plan import Plan

UBUNTU = ImageBase(image="ubuntu:24.04", digest=f"sha256:{'0' * 64}")
DEBIAN = BootstrapBase(suite="bookworm")
ROOT = Path("/nonexistent")


def packages(version: str, *others: str) -> dict[str, LockedPackage]:
    """Return a Python that depends on libffi, libffi, and others, by name."""
    depends = {"python": ("libffi", "__glibc"), "libffi": ()}
    return {
        name: LockedPackage(
            name=name,
            version=version,
            build="h0_0",
            platform="linux-64",
            category="pytorch",
            url=f"https://conda.anaconda.org/conda-forge/linux-64/{name}-{version}-h0_0.conda",
            filename=f"{name}-{version}-h0_0.conda",
            sha256="0" * 64,
            md5="0" * 32,
            dependencies=depends.get(name, ()),
        )
        for name in ("python", "libffi", *others)
    }


def variant(name: str, base: object, *platforms: str) -> SimpleNamespace:
    """Return what is asked of a variant; its lock is this very file, which is there."""
    return SimpleNamespace(name=name, base=base, platforms=platforms, lock=Path(__file__))


def plan(base: object, version: str) -> Plan:
    """Return what is asked of a plan: two steps, Python in the lower one."""
    found = packages(version, "numpy")
    numpy = found.pop("numpy")
    steps = [SimpleNamespace(packages=tuple(found.values())), SimpleNamespace(packages=(numpy,))]
    asked = {"variant": variant("mine", base), "platform": "linux/amd64", "steps": steps}
    return SimpleNamespace(**asked)  # type: ignore[return-value]  # as much as is asked for


def files(found: tuple[LockedPackage, ...]) -> list[str]:
    """Return the names of the packages' files."""
    return [package.filename for package in found]


def test_a_base_with_a_python_needs_none() -> None:
    """What is bootstrapped brings Debian's."""
    assert installer_python(ROOT, plan(DEBIAN, "3.12.1")) == ()


def test_the_locks_own_python_is_taken() -> None:
    """It comes with what it depends on, and with nothing else of the environment."""
    found = installer_python(ROOT, plan(UBUNTU, "3.10.0"))
    assert files(found) == ["libffi-3.10.0-h0_0.conda", "python-3.10.0-h0_0.conda"]


def test_an_old_python_borrows_another_variants(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first by name that is pulled, of the same platform and new enough for py-rattler."""
    variants = [
        variant("arm", UBUNTU, "linux/arm64"),
        variant("debian", DEBIAN, "linux/amd64"),
        variant("mine", UBUNTU, "linux/amd64"),
        variant("right", UBUNTU, "linux/amd64"),
        variant("second", UBUNTU, "linux/amd64"),
    ]
    project = SimpleNamespace(variants={one.name: one for one in reversed(variants)})
    monkeypatch.setattr(strata.interpreter, "load", lambda _: project)
    locks = iter(["3.12.13", "3.13.1"])
    monkeypatch.setattr(
        strata.interpreter,
        "read_lock",
        lambda _: SimpleNamespace(on=lambda _: packages(next(locks))),
    )
    found = installer_python(ROOT, plan(UBUNTU, "3.9.23"))
    assert files(found) == ["libffi-3.12.13-h0_0.conda", "python-3.12.13-h0_0.conda"]


def test_no_python_at_all_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A project of old Pythons alone can't be installed, and says what to add."""
    project = SimpleNamespace(variants={"mine": variant("mine", UBUNTU, "linux/amd64")})
    monkeypatch.setattr(strata.interpreter, "load", lambda _: project)
    with pytest.raises(LockError, match=r"needs a Python of 3\.10 or newer, and no lock has one"):
        installer_python(ROOT, plan(UBUNTU, "3.9.23"))
