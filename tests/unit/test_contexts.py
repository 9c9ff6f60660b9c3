"""The folders that the Dockerfiles mount."""

from __future__ import annotations

import hashlib
import json
import zipfile
from typing import TYPE_CHECKING

import pytest

import strata.contexts
import strata.upstream.fetch
from strata.contexts import make_contexts
from strata.errors import LockError
from strata.workspace import Workspace
from tests.projects import CHANNEL

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from strata.upstream.download import Wanted
    from tests.projects import SmallProject

ENV = "10-one_20-two_30-env"
FILES = ("library-1.0-h0_0.conda", "tool-1.0-h0_0.conda")


@pytest.fixture
def workspace(project: SmallProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Put a base, a channel and rattler in place, as they would have been made."""
    project.write("locks/embedded/wheels.txt", "")
    channel = tmp_path / "channel"
    (channel / "linux-64").mkdir(parents=True)
    for name in FILES:
        (channel / "linux-64" / name).write_text(name)
    base = tmp_path / "made.tar"
    base.write_text("base")
    monkeypatch.setattr(strata.contexts, "make_channel", lambda *_: channel)
    monkeypatch.setattr(strata.contexts, "make_base", lambda *_: base)
    wheel = tmp_path / "py_rattler-1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("rattler/__init__.py", "")
    monkeypatch.setattr(strata.contexts, "fetch_rattler", lambda *_: wheel)
    return Workspace(root=project.root, build=tmp_path / "build", cache=tmp_path / "cache")


def pin_the_channel(project: SmallProject) -> None:
    """Make the lock name the packages that the channel has."""
    text = project.lock.read_text()
    for name in FILES:
        pinned = name[0].encode().hex() * 32
        text = text.replace(pinned, hashlib.sha256(name.encode()).hexdigest())
    project.lock.write_text(text)


def test_a_layer_finds_its_slice_and_nothing_else(
    project: SmallProject, workspace: Workspace
) -> None:
    """Its packages, the slice that the installer reads, and the manifest."""
    pin_the_channel(project)
    plan = project.plan()
    contexts = make_contexts(workspace, plan, {step.name for step in plan.steps})
    assert list(contexts.steps) == [ENV]
    assert (contexts.rattler / "rattler" / "__init__.py").is_file()
    folder = contexts.steps[ENV]
    assert sorted(path.name for path in folder.iterdir()) == [
        "manifest.json",
        "packages",
        "slice.json",
    ]
    assert sorted(path.name for path in (folder / "packages").iterdir()) == list(FILES)
    sliced = json.loads((folder / "slice.json").read_text())
    assert [package["filename"] for package in sliced["packages"]] == list(FILES)
    assert (contexts.base / "base.tar").read_text() == "base"
    assert (contexts.base / "Dockerfile").read_text() == "FROM scratch\nADD base.tar /\n"


def test_a_package_that_is_not_the_locked_one_is_refused(
    project: SmallProject, workspace: Workspace
) -> None:
    """A wrong hash in the lock ends before anything is built, with exit code 3."""
    with pytest.raises(LockError) as failure:
        make_contexts(workspace, project.plan(), {ENV})
    (problem,) = failure.value.problems
    assert problem.where == "locks/embedded/conda-lock.yml"
    assert problem.what == (
        "2 packages in the channel are not the ones that it names: " + ", ".join(FILES)
    )
    assert failure.value.exit_code == 3


def test_only_what_is_to_be_built_is_laid_out(project: SmallProject, workspace: Workspace) -> None:
    """Without the lowest step no base, without an environment no packages; leftovers go."""
    left = workspace.build / "contexts/embedded/old"
    left.mkdir(parents=True)
    contexts = make_contexts(workspace, project.plan(), {"10-one_20-two"})
    assert contexts.steps == {}
    assert list(contexts.base.iterdir()) == []
    assert contexts.rattler.is_dir()
    assert not left.exists()


PUBLIC = f'image = "docker.io/library/debian:12"\ndigest = "sha256:{"0" * 64}"\n'
BOOTSTRAPPED = 'suite = "bookworm"\ninclude = ["python3"]\n'
SOURCES = "locks/embedded/sources.toml"


def make_public(project: SmallProject, digest: str = "1" * 64) -> None:
    """Give the variant a base of a registry, an installer, and a layer that mounts it."""
    (project.root / "locks/embedded/wheels.txt").unlink()
    installer = (
        '[installer]\nurl = "https://repo.example/Miniconda3-{arch}.sh"\n'
        f'[installer.sha256]\n"linux/amd64" = "{digest}"\n'
    )
    project.replace(SOURCES, BOOTSTRAPPED, f"{PUBLIC}{installer}")
    project.replace("layers/20-two/layer.toml", "summary", "installer = true\nsummary")


def test_public_packages_and_the_installer_are_fetched_by_hash(
    project: SmallProject, workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are laid out as those that are made on the spot; no base is made."""
    make_public(project)
    asked: list[tuple[str, str]] = []

    def fetch(_: Workspace, wanted: Sequence[Wanted]) -> dict[str, Path]:
        files = {}
        for one in wanted:
            asked.append((one.url, one.sha256))
            files[one.sha256] = tmp_path / one.name
            files[one.sha256].write_text(one.name)
        return files

    monkeypatch.setattr(strata.upstream.fetch, "fetch", fetch)
    monkeypatch.setattr(strata.contexts, "installer_python", lambda *_: ())  # tests of its own
    plan = project.plan()
    contexts = make_contexts(workspace, plan, {step.name for step in plan.steps})
    packages = contexts.steps[ENV] / "packages"
    assert {path.name: path.read_text() for path in packages.iterdir()} == {
        name: name for name in FILES
    }
    assert sorted(asked) == [
        (f"{CHANNEL}linux-64/library-1.0-h0_0.conda", "6c" * 32),
        (f"{CHANNEL}linux-64/tool-1.0-h0_0.conda", "74" * 32),
        ("https://repo.example/Miniconda3-x86_64.sh", "1" * 64),
    ]
    assert (contexts.installer / "miniconda.sh").read_text() == "Miniconda3-x86_64.sh"
    assert list(contexts.base.iterdir()) == []


def test_nothing_is_built_from_what_is_not_pinned(
    project: SmallProject, workspace: Workspace
) -> None:
    """A digest that is "unset" is refused with exit code 3 and the command that pins."""
    make_public(project, digest="unset")
    plan = project.plan()
    with pytest.raises(LockError) as failure:
        make_contexts(workspace, plan, {step.name for step in plan.steps})
    (problem,) = failure.value.problems
    assert problem.where == SOURCES
    assert problem.what == 'not pinned yet: installer.sha256."linux/amd64"'
    assert problem.fix == "./inv pin --variant embedded"
    assert failure.value.exit_code == 3
