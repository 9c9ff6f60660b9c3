"""Compile what was just installed into a prefix, and make its records alike in every build.

    python3 finish_env.py SLICE.json PREFIX EPOCH

`install_env.py` runs it.  It compiles the packages' modules with the prefix's
own Python, rewrites their records in `conda-meta`, and adds them to
`conda-meta/history` at EPOCH (seconds since 1970).  Exits with 0, or with 4
and the reason.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

FAILED = 4
# Where rattler unpacked a package: differs from run to run, and is gone afterwards.
CACHE_KEYS = ("extracted_package_dir", "link", "package_tarball_full_path")
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class FinishError(Exception):
    """The reason why it can't be done, and the way out."""

    def __init__(self, what: str, fix: str) -> None:
        """Keep the two lines that people see."""
        super().__init__(f"error: {what}\n  fix: {fix}")


def main(argv: list[str]) -> int:
    """Run the program and return its exit code."""
    slice_path, prefix, epoch = Path(argv[0]), Path(argv[1]), int(argv[2])
    entries = json.loads(slice_path.read_text(encoding="utf-8"))["packages"]
    os.umask(0o022)
    start = time.monotonic()
    try:
        compiled = compile_modules(prefix, entries, jobs=len(os.sched_getaffinity(0)))
    except FinishError as failure:
        print(failure, file=sys.stderr)
        return FAILED
    seconds = time.monotonic() - start
    print(f"install_env: compiled {len(compiled)} modules in {seconds:.1f} s", flush=True)
    for script in link_scripts(prefix, entries):
        print(f"install_env: not run: {script}", flush=True)
    normalise(prefix, entries, compiled)
    append_history(prefix, entries, epoch)
    return 0


def record_path(prefix: Path, entry: dict[str, str]) -> Path:
    """Return where a package's record is."""
    return prefix / "conda-meta" / f"{entry['name']}-{entry['version']}-{entry['build']}.json"


def compile_modules(prefix: Path, entries: list[dict[str, str]], jobs: int) -> dict[str, str]:
    """Compile the packages' modules with the prefix's own Python.

    Returns module -> compiled file, both relative to the prefix.  Modules are
    the `.py` files below `lib/pythonX.Y`; what isn't there is never imported.
    Files that are no valid Python are named and left alone.
    """
    packages = [_modules(record_path(prefix, entry)) for entry in entries]
    if not any(packages):
        return {}
    python = prefix / "bin" / "python"
    if not python.exists():
        raise FinishError(
            f"{prefix}: there are Python modules and no {python} to compile them",
            "put python into this layer's environment.yml, or into a lower layer's",
        )
    program = Path(__file__).with_name("compile_env.py")
    # No site, no user site, no PYTHON* but the hash seed: nothing from outside
    # may decide what the compiler has in memory.
    done = subprocess.run(
        [str(python), "-s", "-S", "-B", "-W", "ignore", str(program), str(jobs)],
        input=json.dumps([[str(prefix / path) for path in paths] for paths in packages]),
        stdout=subprocess.PIPE,
        text=True,
        env={"LC_ALL": "C.UTF-8", "PATH": os.defpath, "PYTHONHASHSEED": "0"},
        check=False,
    )
    if done.returncode != 0:
        raise FinishError(f"{program} ended with {done.returncode}", "see its message above")
    outcome: dict[str, Any] = json.loads(done.stdout)
    for path, reason in outcome["invalid"]:
        print(f"install_env: not compiled: {path}: {reason}", flush=True)
    return {
        os.path.relpath(module, prefix): os.path.relpath(compiled, prefix)
        for module, compiled in outcome["compiled"]
    }


def _modules(record: Path) -> list[str]:
    files: list[str] = json.loads(record.read_text(encoding="utf-8"))["files"]
    return sorted(path for path in files if path.startswith("lib/python") and path.endswith(".py"))


def link_scripts(prefix: Path, entries: list[dict[str, str]]) -> list[str]:
    """Return the packages' post-link scripts, which nobody ran."""
    return [
        path
        for entry in entries
        for path in json.loads(record_path(prefix, entry).read_text(encoding="utf-8"))["files"]
        if path.startswith("bin/.") and path.endswith("-post-link.sh")
    ]


def normalise(prefix: Path, entries: list[dict[str, str]], compiled: dict[str, str]) -> None:
    """Rewrite the packages' records so that they are alike in every build.

    No cache paths, the lock's URL and hashes, mode 0644, and the compiled
    modules among the files, so that removing a package removes them too.  Of a
    file that is the same in two packages, the one that rattler put aside is gone.
    """
    for entry in entries:
        path = record_path(prefix, entry)
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for key in CACHE_KEYS:
            record.pop(key, None)
        record["url"] = entry["url"]
        record["channel"] = entry["url"].rsplit("/", 2)[0]
        record["md5"], record["sha256"] = entry["md5"], entry["sha256"]
        aside = {}
        for item in record["paths_data"]["paths"]:
            if original := item.pop("original_path", None):
                aside[item["_path"]] = original
                item["_path"] = original
        paths = {item["_path"]: item for item in record["paths_data"]["paths"]}
        for module in list(paths):
            if module in compiled:
                own = compiled[module]
                paths[own] = {"_path": own, "path_type": "pyc_file"}
        record["paths_data"]["paths"] = [paths[name] for name in sorted(paths)]
        files = {aside.get(file, file) for file in record["files"]}
        record["files"] = sorted(paths.keys() | files)
        fresh = path.with_name(f".{path.name}.new")
        fresh.write_text(json.dumps(record, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        fresh.chmod(0o644)
        fresh.replace(path)


def append_history(prefix: Path, entries: list[dict[str, str]], epoch: int) -> None:
    """Add the packages to `conda-meta/history`, in conda's own form."""
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(epoch))
    lines = [f"==> {when} <==", "# cmd: strata install_env"]
    for entry in entries:
        channel = entry["url"].rsplit("/", 1)[0]
        lines.append(f"+{channel}::{entry['name']}-{entry['version']}-{entry['build']}")
    path = prefix / "conda-meta" / "history"
    with path.open("a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    path.chmod(0o644)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
