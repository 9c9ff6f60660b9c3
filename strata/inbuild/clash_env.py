"""Settle the files that two packages bring: equal ones are one, others are refused.

    python3 clash_env.py PREFIX

`install_env.py` runs it.  Of two files with one name rattler puts one aside, and
which one depends on the order of the packages.  Where both are the same it makes
no difference, and the one aside goes (finish_env.py corrects its package's record).
Exits with 0, or with 4 and the reason.
"""

from __future__ import annotations

import shutil
import stat
import sys
from pathlib import Path

FAILED = 4
ASIDE = "__clobbers__"  # rattler's: ASIDE/PACKAGE/PATH
SHOWN = 5


def main(argv: list[str]) -> int:
    """Run the program and return its exit code."""
    prefix = Path(argv[0])
    aside = prefix / ASIDE
    files = [path.relative_to(aside) for path in sorted(aside.rglob("*")) if not path.is_dir()]
    same = {file for file in files if is_same(aside / file, prefix / inside(file))}
    # finish_env.py compiles modules anew: a compiled one is what its module is.
    same |= {file for file in files if file.suffix == ".pyc" and module_of(file) in same}
    if differing := [file for file in files if file not in same]:
        first = ", ".join(f"{inside(file)} ({file.parts[0]})" for file in differing[:SHOWN])
        print(
            f"error: {prefix}: {len(differing)} files are in two packages: {first}\n"
            "  fix: leave one of the packages out: what an image gets must not depend on"
            " their order",
            file=sys.stderr,
        )
        return FAILED
    for file in files:
        print(f"install_env: the same in two packages: {inside(file)} ({file.parts[0]})")
    if files:
        shutil.rmtree(aside)
    return 0


def inside(file: Path) -> Path:
    """Return the path in the prefix of a file aside (`PACKAGE/PATH`)."""
    return file.relative_to(file.parts[0])


def module_of(file: Path) -> Path:
    """Return the module that `…/__pycache__/NAME.TAG.pyc` was compiled from."""
    return file.parents[1] / f"{file.name.partition('.')[0]}.py"


def is_same(one: Path, other: Path) -> bool:
    """Whether two files are alike in kind, mode and bytes, or links to one target."""
    modes = one.lstat().st_mode, other.lstat().st_mode
    if modes[0] != modes[1]:
        return False
    if stat.S_ISLNK(modes[0]):
        return one.readlink() == other.readlink()
    return one.read_bytes() == other.read_bytes()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
