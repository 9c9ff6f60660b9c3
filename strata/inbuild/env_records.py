"""The records in `conda-meta`, and the compiled modules that go into them."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FAILED = 4
# Where rattler unpacked a package: differs from run to run, and is gone afterwards.
CACHE_KEYS = ("extracted_package_dir", "link", "package_tarball_full_path")


class InstallError(Exception):
    """The installation can't go on: exit code, reason, way out."""

    def __init__(self, exit_code: int, what: str, fix: str) -> None:
        """Keep the exit code; the text is the two lines that people see."""
        super().__init__(f"{what}\n  fix: {fix}")
        self.exit_code = exit_code


def read(prefix: Path) -> dict[str, Path]:
    """Return the records of a prefix: package name -> file."""
    records: dict[str, Path] = {}
    for path in sorted((prefix / "conda-meta").glob("*.json")):
        records[json.loads(path.read_text(encoding="utf-8"))["name"]] = path
    return records


def compile_modules(prefix: Path, names: set[str], jobs: int) -> dict[str, str]:
    """Compile the packages' modules with the prefix's own Python.

    Returns module -> compiled file, both relative to the prefix.  Modules are
    the `.py` files below `lib/pythonX.Y`; what isn't there is never imported.
    Files that are no valid Python are named and left alone.
    """
    records = read(prefix)
    packages = [_modules(records[name]) for name in sorted(names)]
    python = prefix / "bin" / "python"
    if not any(packages):
        return {}
    if not python.exists():
        raise InstallError(
            FAILED,
            f"{prefix}: there are Python modules and no {python} to compile them",
            "put python into this layer's environment.yml, or into a lower layer's",
        )
    program = Path(__file__).with_name("compile_env.py")
    # No site, no user site, no PYTHON* but the hash seed: nothing from outside
    # may decide what the compiler has in memory.
    done = subprocess.run(  # noqa: S603 - our own program, no shell
        [str(python), "-s", "-S", "-B", "-W", "ignore", str(program), str(jobs)],
        input=json.dumps([[str(prefix / path) for path in paths] for paths in packages]),
        stdout=subprocess.PIPE,
        text=True,
        env={"LC_ALL": "C.UTF-8", "PATH": os.defpath, "PYTHONHASHSEED": "0"},
        check=False,
    )
    if done.returncode != 0:
        raise InstallError(
            FAILED, f"{program} ended with {done.returncode}", "see its message above"
        )
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


def normalise(prefix: Path, entries: list[dict[str, str]], compiled: dict[str, str]) -> None:
    """Rewrite the packages' records so that they are alike in every build.

    No cache paths, the lock's URL, mode 0644, and the compiled modules among
    the files, so that removing a package removes them too.
    """
    records = read(prefix)
    for entry in entries:
        path = records[entry["name"]]
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        for key in CACHE_KEYS:
            record.pop(key, None)
        record["url"] = entry["url"]
        record["channel"] = entry["url"].rsplit("/", 2)[0]
        record["md5"], record["sha256"] = entry["md5"], entry["sha256"]
        paths = {item["_path"]: item for item in record["paths_data"]["paths"]}
        for module in list(paths):
            if module in compiled:
                own = compiled[module]
                paths[own] = {"_path": own, "path_type": "pyc_file"}
        record["paths_data"]["paths"] = [paths[name] for name in sorted(paths)]
        record["files"] = sorted(paths.keys() | set(record["files"]))
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
