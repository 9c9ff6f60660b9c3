"""Solving against a channel of bare records, which is all that a solver reads."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from strata.errors import BuildError, DefinitionError, LockError
from strata.lock import LockChange, check_lock, lock_inputs, read_lock, slice_for, solve_lock
from strata.lock.report import layer_rows, markdown_changes, summary

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from strata.lock import Solved

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
# When each version was built, in seconds; the day is long past, so that no cooldown matters.
DAY = 86_400
BUILT = dict.fromkeys([version for _, version, _ in RECORDS], 1_700_000_000)
BUILT |= {"3.11.2": 1_700_000_000 + DAY, "4.6": 1_700_000_000 + 3 * DAY}


class Room:
    """A variant's folder beside a channel's folder."""

    solved: Solved

    def __init__(self, folder: Path) -> None:
        """Write definitions and records."""
        self.folder = folder
        self.lacking: dict[str, tuple[str, ...]] = {}
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
                    "size": 1_000_000,
                    "subdir": subdir,
                    "timestamp": BUILT[version] * 1000,
                }
                for name, version, depends in RECORDS
            }
            (self.channel / subdir).mkdir(parents=True)
            repodata = {"info": {"subdir": subdir}, "packages": {}, "packages.conda": packages}
            self.write(f"channel/{subdir}/repodata.json", json.dumps(repodata))

    def write(self, name: str, text: str) -> None:
        """Write a file below the folder."""
        (self.folder / name).write_text(text, encoding="utf-8")

    def solve(self, **options: Any) -> Solved:  # noqa: ANN401 - those of solve_lock
        """Read the definitions and solve."""
        environments = {"low": self.folder / "lower.yml", "high": self.folder / "upper.yml"}
        self.inputs = lock_inputs(environments, self.out.with_name("pins.yml"), self.lacking)
        folder = None if "mirror_url" in options else self.channel
        return solve_lock(self.inputs, folder, CANONICAL, self.out, **options)


@pytest.fixture
def room(tmp_path: Path) -> Room:
    """Return a room where nothing was solved yet."""
    return Room(tmp_path)


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Room:
    """Return a room after one solve."""
    room = Room(tmp_path_factory.mktemp("solved"))
    room.solved = room.solve()
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
    changes = solved.solved.changes
    assert len(changes) == 10
    assert changes[0] == LockChange(
        platform="linux-64",
        name="lab",
        layer="high",
        kind="added",
        before=None,
        after="4.6 h0_0",
        size=1_000_000,
    )


def test_a_second_solve_gives_the_same_bytes(solved: Room) -> None:
    """Nothing in a lock depends on the time or the run, and nothing else is left behind."""
    first = solved.out.read_bytes()
    kept = solved.folder / "kept"
    kept.hardlink_to(solved.out)
    assert solved.solve().changes == ()
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


def test_a_new_lock_says_what_went_up_down_in_and_out(solved: Room, tmp_path: Path) -> None:
    """By conda's order of versions, with each layer's download before and after."""
    room = Room(tmp_path)
    room.out.write_bytes(solved.out.read_bytes())
    room.write("upper.yml", "dependencies: [tornado]\n")
    room.write("tiny/pins.yml", PINS.replace("3.11", "3.12").replace("shared: <2", "shared: <3"))
    up = room.solve()
    own = [change for change in up.changes if change.platform == "linux-64"]
    assert [(change.name, change.kind, change.before, change.after) for change in own] == [
        ("lab", "removed", "4.6 h0_0", None),
        ("python", "up", "3.11.2 h0_0", "3.12.1 h0_0"),
        ("shared", "up", "1.5 h0_0", "2.0 h0_0"),
    ]
    assert summary(up.changes) == "2 removed, 4 up"
    assert layer_rows(up)[0] == ("linux-64", "high", "1", "2.0 MB", "1.0 MB")
    text = markdown_changes("tiny", up)
    assert "| linux-64 | high | lab | removed | 4.6 h0_0 | - | 1.0 MB |" in text
    room.write("tiny/pins.yml", PINS.replace("shared: <2", "shared: <3"))
    down = {change.name: change.kind for change in room.solve().changes}
    assert down == {"python": "down"}


def test_a_dry_run_writes_nothing(room: Room) -> None:
    """It solves and says what would change, and the folder is as it was."""
    assert len(room.solve(dry_run=True).changes) == 10
    assert [path.name for path in room.out.parent.iterdir()] == ["pins.yml"]


def test_packages_that_are_too_young_are_not_taken(room: Room) -> None:
    """The cooldown's end decides, by the time at which a package was built."""
    room.write("tiny/pins.yml", PINS.replace("  python: 3.11.*\n", ""))
    late = datetime.fromtimestamp(1_700_000_000 + 2 * DAY, UTC)
    with pytest.raises(LockError, match="lab"):
        room.solve(newest=late)
    room.write("upper.yml", "dependencies: [tornado]\n")
    for file in room.channel.glob("*/repodata.json"):
        data = json.loads(file.read_text())
        data["packages.conda"]["python-3.12.1-h0_0.conda"]["timestamp"] = BUILT["4.6"] * 1000
        file.write_text(json.dumps(data))
    room.solve(newest=late)
    assert read_lock(room.out).on("linux-64")["python"].version == "3.11.2"
    room.solve(newest=datetime.fromtimestamp(1_700_000_000 + 4 * DAY, UTC))
    assert read_lock(room.out).on("linux-64")["python"].version == "3.12.1"


def test_a_platform_may_do_without_a_layer(room: Room) -> None:
    """Its packages are not solved for there, and the lock is a good one."""
    room.lacking = {"linux-aarch64": ("high",)}
    room.solve()
    lock = read_lock(room.out)
    assert set(lock.on("linux-aarch64")) == {"python", "shared", "torch"}
    assert set(lock.on("linux-64")) == {"lab", "python", "shared", "torch", "tornado"}
    assert check_lock(room.out, room.inputs) == []


def test_a_platform_may_do_without_all_layers(room: Room) -> None:
    """Its part of the lock is empty then, and that is no fault."""
    room.lacking = {"linux-aarch64": ("low", "high")}
    room.solve()
    assert read_lock(room.out).on("linux-aarch64") == {}
    assert check_lock(room.out, room.inputs) == []


class Quiet(SimpleHTTPRequestHandler):
    """A web server that keeps its log to itself."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def mirror(room: Room) -> Iterator[str]:
    """Serve the records over HTTP on this machine."""
    (room.channel / "noarch").mkdir()
    empty = {"info": {"subdir": "noarch"}, "packages": {}, "packages.conda": {}}
    room.write("channel/noarch/repodata.json", json.dumps(empty))
    served = room.folder / "served"
    served.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize(
    ("was", "written"),
    [
        ("", ""),
        ("http:", "HTTP:"),
        ("127.0.0.1", "LocalHost"),
        ("127.0.0.1", "ada:p%40ss@127.0.0.1"),
        ("/tiny/", "/other/../tiny"),
    ],
)
def test_a_mirror_gives_the_lock_that_the_channel_gives(
    room: Room, mirror: str, solved: Room, was: str, written: str
) -> None:
    """Over HTTP from another server, however it is written; the lock names the public channel."""
    room.channel.rename(room.folder / "served" / "tiny")
    room.solve(mirror_url=f"{mirror}tiny/".replace(was, written, 1))
    assert room.out.read_bytes() == solved.out.read_bytes()


def test_a_mirror_that_is_gone_is_told_without_its_secrets(room: Room) -> None:
    """Exit code 4 with the mirror as the place; the password is not in the text."""
    with pytest.raises(BuildError, match="can't be read") as caught:
        room.solve(mirror_url="http://user:secret@127.0.0.1:9/")
    (problem,) = caught.value.problems
    assert problem.where == "http://***:***@127.0.0.1:9/"
    assert problem.fix == "check the network, or name a mirror: docs/mirrors.md"
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["not json", '{"packages.conda": {"torch-1-0.conda": {"name": 5}}}']
)
def test_a_folder_whose_index_is_broken_is_named(room: Room, text: str) -> None:
    """It is the folder that is at fault, and neither the pins nor the solver."""
    room.write("channel/linux-64/repodata.json", text)
    with pytest.raises(LockError, match="can't be read") as caught:
        room.solve()
    (problem,) = caught.value.problems
    assert problem.where == str(room.channel)
    assert problem.fix == "index that folder anew, or name another one: --channel DIR"


def test_a_mirror_that_is_no_address_is_an_argument_that_is_wrong(room: Room) -> None:
    """Exit code 2, with the text that was given."""
    with pytest.raises(DefinitionError, match="is no channel") as caught:
        room.solve(mirror_url="http://[bad/c")
    assert caught.value.problems[0].where == "http://[bad/c"
