"""The layers' tests: what a real pytest reports, turned into one outcome a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from strata.check.layers import test_layers as run_layer_tests

if TYPE_CHECKING:
    from pathlib import Path

    from strata.record import Outcome

PASSES = "def test_one():\n    pass\n\ndef test_two():\n    pass\n"
FAILS = "def test_three():\n    assert 1 == 2, 'not the same'\n"
SKIPS = "import pytest\n\ndef test_four():\n    pytest.skip('no device')\n"
BREAKS = "import no_such_module\n"
LATE = """\
import pytest

@pytest.fixture
def thing():
    yield
    raise OSError("late")

def test_five(thing):
    pass
"""


def write(root: Path, **layers: str) -> None:
    """Write the tests of some layers, by the last letters of their names."""
    for name, text in layers.items():
        file = root / "tests" / "layers" / f"10-{name}" / f"test_{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def outcomes(root: Path, *names: str) -> dict[str, Outcome]:
    """Run the tests of some layers; these ask no container."""
    found = run_layer_tests(root, [f"10-{n}" for n in names], "-", {}, root / "build" / "r.xml")
    return {outcome.name.removeprefix("layer 10-"): outcome for outcome in found}


@pytest.fixture(autouse=True)
def _no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)


def test_each_layer_has_its_own_outcome(tmp_path: Path) -> None:
    """Passed, failed and not run are told apart; a layer without tests has not passed."""
    write(tmp_path, a=PASSES, b=PASSES + FAILS, c=PASSES + SKIPS, d=LATE, e="")
    found = outcomes(tmp_path, "a", "b", "c", "d", "e", "f")
    assert {name: o.verdict for name, o in found.items()} == {
        "a": "pass",
        "b": "fail",
        "c": "not run",
        "d": "fail",
        "e": "not run",
        "f": "not run",
    }
    assert found["a"].detail == "2 passed"
    assert found["b"].detail.startswith("2 passed, 1 failed\ntest_three: ")
    assert "not the same" in found["b"].detail
    assert found["c"].detail == "2 passed, 1 not run\ntest_four: no device"
    assert "late" in found["d"].detail
    assert found["e"].detail == found["f"].detail == "no tests"


def test_tests_that_cannot_be_collected_have_failed(tmp_path: Path) -> None:
    """The layer that they are of is named, with the reason; the others have not passed."""
    write(tmp_path, a=PASSES, b=BREAKS)
    found = outcomes(tmp_path, "a", "b")
    assert (found["a"].verdict, found["b"].verdict) == ("not run", "fail")
    assert "no_such_module" in found["b"].detail


def test_a_pytest_that_does_not_begin_is_a_failure(tmp_path: Path) -> None:
    """What it said is told, and the report of an earlier run counts for nothing."""
    write(tmp_path, a=PASSES)
    assert outcomes(tmp_path, "a")["a"].verdict == "pass"
    (tmp_path / "tests/layers/conftest.py").write_text(BREAKS)
    found = outcomes(tmp_path, "a")["a"]
    assert found.verdict == "fail"
    assert "no_such_module" in found.detail


def test_a_pytest_that_ends_in_the_middle_is_no_pass(tmp_path: Path) -> None:
    """Even where it ends with 0."""
    write(tmp_path, a=f"{PASSES}\ndef test_three():\n    import os\n    os._exit(0)\n")
    assert outcomes(tmp_path, "a")["a"].verdict == "fail"
