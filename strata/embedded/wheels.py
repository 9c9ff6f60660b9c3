"""The wheels that the embedded variant is made of: pinned by hash, fetched by pip."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from strata.embedded.pins import Pin, read_pins
from strata.embedded.requires import GLIBC_MINOR, asked_extras, unmet
from strata.errors import BuildError, LockError, Problem, StrataError
from strata.lock.urls import mask
from strata.run import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from strata.workspace import Workspace

TORCH_CPU_INDEX = "https://download.pytorch.org/whl/cpu"
DOWNLOAD_TIMEOUT = 3600.0

MACHINE = "x86_64"
PYTHON_TAGS = (
    "--only-binary=:all:",
    "--python-version=3.11",
    "--implementation=cp",
    "--abi=cp311",
)


def target(machine: str) -> tuple[str, ...]:
    """Return pip's options for wheels that run on a machine (`x86_64`, `aarch64`)."""
    # pip takes the first platform that it finds a wheel for: newest glibc first.
    newer = [f"manylinux_2_{minor}_{machine}" for minor in range(GLIBC_MINOR, 4, -1)]
    older = [f"manylinux{year}_{machine}" for year in ("2014", "2010", "1")]
    return (*PYTHON_TAGS, *(f"--platform={one}" for one in (*newer, *older, f"linux_{machine}")))


HEADER = """\
# Every wheel of the embedded variant (Python 3.11, Linux x86_64, glibc 2.{glibc}), pinned by
# the sha256 of the one file that is used.  Made from {source} by
#
#     ./inv pin --variant embedded
#
# with the package indexes of this machine's pip configuration.  Extras are those that
# somebody in the set asks for.  Don't edit by hand.
"""


def fetch_wheels(
    workspace: Workspace, requirements: Path, machine: str = MACHINE
) -> dict[str, Path]:
    """Return the pinned wheels by normalised project name, each file's sha256 verified.

    They are kept in the cache; what is missing there or damaged is downloaded
    by pip, with the machine's own pip configuration, in one call.  Raises
    `LockError` where the index serves another file than the pinned one,
    `BuildError` when a download fails.
    """
    pins = read_pins(requirements)
    folder = workspace.cache / "wheels"
    folder.mkdir(parents=True, exist_ok=True)
    files = _find(folder, pins)
    missing = [pin for pin in pins if pin.project not in files]
    if missing:
        files.update(_download(missing, folder, requirements, machine))
    return {pin.project: files[pin.project] for pin in pins}


def pin_wheels(source: Path, requirements: Path) -> tuple[Pin, ...]:
    """Resolve the requirements in `source` and write the pins to `requirements`.

    pip resolves with the markers of the Python that runs it; a set that would
    not be complete on the target is refused with a `LockError`.
    """
    with tempfile.TemporaryDirectory(prefix="strata-pin-") as scratch:
        report = Path(scratch, "report.json")
        arguments = ["install", "--dry-run", "--ignore-installed", f"--target={scratch}/unused"]
        arguments += [f"--report={report}", f"--requirement={source}", *target(MACHINE)]
        try:
            run_pip(arguments, where=str(source))
        except StrataError:
            run_pip(arguments, where=str(source), torch_index=True)
        pins = pins_of_report(json.loads(report.read_text()), str(source))
    new = requirements.with_name(f".{requirements.name}.new")
    header = HEADER.format(glibc=GLIBC_MINOR, source=source.name)
    new.write_text(header + "".join(map(str, pins)))
    new.replace(requirements)
    return pins


def pins_of_report(report: dict[str, Any], where: str) -> tuple[Pin, ...]:
    """Return the pins, by name, that pip's installation report stands for.

    Raises `LockError` when the set is not complete on the target or when an
    index gave no sha256.
    """
    items: dict[str, Any] = {
        canonicalize_name(item["metadata"]["name"]): item for item in report["install"]
    }
    versions = {name: item["metadata"]["version"] for name, item in items.items()}
    requires = {n: item["metadata"].get("requires_dist", []) for n, item in items.items()}
    extras = asked_extras(requires, {n: i.get("requested_extras", ()) for n, i in items.items()})
    hashes = {
        name: item["download_info"].get("archive_info", {}).get("hashes", {}).get("sha256")
        for name, item in items.items()
    }
    problems = [
        Problem(where=where, what=what, fix="pin with CPython 3.11 on Linux x86_64")
        for what in unmet(requires, extras, versions)
    ] + [
        Problem(where=where, what=f"the index gave no sha256 for {name}", fix="use another index")
        for name, sha256 in hashes.items()
        if not sha256
    ]
    if problems:
        raise LockError(*problems)
    return tuple(
        Pin(project=name, version=versions[name], extras=extras[name], sha256=hashes[name])
        for name in sorted(items)
    )


def sha256_of(file: Path) -> str:
    """Return the sha256 of a file's content in hexadecimal."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _find(folder: Path, pins: Iterable[Pin]) -> dict[str, Path]:
    """Return the files in a folder that are the pinned ones, by project."""
    wanted = {(pin.project, Version(pin.version)): pin for pin in pins}
    found = {}
    for file in sorted(folder.glob("*.whl")):
        try:
            name, version, _, _ = parse_wheel_filename(file.name)
        except InvalidWheelFilename:
            continue  # not one of ours: pip would not have downloaded it
        pin = wanted.get((name, version))
        if pin is not None and sha256_of(file) == pin.sha256:
            found[pin.project] = file
    return found


def _download(
    missing: Sequence[Pin], folder: Path, requirements: Path, machine: str
) -> dict[str, Path]:
    with tempfile.TemporaryDirectory(prefix=".new-", dir=folder) as scratch:
        wanted = Path(scratch, "wanted.txt")
        wanted.write_text("".join(map(str, missing)))
        arguments = ["download", "--no-deps", "--require-hashes", "--no-cache-dir"]
        arguments += [f"--dest={scratch}", f"--requirement={wanted}", *target(machine)]
        print(f"+ pip download: {len(missing)} wheels", file=sys.stderr, flush=True)
        try:
            run_pip(arguments, where=str(requirements))
        except StrataError as first:
            if isinstance(first, LockError) or all(pin.project != "torch" for pin in missing):
                raise
            run_pip(arguments, where=str(requirements), torch_index=True)
        found = _find(Path(scratch), missing)
        lost = [pin.project for pin in missing if pin.project not in found]
        if lost:
            what = f"pip ended well but left no pinned wheel of {', '.join(lost)}"
            raise BuildError.at(str(requirements), what, "run it again")
        for project, file in found.items():
            found[project] = file.replace(folder / file.name)
    return found


def run_pip(arguments: Sequence[str], *, where: str, torch_index: bool = False) -> None:
    """Run our own interpreter's pip; tell a wrong file from a failed download.

    Raises `LockError` for another file than the pinned one, else `BuildError`.
    What pip said is in them, without the secrets of addresses: pip itself hides
    passwords, and no `/t/TOKEN/`.
    """
    index = [f"--extra-index-url={TORCH_CPU_INDEX}"] if torch_index else []
    options = ["--no-input", "--disable-pip-version-check", "--quiet", "--progress-bar=off"]
    try:
        run(
            [sys.executable, "-m", "pip", *arguments, *options, *index],
            error=BuildError,
            where=where,
            fix="check that `pip download numpy` works on this machine, and run it again",
            timeout=DOWNLOAD_TIMEOUT,
            quiet=True,
        )
    except BuildError as failed:
        kind = LockError if "DO NOT MATCH THE HASHES" in str(failed) else BuildError
        raise kind(*(replace(one, what=mask(one.what)) for one in failed.problems)) from None
