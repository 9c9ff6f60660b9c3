"""The base's own Python as a conda package: a virtual environment of Debian's interpreter."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import zipfile
from dataclasses import dataclass
from typing import TYPE_CHECKING

import zstandard

from strata.embedded.convert import SUBDIR
from strata.embedded.requires import PYTHON_VERSION

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = "python"
STEM = f"{PROJECT}-{PYTHON_VERSION}-py311_0"

LINKS = {
    "bin/python": "python3.11",
    "bin/python3": "python3.11",
    "bin/python3.11": "/usr/bin/python3.11",
}
FILES = {
    "pyvenv.cfg": (
        f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {PYTHON_VERSION}\n"
    ),
}


@dataclass(frozen=True, kw_only=True)
class _Member:
    path: str
    content: bytes
    is_link: bool = False


def write_interpreter(out_dir: Path, *, epoch: int) -> Path:
    """Write the package `python`, and return its path.

    Its bytes are the same on every machine: rattler-build would put the sha256
    of whatever `/usr/bin/python3.11` is on this one into `paths.json`, so the
    few files are packed here: a `.conda` is a zip of two zstd-compressed tars.
    `epoch` is the time of all files in it, in seconds.
    """
    payload = [
        *(_Member(path=p, content=target.encode(), is_link=True) for p, target in LINKS.items()),
        *(_Member(path=p, content=text.encode()) for p, text in FILES.items()),
    ]
    info = [
        _Member(path=f"info/{name}.json", content=_json(value))
        for name, value in {
            "about": {"summary": "The base image's own Python, as a virtual environment"},
            "index": _index(epoch),
            "paths": {"paths": [_path(member) for member in payload], "paths_version": 1},
        }.items()
    ]
    package = out_dir / f"{STEM}.conda"
    new = out_dir / f".{STEM}.new"
    with zipfile.ZipFile(new, "w", zipfile.ZIP_STORED) as archive:
        for name, data in (
            ("metadata.json", _json({"conda_pkg_format_version": 2})),
            (f"pkg-{STEM}.tar.zst", _tar(payload, epoch)),
            (f"info-{STEM}.tar.zst", _tar(info, epoch)),
        ):
            # A ZipInfo made by name alone carries the format's first day, not the clock's.
            archive.writestr(zipfile.ZipInfo(name), data)
    return new.replace(package)


def _index(epoch: int) -> dict[str, object]:
    return {
        "arch": "x86_64",
        "build": "py311_0",
        "build_number": 0,
        "depends": [],
        "name": PROJECT,
        "platform": "linux",
        "subdir": SUBDIR,
        "timestamp": epoch * 1000,
        "version": PYTHON_VERSION,
    }


def _path(member: _Member) -> dict[str, object]:
    # What a link leads to is the base's business, so its own text stands for its content.
    return {
        "_path": member.path,
        "path_type": "softlink" if member.is_link else "hardlink",
        "sha256": hashlib.sha256(member.content).hexdigest(),
        "size_in_bytes": len(member.content),
    }


def _tar(members: list[_Member], epoch: int) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for member in members:
            entry = tarfile.TarInfo(member.path)
            entry.mtime = epoch
            if member.is_link:
                entry.type, entry.mode = tarfile.SYMTYPE, 0o777
                entry.linkname = member.content.decode()
                archive.addfile(entry)
            else:
                entry.size = len(member.content)
                archive.addfile(entry, io.BytesIO(member.content))
    return zstandard.ZstdCompressor(level=19).compress(buffer.getvalue())


def _json(value: object) -> bytes:
    return json.dumps(value, indent=2, sort_keys=True).encode()
