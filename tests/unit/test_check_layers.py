"""When a layer's tests count as run already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.check.layers import layer_key

if TYPE_CHECKING:
    from pathlib import Path


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
