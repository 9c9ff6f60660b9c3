"""Keep pip and conda from replacing what the lock put into a prefix.

    python3 protect_env.py PREFIX

`install_env.py` runs it, once a layer.  It writes

- `PREFIX/conda-meta/pip-constraints.txt`: each installed Python project at its
  version;
- `PREFIX/pip.conf`, which makes pip obey that file.  pip reads it for this prefix
  only (it is the "site" file of pip's configuration), so an environment of a
  user's own is free.  New packages can be added; one that needs another version
  of a locked package is refused;
- `PREFIX/conda-meta/frozen`, which makes conda and its like refuse to change the
  prefix (CEP 22), with the message in it.

Exits with 0.
"""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import sys
from pathlib import Path

CONSTRAINTS = "conda-meta/pip-constraints.txt"
FROZEN = "conda-meta/frozen"
# Names and versions as pip takes them (PEP 508, PEP 440): one line that it can't read would
# make it refuse the whole file.
NAME = re.compile(r"[A-Z0-9]([A-Z0-9._-]*[A-Z0-9])?", re.IGNORECASE)
VERSION = re.compile(
    r"v?(\d+!)?\d+(\.\d+)*"
    r"([-_.]?(alpha|a|beta|b|preview|pre|c|rc)[-_.]?\d*)?"
    r"(-\d+|[-_.]?(post|rev|r)[-_.]?\d*)?"
    r"([-_.]?dev[-_.]?\d*)?"
    r"(\+[a-z0-9]+([-_.][a-z0-9]+)*)?",
    re.IGNORECASE,
)


def main(argv: list[str]) -> int:
    """Run the program and return its exit code."""
    prefix = Path(argv[0])
    os.umask(0o022)
    lines, unreadable = constraints(prefix)
    for name in unreadable:
        print(f"install_env: pip can't be told to keep {name}", flush=True)
    head = f"# What the lock put into {prefix}.  pip keeps these versions ({prefix}/pip.conf).\n"
    write(prefix / CONSTRAINTS, head + "".join(f"{line}\n" for line in lines))
    write(
        prefix / "pip.conf",
        "# Packages of the lock are not replaced; others may be added.  For other versions\n"
        "# make an environment of your own: this file is not read there.\n"
        f"[install]\nconstraint = {prefix / CONSTRAINTS}\n",
    )
    message = (
        f"{prefix} holds what the lock says, and the image was tested with it. "
        "Make an environment of your own: conda create --name NAME"
    )
    write(prefix / FROZEN, json.dumps({"message": message}) + "\n")
    return 0


def constraints(prefix: Path) -> tuple[list[str], list[str]]:
    """Return `NAME==VERSION` of every installed project, and those that pip couldn't read."""
    # conda-forge's Python brings lib/python3.1, a link to its own folder.
    sites = [
        str(site)
        for site in sorted(prefix.glob("lib/python3.*/site-packages"))
        if not site.parent.is_symlink()
    ]
    lines: list[str] = []
    unreadable: list[str] = []
    for found in importlib.metadata.distributions(path=sites):
        name, version = str(found.metadata["Name"]), str(found.metadata["Version"])
        readable = NAME.fullmatch(name) and VERSION.fullmatch(version)
        (lines if readable else unreadable).append(f"{name}=={version}")
    return sorted(lines, key=str.lower), sorted(unreadable)


def write(path: Path, text: str) -> None:
    """Write a file that anybody may read, unless it is there: lower layers' stay theirs."""
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(text, encoding="utf-8")
    fresh.chmod(0o644)
    fresh.replace(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
