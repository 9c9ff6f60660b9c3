"""Wheels become conda packages: what is laid out, and that it is always the same."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import zstandard

from strata.embedded.child import call_child
from strata.embedded.convert import SITE_PACKAGES, convert_wheel, lay_out
from strata.embedded.interpreter import write_interpreter
from strata.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.packages.conftest import WheelMaker

EPOCH = 1793491200
DEMO = {
    "demo/cli.py": "import sys\ndef main():\n    print(sys.argv[1:]); return 3\n",
    "demo/.settings.yml": "hidden: true\n",
    "demo/old.pyc": "byte code",
    "demo/__pycache__/cli.cpython-311.pyc": "byte code",
    "demo-1.0.data/scripts/hello": "#!python -E\nimport demo\nprint(demo.NAME)\n",
    "demo-1.0.data/scripts/plain": "#!/bin/sh\necho plain\n",
    "demo-1.0.data/data/share/demo/kernel.json": "{}\n",
    "demo-1.0.data/headers/demo.h": "#define DEMO\n",
    "demo-1.0.dist-info/entry_points.txt": "[console_scripts]\ndemo = demo.cli:main\n",
}


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@pytest.fixture
def prefix(tmp_path: Path, make_wheel: WheelMaker) -> Path:
    """Lay a wheel with a bit of everything out under a prefix with spaces and quotes."""
    wheel = make_wheel(tmp_path, "demo", files=DEMO, executable=frozenset({"demo/cli.py"}))
    prefix = tmp_path / 'a "b" $c'
    with _umask(0o077):
        lay_out(wheel, prefix)
    (prefix / "bin" / "python").symlink_to(sys.executable)
    return prefix


def _run(prefix: Path, script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(prefix / SITE_PACKAGES)}
    argv = [str(script), *arguments]
    return subprocess.run(argv, env=environment, capture_output=True, text=True, check=False)


def test_files_go_where_pip_puts_them(prefix: Path) -> None:
    """Code, scripts, data and headers each have their place, and byte code is left behind."""
    files = {str(path.relative_to(prefix)) for path in prefix.rglob("*") if not path.is_dir()}
    assert files == {
        "bin/demo",
        "bin/hello",
        "bin/plain",
        "bin/python",
        "include/site/python3.11/demo/demo.h",
        f"{SITE_PACKAGES}/demo-1.0.dist-info/INSTALLER",
        f"{SITE_PACKAGES}/demo-1.0.dist-info/METADATA",
        f"{SITE_PACKAGES}/demo-1.0.dist-info/RECORD",
        f"{SITE_PACKAGES}/demo-1.0.dist-info/WHEEL",
        f"{SITE_PACKAGES}/demo-1.0.dist-info/entry_points.txt",
        f"{SITE_PACKAGES}/demo/.settings.yml",
        f"{SITE_PACKAGES}/demo/__init__.py",
        f"{SITE_PACKAGES}/demo/cli.py",
        "share/demo/kernel.json",
    }
    installer = prefix / SITE_PACKAGES / "demo-1.0.dist-info" / "INSTALLER"
    assert installer.read_text() == "conda\n"


def test_modes_are_plain(prefix: Path) -> None:
    """Whatever the wheel's modes and our umask are, a file is 0644, or 0755 when it is run."""
    site = prefix / SITE_PACKAGES / "demo"
    modes = {
        path.name: oct(path.stat().st_mode & 0o7777)
        for path in (site / "__init__.py", site / "cli.py", *(prefix / "bin").glob("[!p]*"))
    }
    assert modes == {
        "__init__.py": "0o644",
        "cli.py": "0o755",
        "demo": "0o755",
        "hello": "0o755",
    }


def test_the_record_holds_what_was_written(prefix: Path) -> None:
    """RECORD lists every file with its hash, the scripts outside of site-packages too."""
    site = prefix / SITE_PACKAGES
    record = (site / "demo-1.0.dist-info" / "RECORD").read_text()
    paths = [row[0] for row in csv.reader(io.StringIO(record))]
    assert "../../../bin/demo" in paths
    assert all((site / path).is_file() for path in paths)
    unhashed = [row[0] for row in csv.reader(io.StringIO(record)) if not row[1]]
    assert unhashed == ["demo-1.0.dist-info/RECORD"]


def test_an_entry_point_runs_from_any_prefix(prefix: Path) -> None:
    """A console script passes arguments and exit code on, at a prefix with spaces and quotes."""
    done = _run(prefix, prefix / "bin" / "demo", "x y", "$z")
    assert (done.returncode, done.stdout) == (3, "['x y', '$z']\n")


def test_scripts_run_through_symbolic_links(prefix: Path, tmp_path: Path) -> None:
    """A link to a script finds the python beside the script, not beside the link."""
    link = tmp_path / "link"
    link.symlink_to(prefix / "bin" / "hello")
    done = _run(prefix, link)
    assert (done.returncode, done.stdout, done.stderr) == (0, "demo\n", "")


def test_scripts_of_other_programs_stay_as_they_are(prefix: Path) -> None:
    """Only `#!python` stands for the interpreter; a shell script keeps its first line."""
    assert (prefix / "bin" / "plain").read_text() == "#!/bin/sh\necho plain\n"


def _unpacked(package: Path) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
    with zipfile.ZipFile(package) as archive:
        for name in archive.namelist():
            if name.endswith(".tar.zst"):
                data = zstandard.ZstdDecompressor().stream_reader(archive.read(name)).read()
                with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                    for member in tar:
                        stream = tar.extractfile(member) if member.isfile() else None
                        yield member, stream.read() if stream else b""


def _dates(package: Path) -> list[tuple[int, ...]]:
    with zipfile.ZipFile(package) as archive:
        return [entry.date_time for entry in archive.infolist()]


def _convert(out: Path, wheels: list[Path]) -> dict[str, Path]:
    out.mkdir()
    job = {
        "do": "convert",
        "out": str(out),
        "epoch": EPOCH,
        "rename": {"demo": "renamed"},
        "wheels": {
            "python": None,
            **{w.name.split("-")[0]: {"path": str(w), "extras": ["more"]} for w in wheels},
        },
    }
    return {name: out / file for name, file in call_child(job, "test").items()}


def test_converting_twice_gives_the_same_bytes(tmp_path: Path, make_wheel: WheelMaker) -> None:
    """Neither the place, nor the time, nor the umask, nor the wheel's age changes a package."""
    more = "Requires-Dist: other>=1; extra == 'more'\nRequires-Dist: gone; extra == 'less'\n"
    wheels = [
        make_wheel(tmp_path / "1", "demo", files=DEMO),
        make_wheel(tmp_path / "1", "local", "2.0+cpu", metadata=f"Requires-Dist: demo<2\n{more}"),
    ]
    first = _convert(tmp_path / "first", wheels)
    elsewhere = tmp_path / "2"
    elsewhere.mkdir()
    copies = [Path(shutil.copyfile(wheel, elsewhere / wheel.name)) for wheel in wheels]
    for copy in copies:
        os.utime(copy, (1, 1))
    with _umask(0o077):
        second = _convert(tmp_path / "second", copies)
    assert {name: path.name for name, path in first.items()} == {
        "python": "python-3.11.2-py311_0.conda",
        "demo": "renamed-1.0-py311_0.conda",
        "local": "local-2.0-cpu_py311_0.conda",
    }
    for name, path in first.items():
        assert path.read_bytes() == second[name].read_bytes()
    assert sorted(path.name for path in (tmp_path / "first").iterdir()) == sorted(
        path.name for path in first.values()
    )
    packed = {member.name for member, _ in _unpacked(first["demo"])}
    assert f"{SITE_PACKAGES}/demo/.settings.yml" in packed
    times = {member.mtime for path in first.values() for member, _ in _unpacked(path)}
    assert times == {EPOCH}
    dates = {date for path in first.values() for date in _dates(path)}
    assert dates == {(1980, 1, 1, 0, 0, 0), (2026, 11, 1, 0, 0, 0)}  # the format's first; EPOCH
    index = next(d for m, d in _unpacked(first["local"]) if m.name == "info/index.json")
    assert json.loads(index)["depends"] == ["other >=1", "python >=3.11,<3.12", "renamed <2a0"]


def test_the_interpreter_package_ignores_this_machines_python(tmp_path: Path) -> None:
    """The package `python` records its links by their text, never by what they lead to here."""
    package = write_interpreter(tmp_path, epoch=EPOCH)
    members = {member.name: (member, data) for member, data in _unpacked(package)}
    assert members["bin/python3.11"][0].linkname == "/usr/bin/python3.11"
    assert members["bin/python"][0].linkname == "python3.11"
    assert b"home = /usr/bin\n" in members["pyvenv.cfg"][1]
    paths = {p["_path"]: p for p in json.loads(members["info/paths.json"][1])["paths"]}
    assert paths["bin/python3.11"] == {
        "_path": "bin/python3.11",
        "path_type": "softlink",
        "sha256": hashlib.sha256(b"/usr/bin/python3.11").hexdigest(),
        "size_in_bytes": 19,
    }


@pytest.mark.parametrize(
    ("metadata", "complaint"),
    [
        ("Requires-Python: >=3.12\n", "needs Python >=3.12, not 3.11.2"),
        ("Requires-Python: three\n", "Invalid specifier"),
        ("Requires-Dist: not a requirement\n", "Expected"),
    ],
)
def test_wheels_that_cannot_be_converted_are_named(
    tmp_path: Path, make_wheel: WheelMaker, metadata: str, complaint: str
) -> None:
    """A wheel for another Python, or with broken metadata, is a build error with its name."""
    wheel = make_wheel(tmp_path, "demo", metadata=metadata)
    with pytest.raises(BuildError, match=complaint) as caught:
        convert_wheel(wheel, tmp_path, rename={}, epoch=EPOCH)
    assert wheel.name in str(caught.value)


def test_a_file_that_is_no_wheel_is_named(tmp_path: Path) -> None:
    """A truncated download is a build error with the file's name, not a traceback."""
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    wheel.write_bytes(b"PK\x03\x04 cut off")
    with pytest.raises(BuildError, match=r"demo-1\.0-py3-none-any\.whl: is not a wheel"):
        convert_wheel(wheel, tmp_path, rename={}, epoch=EPOCH)


def test_a_wheel_cannot_write_outside_of_its_prefix(tmp_path: Path, make_wheel: WheelMaker) -> None:
    """A path that climbs out of the prefix is refused, and leaves nothing there."""
    wheel = make_wheel(tmp_path, "demo", files={"../../../../climbed": "x"})
    with pytest.raises(BuildError, match="outside"):
        convert_wheel(wheel, tmp_path, rename={}, epoch=EPOCH)
    assert [path.name for path in tmp_path.iterdir()] == [wheel.name]


def test_a_failing_child_says_why(tmp_path: Path) -> None:
    """What goes wrong in the child process reaches the user as a build error."""
    wheel = tmp_path / "demo-1.0-py3-none-any.whl"
    wheel.write_bytes(b"")
    with pytest.raises(BuildError, match="is not a wheel"):
        _convert(tmp_path / "out", [wheel])
