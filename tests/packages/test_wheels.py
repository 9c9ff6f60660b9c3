"""Pins of wheels, and how they are fetched."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import strata.embedded.wheels as module
from strata.embedded.pins import Pin, read_pins
from strata.embedded.wheels import (
    TORCH_CPU_INDEX,
    fetch_wheels,
    pins_of_report,
    run_pip,
    sha256_of,
)
from strata.errors import BuildError, LockError
from strata.upstream.mirrors import read_mirrors
from strata.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.packages.conftest import WheelMaker

LOCKS = Path(__file__).parents[2] / "locks" / "embedded"
HASH = "0" * 64


def _workspace(tmp_path: Path) -> Workspace:
    return Workspace(root=tmp_path, build=tmp_path / "build", cache=tmp_path / "cache")


def _pin(wheel: Path, requirements: Path) -> None:
    project, version = wheel.name.split("-")[:2]
    pin = Pin(project=project, version=version, extras=frozenset(), sha256=sha256_of(wheel))
    with requirements.open("a") as file:
        file.write(str(pin))


class FakePip:
    """Stands in for `run`: serves the files of a folder, or fails with a text."""

    def __init__(self, *outcomes: Path | str) -> None:
        """Take what each call in turn comes to."""
        self.outcomes = list(outcomes)
        self.calls: list[list[str]] = []
        self.wanted: list[str] = []

    def __call__(self, argv: list[str], *, where: str, fix: str, **_: object) -> str:
        """Note what was asked for, and serve it or fail."""
        self.calls.append(argv)
        options = dict(word.split("=", 1) for word in argv if word.startswith("--") and "=" in word)
        self.wanted.append(Path(options["--requirement"]).read_text())
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, str):
            raise BuildError.at(where, outcome, fix)
        for wheel in outcome.glob("*.whl"):
            Path(options["--dest"], wheel.name).write_bytes(wheel.read_bytes())
        return ""


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Callable[..., FakePip]:
    """Put a fake pip with these outcomes in the place of the real one."""

    def put(*outcomes: Path | str) -> FakePip:
        fake = FakePip(*outcomes)
        monkeypatch.setattr(module, "run", fake)
        return fake

    return put


def test_pins_are_read_as_written(tmp_path: Path) -> None:
    """A pin survives being written and read, with its extras; comments and blank lines don't."""
    pin = Pin(project="a-b", version="1.0+cpu", extras=frozenset({"x", "y"}), sha256=HASH)
    file = tmp_path / "wheels.txt"
    file.write_text(f"# head\n\n{pin}  # tail\n")
    assert read_pins(file) == (pin,)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("numpy==1.0\n", "exactly one --hash"),
        (f"numpy==1.0 --hash=sha256:{HASH} --hash=sha256:{HASH}\n", "exactly one --hash"),
        ("numpy==1.0 --hash=md5:00\n", "exactly one --hash"),
        (f"numpy>=1.0 --hash=sha256:{HASH}\n", "not pinned to one version"),
        (f"numpy==1.* --hash=sha256:{HASH}\n", "not pinned to one version"),
        (f"--index-url x --hash=sha256:{HASH}\n", "not a requirement"),
        (f"numpy==1 --hash=sha256:{HASH}\nNumPy==2 --hash=sha256:{HASH}\n", "pinned twice"),
        ("# nothing\n", "pins nothing"),
    ],
)
def test_what_is_not_a_pin_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    """A line that does not pin one wheel by its sha256 is a broken lock, and is named."""
    file = tmp_path / "wheels.txt"
    file.write_text(text)
    with pytest.raises(LockError, match=complaint) as caught:
        read_pins(file)
    assert str(file) in str(caught.value)


def test_all_broken_pins_are_reported_with_their_lines(tmp_path: Path) -> None:
    """Two broken pins are two problems, each at the line where it starts."""
    file = tmp_path / "wheels.txt"
    file.write_text(f"# head\na==1 \\\n    --hash=md5:0\nb==1 --hash=sha256:{HASH}\nc\n")
    with pytest.raises(LockError) as caught:
        read_pins(file)
    assert [problem.where for problem in caught.value.problems] == [f"{file}:2", f"{file}:5"]


def test_a_missing_file_of_pins_is_a_broken_lock(tmp_path: Path) -> None:
    """Without wheels.txt there is nothing to build from, and the error says how to make it."""
    with pytest.raises(LockError, match="No such file"):
        read_pins(tmp_path / "wheels.txt")


def test_only_missing_and_damaged_wheels_are_downloaded(
    tmp_path: Path, make_wheel: WheelMaker, pip: Callable[..., FakePip]
) -> None:
    """A whole cache asks pip for nothing; a damaged file is asked for alone and replaced."""
    served = tmp_path / "served"
    requirements = tmp_path / "wheels.txt"
    for name in ("one", "two"):
        _pin(make_wheel(served, name), requirements)
    fake = pip(served, served)
    files = fetch_wheels(_workspace(tmp_path), requirements)
    assert sorted(files) == ["one", "two"]
    assert files == fetch_wheels(_workspace(tmp_path), requirements)
    assert len(fake.calls) == 1
    files["two"].write_bytes(files["two"].read_bytes() + b"x")
    again = fetch_wheels(_workspace(tmp_path), requirements)
    assert "two==" in fake.wanted[1]
    assert "one==" not in fake.wanted[1]
    assert again["two"].read_bytes() == (served / again["two"].name).read_bytes()


def test_torch_is_looked_for_in_its_own_index_second(
    tmp_path: Path, make_wheel: WheelMaker, pip: Callable[..., FakePip]
) -> None:
    """Where pip's configuration knows no CPU build, PyTorch's public index is added."""
    served = tmp_path / "served"
    requirements = tmp_path / "wheels.txt"
    _pin(make_wheel(served, "torch", "2.13.0+cpu"), requirements)
    fake = pip("No matching distribution found", served)
    fetch_wheels(_workspace(tmp_path), requirements)
    extra = f"--extra-index-url={TORCH_CPU_INDEX}"
    assert [extra in call for call in fake.calls] == [False, True]


def test_a_failed_download_leaves_the_cache_as_it_was(
    tmp_path: Path, make_wheel: WheelMaker, pip: Callable[..., FakePip]
) -> None:
    """Without torch among the missing there is one try, and its failure leaves nothing."""
    requirements = tmp_path / "wheels.txt"
    _pin(make_wheel(tmp_path / "served", "one"), requirements)
    fake = pip("no route to host")
    with pytest.raises(BuildError, match="no route to host"):
        fetch_wheels(_workspace(tmp_path), requirements)
    assert len(fake.calls) == 1
    assert list((tmp_path / "cache" / "wheels").iterdir()) == []


def test_pip_that_leaves_a_wheel_out_is_a_failure(
    tmp_path: Path, make_wheel: WheelMaker, pip: Callable[..., FakePip]
) -> None:
    """A download that ends well without the pinned file is named, not taken for done."""
    requirements = tmp_path / "wheels.txt"
    _pin(make_wheel(tmp_path / "served", "one"), requirements)
    (tmp_path / "empty").mkdir()
    pip(tmp_path / "empty")
    with pytest.raises(BuildError, match="no pinned wheel of one"):
        fetch_wheels(_workspace(tmp_path), requirements)


def _only_here(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))


def test_the_real_pip_takes_our_arguments(
    tmp_path: Path, make_wheel: WheelMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real pip downloads binary wheels for our target from where its configuration says."""
    requirements = tmp_path / "wheels.txt"
    tags = {"one": "cp311-cp311-manylinux_2_34_x86_64", "two": "cp39-abi3-manylinux2014_x86_64"}
    for name, tag in tags.items():
        wheel = make_wheel(tmp_path / "served", name)
        _pin(wheel.rename(wheel.with_name(f"{name}-1.0-{tag}.whl")), requirements)
    _only_here(monkeypatch, tmp_path / "served")
    files = fetch_wheels(_workspace(tmp_path), requirements)
    folder = tmp_path / "cache" / "wheels"
    assert files == {name: folder / f"{name}-1.0-{tag}.whl" for name, tag in tags.items()}


def test_a_token_of_the_index_is_shown_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real pip names the index as it got it; the error has it as it was written."""
    written = "http://127.0.0.1:9/$INDEX_TOKEN/simple"
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_RETRIES", "0")
    monkeypatch.setenv("STRATA_PYTHON_INDEX", written)
    monkeypatch.setenv("INDEX_TOKEN", "s3cr3t!")
    for name, value in read_mirrors(os.environ).environment(os.environ).items():
        monkeypatch.setenv(name, value)
    with pytest.raises(BuildError) as failed:
        run_pip(["download", "--verbose", "--no-deps", f"--dest={tmp_path}", "one"], where="one")
    assert written in str(failed.value)
    assert "s3cr3t" not in str(failed.value)


def test_another_file_than_the_pinned_one_is_a_broken_lock(
    tmp_path: Path, make_wheel: WheelMaker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the index serves other bytes, pip refuses them and the exit code says lock."""
    requirements = tmp_path / "wheels.txt"
    _pin(make_wheel(tmp_path / "first", "one"), requirements)
    make_wheel(tmp_path / "served", "one", metadata="Summary: other bytes\n")
    _only_here(monkeypatch, tmp_path / "served")
    with pytest.raises(LockError, match="DO NOT MATCH THE HASHES"):
        fetch_wheels(_workspace(tmp_path), requirements)


def _reported(name: str, *, sha256: str | None = HASH, requires: tuple[str, ...] = ()) -> object:
    return {
        "metadata": {"name": name, "version": "1.0", "requires_dist": list(requires)},
        "download_info": {"archive_info": {"hashes": {"sha256": sha256}}},
    }


def test_a_report_becomes_pins_with_extras() -> None:
    """Pins are sorted by normalised name and carry the extras that somebody asks for."""
    report = {"install": [_reported("B_b", requires=("a[x]",)), _reported("a")]}
    assert pins_of_report(report, "wheels.in") == (
        Pin(project="a", version="1.0", extras=frozenset({"x"}), sha256=HASH),
        Pin(project="b-b", version="1.0", extras=frozenset(), sha256=HASH),
    )


def test_a_report_that_is_not_whole_is_refused() -> None:
    """A requirement outside the set and a missing hash are two problems of one error."""
    report = {"install": [_reported("a", requires=("b",)), _reported("c", sha256=None)]}
    with pytest.raises(LockError) as caught:
        pins_of_report(report, "wheels.in")
    assert [problem.what for problem in caught.value.problems] == [
        "a needs b, but the set has none",
        "the index gave no sha256 for c",
    ]


def test_the_committed_pins_are_for_the_cpu() -> None:
    """The embedded variant carries no CUDA package, and its torch is the CPU build."""
    pins = {pin.project: pin for pin in read_pins(LOCKS / "wheels.txt")}
    assert pins["torch"].version.endswith("+cpu")
    assert [name for name in pins if name.startswith(("nvidia-", "cuda-", "triton"))] == []


def test_the_committed_names_are_of_pinned_projects() -> None:
    """Every renamed project is pinned, so that names.toml holds nothing that is gone."""
    names = tomllib.loads((LOCKS / "names.toml").read_text())["names"]
    assert set(names) <= {pin.project for pin in read_pins(LOCKS / "wheels.txt")}
    assert names["torch"] == "pytorch"
