"""Install a slice of a lock into a prefix, with no network and bit for bit alike.

    python3 install_env.py --slice SLICE.json --packages DIR --prefix /opt/env --cache DIR

Runs as root inside an image build, on the base's Python (3.9 or later) with
py-rattler on PYTHONPATH.  It needs nothing else, and nothing of strata.

- SLICE.json is what `strata.lock.slice_document` writes; DIR holds the packages,
  as `DIR/SUBDIR/FILE` or `DIR/FILE`.
- Each package's sha256 is compared with the slice before anything is installed.
- What lower layers installed must not change: every file of theirs is compared
  before and after.
- The package cache should lie on the prefix's file system: files are hard-linked
  then, not copied.  It is removed at the end.
- Post-link scripts don't run; packages that have one are named.

Exit codes: 0 done, 2 bad arguments, 3 the slice or a package is not what it
should be, 4 the installation failed.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import os
import shutil
import subprocess
import sys
import traceback
from pathlib import Path

SCHEMA = "strata.slice/1"
# These tell of all layers, so each layer writes them anew.
SHARED = frozenset({"conda-meta/history", "conda-meta/pip-constraints.txt"})
BAD_SLICE, FAILED = 3, 4
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Snapshot = dict[str, tuple[int, ...]]


class InstallError(Exception):
    """The installation can't go on: exit code, reason, way out."""

    def __init__(self, exit_code: int, what: str, fix: str) -> None:
        """Keep the exit code; the text is the two lines that people see."""
        super().__init__(f"error: {what}\n  fix: {fix}")
        self.exit_code = exit_code


def main(argv: list[str]) -> int:
    """Run the program and return its exit code."""
    options = _parser().parse_args(argv)
    os.umask(0o022)
    try:
        install(options.slice, options.packages, options.prefix, options.cache, options.epoch)
    except InstallError as failure:
        print(failure, file=sys.stderr)
        return failure.exit_code
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Install a slice of a lock into a prefix.")
    parser.add_argument("--slice", type=Path, required=True, help="the slice, a JSON file")
    parser.add_argument("--packages", type=Path, required=True, help="folder of the packages")
    parser.add_argument("--prefix", type=Path, required=True, help="the environment")
    parser.add_argument("--cache", type=Path, required=True, help="folder to make and remove")
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "0")
    parser.add_argument("--epoch", type=int, default=epoch, help="seconds, for the history")
    return parser


def install(slice_path: Path, packages: Path, prefix: Path, cache: Path, epoch: int) -> None:
    """Verify, install, compile, normalise; raise `InstallError` where that fails."""
    entries = read_slice(slice_path)
    archives = verify(entries, packages)
    say(f"verified {len(entries)} packages")
    if cache.exists() and any(cache.iterdir()):
        raise InstallError(2, f"{cache}: is not empty, and it gets removed", "name a new folder")
    before = snapshot(prefix)
    try:
        link(archives, prefix, cache)
    finally:
        shutil.rmtree(cache, ignore_errors=True)
    if "CACHEDIR.TAG" not in before:  # rattler's mark; an environment is no cache
        (prefix / "CACHEDIR.TAG").unlink(missing_ok=True)
    refuse_changes(prefix, before)
    say(f"installed {len(entries)} packages")
    finish(slice_path, prefix, epoch)
    refuse_changes(prefix, before)
    say("done")


def say(what: str) -> None:
    """Print a line of progress."""
    print(f"install_env: {what}", flush=True)


def read_slice(path: Path) -> list[dict[str, str]]:
    """Return the entries of a slice."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as failure:
        raise InstallError(BAD_SLICE, f"{path}: {failure}", "write the slice anew") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise InstallError(BAD_SLICE, f"{path}: is not a {SCHEMA} document", "write it anew")
    return list(document["packages"])


def verify(entries: list[dict[str, str]], packages: Path) -> dict[str, Path]:
    """Compare each package's sha256 with the slice; return name -> file."""
    archives: dict[str, Path] = {}
    wrong: list[str] = []
    for entry in entries:
        places = [packages / entry["subdir"] / entry["filename"], packages / entry["filename"]]
        found = next((place for place in places if place.is_file()), None)
        if found is None:
            wrong.append(f"{entry['name']}: there is no file {entry['filename']} in {packages}")
            continue
        digest = sha256(found)
        if digest != entry["sha256"]:
            wrong.append(
                f"{entry['name']}: {found} is not the package of the lock\n"
                f"    expected sha256 {entry['sha256']}\n"
                f"    found    sha256 {digest}"
            )
        archives[entry["name"]] = found
    if wrong:
        raise InstallError(
            BAD_SLICE, "\nerror: ".join(wrong), "fetch or make the packages again, or lock anew"
        )
    return archives


def sha256(path: Path) -> str:
    """Return a file's sha256 in hex digits."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def link(archives: dict[str, Path], prefix: Path, cache: Path) -> None:
    """Let rattler unpack the packages and link them into the prefix."""
    try:
        import rattler  # noqa: PLC0415 - what goes before needs no rattler, and is tested without
    except ImportError as failure:
        what = f"py-rattler can't be imported: {failure}"
        raise InstallError(FAILED, what, "put it on PYTHONPATH") from None

    async def work() -> None:
        # A record made from the archive has a file:// URL: nothing asks a network.
        records: list[Any] = [
            await rattler.RepoDataRecord.from_package_archive(archive.resolve())
            for archive in archives.values()
        ]
        await rattler.install(
            installed + records,
            prefix,
            cache_dir=cache,
            execute_link_scripts=False,
            show_progress=False,
        )

    try:
        installed: list[Any] = [
            rattler.PrefixRecord.from_path(path)
            for path in sorted((prefix / "conda-meta").glob("*.json"))
        ]
        twice = archives.keys() & {record.name.normalized for record in installed}
        if not twice:
            asyncio.run(work())
    except Exception as failure:
        raise InstallError(FAILED, f"{prefix}: {failure}", "see the reason above") from failure
    if twice:
        raise InstallError(
            BAD_SLICE,
            f"{prefix} has {', '.join(sorted(twice))} already",
            "a lower layer has them: the slice is not one of this image",
        )


def finish(slice_path: Path, prefix: Path, epoch: int) -> None:
    """Settle clashes, compile, normalise and protect the prefix, in programs without rattler."""
    clashes, protect = ["clash_env.py", str(prefix)], ["protect_env.py", str(prefix)]
    whole = ["finish_env.py", str(slice_path), str(prefix), str(epoch)]
    for name, *arguments in (clashes, whole, protect):
        argv = [sys.executable, "-B", str(Path(__file__).with_name(name)), *arguments]
        code = subprocess.run(argv, check=False).returncode
        if code != 0:
            raise InstallError(FAILED, f"{name} ended with {code}", "see its message above")


def snapshot(prefix: Path) -> Snapshot:
    """Return what would tell that a file was touched, for every file in the prefix."""
    found: Snapshot = {}
    for folder, _, names in os.walk(prefix):
        for name in names:
            path = os.path.join(folder, name)  # noqa: PTH118 - a Path per file costs seconds
            stat = os.lstat(path)
            times = (stat.st_mtime_ns, stat.st_ctime_ns)
            found[os.path.relpath(path, prefix)] = (stat.st_ino, stat.st_mode, stat.st_size, *times)
    return found


def refuse_changes(prefix: Path, before: Snapshot) -> None:
    """Fail where a file that was there before has changed or is gone."""
    now = snapshot(prefix)
    changed = sorted(path for path in before.keys() - SHARED if now.get(path) != before[path])
    if changed:
        first = ", ".join(changed[:5])
        raise InstallError(
            FAILED,
            f"{prefix}: {len(changed)} files of lower layers changed: {first}",
            "a layer only adds files: find out which package does this, and leave it out",
        )


if __name__ == "__main__":
    code = FAILED
    try:
        code = main(sys.argv[1:])
    except SystemExit as end:
        code = int(end.code or 0)  # argparse ends with numbers only
    except BaseException:  # noqa: BLE001 - told in full; os._exit must be reached
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    # rattler may crash when the interpreter ends, after its work is done.
    os._exit(code)
