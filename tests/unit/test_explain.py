"""Why a step will be built."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strata.explain import read_inputs, reasons, write_inputs

if TYPE_CHECKING:
    from pathlib import Path

    from tests.projects import SmallProject


def explained(project: SmallProject, path: Path) -> dict[str, list[str]]:
    """Return the reasons of each step since the inputs were kept."""
    before = read_inputs(path)
    return {s.layer.name: reasons(s, before.get(s.name)) for s in project.plan().steps}


def test_a_step_that_was_never_built_says_so(project: SmallProject, tmp_path: Path) -> None:
    """Nothing is known of it."""
    assert explained(project, tmp_path / "none.json")["10-one"] == ["it was never built here"]


def test_the_file_that_changed_is_named(project: SmallProject, tmp_path: Path) -> None:
    """A file, an argument, a new file and one that is gone; descendants name their parent."""
    path = tmp_path / "inputs.json"
    write_inputs(path, project.plan())
    project.replace("layers/10-one/layer.toml", "red", "blue")
    project.replace("layers/40-top/rootfs/etc/top", "top", "tip")
    project.write("layers/30-env/new", "")
    (project.root / "data/words.txt").unlink()
    assert explained(project, path) == {
        "10-one": ["ARG COLOUR changed"],
        "20-two": ["ARG COLOUR changed", "its parent 10-one changed"],
        "30-env": [
            "layers/30-env/new is new",
            "its parent 20-two changed",
            "data/words.txt is gone",
        ],
        "40-top": ["layers/40-top/rootfs/etc/top changed", "its parent 30-env changed"],
    }


def test_an_image_that_is_gone_is_told(project: SmallProject, tmp_path: Path) -> None:
    """Where no input changed, it is the image that is missing."""
    path = tmp_path / "inputs.json"
    write_inputs(path, project.plan())
    assert explained(project, path)["10-one"] == ["its image is not in the engine's store"]


def test_inputs_of_other_images_are_kept(project: SmallProject, tmp_path: Path) -> None:
    """Building one image forgets nothing of the others."""
    path = tmp_path / "inputs.json"
    write_inputs(path, project.plan())
    write_inputs(path, project.plan("small"))
    assert set(read_inputs(path)) == {step.name for step in project.plan().steps}


@pytest.mark.parametrize("text", ["", "{", "[]", "null"])
def test_a_broken_file_only_explains_nothing(tmp_path: Path, text: str) -> None:
    """It decides nothing, so it stops nobody."""
    path = tmp_path / "inputs.json"
    path.write_text(text)
    assert read_inputs(path) == {}
