"""Solving against a channel of bare records, which is all that a solver reads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml

from strata.errors import DefinitionError, LockError
from strata.lock import LockChange, check_lock, lock_inputs, read_lock, slice_for, solve_lock

if TYPE_CHECKING:
    from pathlib import Path

CANONICAL = "https://embedded.strata.invalid/"
PINS = f"""\
accelerator: cpu
channels: ["{CANONICAL}"]
platforms: [linux-64, linux-aarch64]
virtual-packages:
  linux-64: {{__glibc: "2.36"}}
  linux-aarch64: {{__glibc: "2.36"}}
pins:
  python: 3.11.*
  shared: <2
"""
RECORDS = (
    ("python", "3.11.2", ()),
    ("python", "3.12.1", ()),
    ("torch", "2.13.0", ("python >=3.11", "shared", "__glibc >=2.28")),
    ("shared", "1.5", ("python",)),
    ("shared", "2.0", ("python",)),
    ("lab", "4.6", ("python", "shared >=1", "tornado")),
    ("tornado", "6.5", ()),
    ("new", "1.0", ("__glibc >=2.39",)),
)


class Room:
    """A variant's folder beside a channel's folder."""

    changes: tuple[LockChange, ...]

    def __init__(self, folder: Path) -> None:
        """Write definitions and records."""
        self.folder = folder
        self.channel = folder / "channel"
        self.out = folder / "tiny" / "conda-lock.yml"
        self.out.parent.mkdir()
        self.write("lower.yml", "dependencies: [python, torch]\n")
        self.write("upper.yml", "dependencies: [lab]\n")
        self.write("tiny/pins.yml", PINS)
        for subdir in ("linux-64", "linux-aarch64"):
            packages = {
                f"{name}-{version}-h0_0.conda": {
                    "name": name,
                    "version": version,
                    "build": "h0_0",
                    "build_number": 0,
                    "depends": list(depends),
                    "md5": "cd" * 16,
                    "sha256": "ab" * 32,
                    "size": 1,
                    "subdir": subdir,
                }
                for name, version, depends in RECORDS
            }
            (self.channel / subdir).mkdir(parents=True)
            repodata = {"info": {"subdir": subdir}, "packages": {}, "packages.conda": packages}
            self.write(f"channel/{subdir}/repodata.json", json.dumps(repodata))

    def write(self, name: str, text: str) -> None:
        """Write a file below the folder."""
        (self.folder / name).write_text(text, encoding="utf-8")

    def solve(self) -> tuple[LockChange, ...]:
        """Read the definitions and solve."""
        environments = {"low": self.folder / "lower.yml", "high": self.folder / "upper.yml"}
        self.inputs = lock_inputs(environments, self.out.with_name("pins.yml"))
        return solve_lock(self.inputs, self.channel, CANONICAL, self.out)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """Return a room where nothing was solved yet."""
    return Room(tmp_path)


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Room:
    """Return a room after one solve."""
    room = Room(tmp_path_factory.mktemp("solved"))
    room.changes = room.solve()
    return room


def test_a_solve_gives_one_good_lock_for_all_platforms_and_layers(solved: Room) -> None:
    """Pins hold, layers share one solve, and URLs are canonical."""
    assert check_lock(solved.out, solved.inputs) == []
    lock = read_lock(solved.out)
    for platform in ("linux-64", "linux-aarch64"):
        found = {
            name: (package.version, package.category) for name, package in lock.on(platform).items()
        }
        assert found == {
            "python": ("3.11.2", "low"),
            "torch": ("2.13.0", "low"),
            "shared": ("1.5", "low"),
            "lab": ("4.6", "high"),
            "tornado": ("6.5", "high"),
        }
    assert {package.url.rsplit("/", 2)[0] for package in lock.packages} == {CANONICAL.rstrip("/")}
    assert str(solved.channel) not in solved.out.read_text(encoding="utf-8")
    upper = slice_for(lock, "linux-64", ["lab"], ["python", "torch"])
    assert [package.name for package in upper] == ["lab", "tornado"]
    assert len(solved.changes) == 10
    assert solved.changes[0] == LockChange(
        platform="linux-64", name="lab", before=None, after="4.6 h0_0"
    )


def test_a_second_solve_gives_the_same_bytes(solved: Room) -> None:
    """Nothing in a lock depends on the time or the run, and nothing else is left behind."""
    first = solved.out.read_bytes()
    kept = solved.folder / "kept"
    kept.hardlink_to(solved.out)
    assert solved.solve() == ()
    assert solved.out.read_bytes() == first
    assert not kept.samefile(solved.out)  # a new file took its place in one step
    assert sorted(path.name for path in solved.out.parent.iterdir()) == [
        "conda-lock.yml",
        "pins.yml",
    ]


def test_the_format_is_conda_locks_own(solved: Room) -> None:
    """A package has conda-lock's keys, version 1, and one category."""
    data = yaml.safe_load(solved.out.read_text(encoding="utf-8"))
    assert (data["version"], data["metadata"]["platforms"]) == (1, ["linux-64", "linux-aarch64"])
    torch = next(entry for entry in data["package"] if entry["name"] == "torch")
    assert torch == {
        "name": "torch",
        "version": "2.13.0",
        "manager": "conda",
        "platform": "linux-64",
        "dependencies": {"__glibc": ">=2.28", "python": ">=3.11", "shared": ""},
        "url": f"{CANONICAL}linux-64/torch-2.13.0-h0_0.conda",
        "hash": {"md5": "cd" * 16, "sha256": "ab" * 32},
        "category": "low",
        "optional": True,
    }


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("lower.yml", "dependencies: [python, torch, new]\n", "__glibc >=2.39"),
        ("lower.yml", "dependencies: [python, 'torch >=<2']\n", 'lower.yml:1: "torch >=<2" is not'),
        ("tiny/pins.yml", PINS.replace('"2.36"', '"a b c"'), 'pins.yml:5: __glibc "a b c" is not'),
    ],
)
def test_what_cannot_be_solved_leaves_the_old_lock_alone(
    room: Room, file: str, text: str, expected: str
) -> None:
    """The reason is told with exit code 3, and the lock that was there stays as it was."""
    room.out.write_text("the old lock\n", encoding="utf-8")
    room.write(file, text)
    with pytest.raises(LockError) as caught:
        room.solve()
    assert expected in str(caught.value)
    assert room.out.read_text(encoding="utf-8") == "the old lock\n"
    assert sorted(path.name for path in room.out.parent.iterdir()) == ["conda-lock.yml", "pins.yml"]


def test_a_pin_that_pins_nothing_is_refused(room: Room) -> None:
    """A slip in a pin's name would leave the package free."""
    room.write("tiny/pins.yml", PINS + "  tronado: 6.*\n")
    with pytest.raises(DefinitionError, match=r'pin tronado 6\.\* pins nothing .*"tornado"'):
        room.solve()
    assert not room.out.exists()


def test_a_folder_without_records_is_no_channel(room: Room) -> None:
    """A channel that is gone is told as such, not as packages that can't be found."""
    (room.channel / "linux-aarch64" / "repodata.json").unlink()
    with pytest.raises(LockError, match="is no channel for linux-aarch64"):
        room.solve()


def test_a_folder_stands_for_a_channel_of_the_pins_only(room: Room) -> None:
    """Packages can't come from a channel that the variant doesn't name."""
    room.write("tiny/pins.yml", PINS.replace("embedded.", "other."))
    with pytest.raises(DefinitionError, match=r'"https://embedded.strata.invalid/", is not among'):
        room.solve()
