"""One wheel in, one conda package out, and the same bytes every time."""

from __future__ import annotations

import io
import tempfile
import zipfile
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from installer import install
from installer.destinations import SchemeDictionaryDestination
from installer.exceptions import InstallerError
from installer.sources import WheelFile
from installer.utils import Scheme
from packaging.metadata import RawMetadata, parse_email
from packaging.requirements import InvalidRequirement
from packaging.specifiers import SpecifierSet
from packaging.utils import (
    InvalidWheelFilename,
    NormalizedName,
    canonicalize_name,
    parse_wheel_filename,
)

from strata.embedded.requires import PYTHON_VERSION, conda_build, conda_depends, conda_version
from strata.errors import BuildError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

# Raise it with every change to the code that can change a package's bytes.
CONVERTER_VERSION = 2

SUBDIR = "linux-64"
SITE_PACKAGES = "lib/python3.11/site-packages"
SCHEMES = {
    "purelib": SITE_PACKAGES,
    "platlib": SITE_PACKAGES,
    "scripts": "bin",
    "data": ".",
    "headers": "include/site/python3.11",
}

# Measured with levels 1 to 9: docs/decisions/0004-embedded-channel.md.
ZSTD_LEVEL = 3

# The kernel gives the whole path to sh, which hands the script to the python beside it: at any
# prefix, through symbolic links, with spaces.  Python reads these two lines as a string.
FIRST_LINES = b"""\
#!/bin/sh
'''exec' "$(dirname -- "$(readlink -f -- "$0")")/python" "$0" "$@"
' '''
"""
ENTRY_POINT = """\
import sys
from {module} import {name}
if __name__ == '__main__':
    sys.exit({attr}())
"""


def read_metadata(wheel: Path) -> RawMetadata:
    """Return the core metadata of a wheel.

    Raises `BuildError` when the file is not a wheel.
    """
    try:
        with WheelFile.open(wheel) as source:
            return parse_email(source.read_dist_info("METADATA"))[0]
    except (OSError, ValueError, KeyError, zipfile.BadZipFile, InstallerError) as broken:
        raise _not_convertible(wheel, f"is not a wheel: {broken}") from None


def convert_wheel(
    wheel: Path,
    out_dir: Path,
    *,
    rename: Mapping[str, str],
    epoch: int,
    extras: Iterable[str] = (),
) -> Path:
    """Write a wheel as a conda package for linux-64 and Python 3.11, and return its path.

    The package is named by its normalised project name unless `rename` says
    otherwise, carries the requirements of the wheel and of the given extras,
    and depends on nothing but the wheel's bytes, the arguments and the version
    of rattler-build.  `epoch` is the time of all files in it, in seconds.

    rattler-build may crash when the interpreter that loaded it ends: call it in
    a child process (`strata.embedded.child`).  Raises `BuildError` when the
    wheel can't be converted.
    """
    metadata = read_metadata(wheel)
    try:
        project, version = parse_wheel_filename(wheel.name)[:2]
        requires_python = SpecifierSet(metadata.get("requires_python", ""))
        depends = conda_depends(project, metadata.get("requires_dist", []), extras, rename)
    except (InvalidRequirement, InvalidWheelFilename, ValueError) as invalid:
        raise _not_convertible(wheel, str(invalid).splitlines()[0]) from None
    if not requires_python.contains(PYTHON_VERSION):
        raise _not_convertible(wheel, f"needs Python {requires_python}, not {PYTHON_VERSION}")
    with tempfile.TemporaryDirectory(prefix=".stage-", dir=out_dir) as scratch:
        stage = Path(scratch, "prefix")
        try:
            lay_out(wheel, stage)
        except (OSError, ValueError, zipfile.BadZipFile, InstallerError) as broken:
            raise _not_convertible(wheel, str(broken)) from None
        return assemble(
            stage,
            out_dir,
            name=rename.get(project, project),
            version=conda_version(str(version)),
            build=conda_build(str(version)),
            depends=depends,
            epoch=epoch,
            summary=metadata.get("summary"),
            license=metadata.get("license_expression"),
        )


def lay_out(wheel: Path, prefix: Path) -> None:
    """Install a wheel's files under a prefix as pip would, but relocatable and uncompiled.

    Files get mode 0644, or 0755 where the wheel has any execute bit.
    """
    schemes = {scheme: str(prefix / folder) for scheme, folder in SCHEMES.items()}
    project: NormalizedName = canonicalize_name(parse_wheel_filename(wheel.name)[0])
    schemes["headers"] += f"/{project}"
    with _UncompiledWheel.open(wheel) as source:
        install(source, _Prefix(schemes, "python", "posix"), {"INSTALLER": b"conda\n"})
    for file in prefix.rglob("*"):
        if file.is_file():
            file.chmod(0o755 if file.stat().st_mode & 0o111 else 0o644)


def assemble(
    stage: Path,
    out_dir: Path,
    *,
    name: str,
    version: str,
    build: str,
    depends: list[str],
    epoch: int,
    **about: str | None,
) -> Path:
    """Pack a folder as a conda package and move it into `out_dir` when it is whole.

    `about` may hold a summary and a licence (SPDX), `epoch` is in seconds.
    Raises `BuildError` when rattler-build refuses the name or the version.
    """
    from rattler_build import (  # noqa: PLC0415 - see above
        RattlerBuildError,
        assemble_package,
        collect_files,
    )

    try:
        made: Path = assemble_package(
            name,
            version,
            SUBDIR,
            build,
            stage.parent / "made",
            # By default hidden files are left behind, and some wheels need theirs.
            files=collect_files(stage, include_hidden=True),
            depends=depends,
            compression_level=ZSTD_LEVEL,
            compression_threads=2,  # fixed, so that it can't follow this machine's cores
            timestamp=datetime.fromtimestamp(epoch, UTC),
            detect_prefix=False,
            **about,
        ).path
    except RattlerBuildError as refused:
        what = f"rattler-build refused: {refused}"
        raise BuildError.at(f"{name} {version}", what, "see what it says") from None
    return made.replace(out_dir / made.name)


def _not_convertible(wheel: Path, what: str) -> BuildError:
    fix = "remove the file and run it again, or pin another version of the project"
    return BuildError(*BuildError.at(wheel.name, what, fix).problems)


class _UncompiledWheel(WheelFile):  # type: ignore[misc] # installer is not followed by mypy
    """A wheel without the byte code that some carry: the image build compiles all alike."""

    def get_contents(self) -> Iterator[tuple[tuple[str, str, str], BinaryIO, bool]]:
        for record, stream, is_executable in super().get_contents():
            if not record[0].endswith(".pyc"):
                yield record, stream, is_executable


class _Prefix(SchemeDictionaryDestination):  # type: ignore[misc] # installer is not followed
    """A prefix whose scripts find the python beside them."""

    def write_script(self, name: str, module: str, attr: str, section: str) -> Any:  # noqa: ANN401
        del section  # console and gui differ on Windows only
        code = ENTRY_POINT.format(module=module, name=attr.partition(".")[0], attr=attr)
        data = io.BytesIO(FIRST_LINES + code.encode())
        return self.write_to_fs(Scheme("scripts"), name, data, is_executable=True)

    def write_file(self, scheme: str, path: Any, stream: BinaryIO, is_executable: bool) -> Any:  # noqa: ANN401, FBT001
        if scheme == "scripts":
            first = stream.readline()
            # The wheel specification: "#!python" and "#!pythonw" stand for the interpreter.
            head = FIRST_LINES if first.startswith(b"#!python") else first
            stream, is_executable = io.BytesIO(head + stream.read()), True
        return self.write_to_fs(Scheme(scheme), str(path), stream, is_executable)
