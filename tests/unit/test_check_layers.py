"""When a layer's tests count as run already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import strata.check.layers
from strata.check.layers import check_key, layer_key
from strata.check.layers import test_layers as run_layer_tests
from strata.load import load

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.projects import SmallProject


def write(root: Path, path: str, text: str) -> None:
    """Write a file of the layers' tests."""
    file = root / "tests" / "layers" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_the_key_is_that_of_the_tests(tmp_path: Path) -> None:
    """A changed test, a new one and a changed helper are other tests; other layers' are not."""
    write(tmp_path, "10-a/test_a.py", "one")
    write(tmp_path, "20-b/test_b.py", "one")
    keys = [layer_key(tmp_path, "10-a")]
    write(tmp_path, "20-b/test_b.py", "two")
    assert layer_key(tmp_path, "10-a") == keys[0]
    changes = ("10-a/test_a.py", "10-a/test_more.py", "conftest.py", "helper.py")
    for path in changes:
        write(tmp_path, path, "two")
        keys.append(layer_key(tmp_path, "10-a"))
    assert len(set(keys)) == len(keys) == 5


def test_a_layer_without_tests_has_a_key(tmp_path: Path) -> None:
    """It changes when the first test comes."""
    key = layer_key(tmp_path, "10-a")
    write(tmp_path, "10-a/test_a.py", "")
    assert layer_key(tmp_path, "10-a") != key


def test_a_layers_facts_are_part_of_its_check(project: SmallProject) -> None:
    """A new command and a new name are another check, of that layer alone; its text is not."""

    def keys() -> list[str]:
        layers = load(project.root).layers
        return [check_key(project.root, layers[name]) for name in ("10-one", "20-two")]

    seen = [keys()]
    for old, new in (("cat /colour", "cat /paint"), ("colour =", "paint =")):
        project.replace("layers/10-one/layer.toml", old, new)
        seen.append(keys())
    assert len({one for one, _ in seen}) == 3
    assert len({two for _, two in seen}) == 1
    project.replace("layers/10-one/layer.toml", "The lowest layer", "Another summary")
    assert keys() == seen[-1]


def test_tests_that_hang_are_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are ended after their time, and the lowest layer's outcome says so."""
    write(tmp_path, "10-a/test_a.py", "")
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexec sleep 60\n")
    python.chmod(0o755)
    monkeypatch.setattr("strata.check.layers.sys.executable", str(python))
    monkeypatch.setattr(strata.check.layers, "TIMEOUT", 0.2)
    (outcome,) = run_layer_tests(tmp_path, ["10-a"], "none", {}, tmp_path / "r.xml")
    assert (outcome.name, outcome.verdict) == ("layer 10-a", "fail")
    assert outcome.detail == "1 failed\nthe tests did not end within 0 s"
