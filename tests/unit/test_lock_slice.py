"""Which packages a layer adds to an image."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from strata.errors import LockError
from strata.lock import Lock, LockedPackage, slice_document, slice_for
from strata.lock.slice import categorise


def package(name: str, *dependencies: str, platform: str = "linux-64") -> LockedPackage:
    """Return a locked package."""
    return LockedPackage(
        name=name,
        version="1.0",
        build="h0_0",
        platform=platform,
        category="pytorch",
        url=f"https://h/c/{platform}/{name}-1.0-h0_0.conda",
        filename=f"{name}-1.0-h0_0.conda",
        sha256="ab" * 32,
        md5="cd" * 16,
        dependencies=dependencies,
    )


PACKAGES = (
    package("vision", "torch", "pillow"),
    package("torch", "python", "__glibc"),
    package("python"),
    package("pillow", "python"),
    package("lab", "python", "pillow", "tornado"),
    package("tornado", "lab"),
    package("torch", platform="linux-aarch64"),
)


@pytest.fixture
def lock() -> Lock:
    """Return a lock with two layers' packages and another platform's."""
    return Lock(
        path=Path("locks/v/conda-lock.yml"),
        packages=PACKAGES,
        channels=("https://h/c",),
        platforms=("linux-64", "linux-aarch64"),
        inputs_digest="",
        facts={},
    )


def names(packages: tuple[LockedPackage, ...]) -> list[str]:
    """Return the packages' names."""
    return [package.name for package in packages]


def test_a_slice_is_what_the_layer_needs_and_lower_ones_lack(lock: Lock) -> None:
    """A package that two layers need goes with whichever comes first in the image."""
    assert names(slice_for(lock, "linux-64", ["torch"], [])) == ["python", "torch"]
    assert names(slice_for(lock, "linux-64", ["vision"], ["torch"])) == ["pillow", "vision"]
    assert names(slice_for(lock, "linux-64", ["lab"], ["torch", "vision"])) == ["lab", "tornado"]
    assert names(slice_for(lock, "linux-64", ["lab"], ["torch"])) == ["lab", "pillow", "tornado"]


def test_a_slice_holds_one_platform(lock: Lock) -> None:
    """Packages of another platform never get in."""
    chosen = slice_for(lock, "linux-aarch64", ["torch"], [])
    assert [(one.name, one.platform) for one in chosen] == [("torch", "linux-aarch64")]


def test_a_root_that_the_lock_lacks_is_an_error(lock: Lock) -> None:
    """A layer is never built without a package that it asks for."""
    with pytest.raises(LockError, match=r'needs torhc, which the lock lacks .*"torch"'):
        slice_for(lock, "linux-64", ["torhc"], [])


def test_a_dependency_that_the_lock_lacks_is_an_error(lock: Lock) -> None:
    """A lock that isn't closed under dependencies is refused."""
    with pytest.raises(LockError, match="vision needs pillow"):
        slice_for(
            Lock(
                path=lock.path,
                packages=PACKAGES[:3],
                channels=lock.channels,
                platforms=lock.platforms,
                inputs_digest="",
                facts={},
            ),
            "linux-64",
            ["vision"],
            [],
        )


def test_the_document_depends_on_the_packages_alone() -> None:
    """Another order gives the same bytes; another hash gives others."""
    first = slice_document(PACKAGES[:3])
    assert slice_document(reversed(PACKAGES[:3])) == first
    assert json.loads(first)["packages"][0] == {
        "build": "h0_0",
        "filename": "python-1.0-h0_0.conda",
        "md5": "cd" * 16,
        "name": "python",
        "sha256": "ab" * 32,
        "subdir": "linux-64",
        "url": "https://h/c/linux-64/python-1.0-h0_0.conda",
        "version": "1.0",
    }


def test_a_package_belongs_to_the_lowest_layer_that_needs_it() -> None:
    """One category per package, whatever the number of layers that need it."""
    depends = {"torch": ["python"], "lab": ["python", "tornado"], "python": [], "tornado": []}
    given = categorise(depends, [("pytorch", ["torch"]), ("jupyter", ["lab"])])
    assert given == {
        "torch": "pytorch",
        "python": "pytorch",
        "lab": "jupyter",
        "tornado": "jupyter",
    }
