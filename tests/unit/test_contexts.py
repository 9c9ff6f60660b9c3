"""The folders that the Dockerfiles mount."""

from __future__ import annotations

import hashlib
import json
import zipfile
from typing import TYPE_CHECKING

import pytest

import strata.contexts
from strata.contexts import make_contexts
from strata.errors import LockError
from strata.workspace import Workspace

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import SmallProject

ENV = "10-one_20-two_30-env"
FILES = ("library-1.0-h0_0.conda", "tool-1.0-h0_0.conda")


@pytest.fixture
def workspace(project: SmallProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Put a base, a channel and rattler in place, as they would have been made."""
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
    monkeypatch.setattr(strata.contexts, "fetch_wheels", lambda *_: {"py-rattler": wheel})
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
