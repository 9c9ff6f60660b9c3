"""Solve a variant's environments and write its lock."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from strata.errors import DefinitionError, LockError
from strata.lock.check import check_lock
from strata.lock.document import shown
from strata.lock.model import ANY_VERSION, inputs_digest
from strata.lock.read import DIGEST_KEY, FACT_PREFIX, read_lock, relock
from strata.run import run

if TYPE_CHECKING:
    from strata.lock.model import LockedPackage, LockInputs

SOLVE_TIMEOUT = 900.0  # seconds; a GPU variant for two platforms takes about 60


@dataclass(frozen=True, kw_only=True)
class LockChange:
    """One package that a new lock adds, removes or changes on one platform.

    `before` and `after` are `version build`, or None where there is none.  A
    package whose bytes alone changed has the same text on both sides.
    """

    platform: str
    name: str
    before: str | None
    after: str | None


def solve_lock(
    inputs: LockInputs, channel_dir: Path | None, canonical_url: str, out: Path
) -> tuple[LockChange, ...]:
    """Solve all layers together, once per platform, and write the lock to `out`.

    `channel_dir` is a folder that stands for the channel `canonical_url`; the
    lock carries the URL and never the folder.  Without it, all channels are
    read from where they are.  The same inputs and channel give the same bytes.
    A lock that is there stays untouched until a good one takes its place.

    Returns what changed, sorted.  Raises `LockError` when there is no solution
    or the solver fails, `DefinitionError` when `canonical_url` is not one of
    the channels or a pin pins nothing.
    """
    if channel_dir is not None and canonical_url not in inputs.channels:
        raise DefinitionError.at(
            inputs.places.get("channels", shown(inputs.pins_path)),
            f'the channel that is made here, "{canonical_url}", is not among the channels',
            f"add - {canonical_url}",
        )
    if channel_dir is not None:
        _refuse_empty(channel_dir, inputs.platforms, out)
    before = _packages_before(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    # Beside the lock, so that the last step is one rename on one file system.
    with tempfile.TemporaryDirectory(prefix=".lock-", dir=out.parent) as scratch:
        fresh = Path(scratch) / out.parent.name / out.name
        fresh.parent.mkdir()
        _solve(inputs, channel_dir, canonical_url, fresh, out)
        problems = check_lock(fresh, inputs)
        if any(problem.where.startswith(shown(fresh)) for problem in problems):
            raise LockError(*problems)
        if problems:
            raise DefinitionError(*problems)
        after = _table(read_lock(fresh).packages)
        fresh.chmod(0o644)
        fresh.replace(out)
    return _changes(before, after)


def _refuse_empty(channel_dir: Path, platforms: tuple[str, ...], out: Path) -> None:
    for platform in platforms:
        files = [channel_dir / name / "repodata.json" for name in (platform, "noarch")]
        if not any(file.is_file() for file in files):
            raise LockError.at(
                str(channel_dir),
                f"is no channel for {platform}: there is no {files[0]}",
                f"{relock(out)} makes the channel again",
            )


def _solve(
    inputs: LockInputs, channel_dir: Path | None, canonical_url: str, fresh: Path, out: Path
) -> None:
    request = fresh.with_name("request.json")
    outcome = fresh.with_name("outcome.json")
    request.write_text(
        json.dumps(_request(inputs, channel_dir, canonical_url, fresh, out)), encoding="utf-8"
    )
    run(
        [sys.executable, "-m", "strata.lock.solver", str(request), str(outcome)],
        error=LockError,
        where=shown(out),
        fix="this is a fault of the solver: report it with the text above",
        env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        timeout=SOLVE_TIMEOUT,
        quiet=True,
    )
    problem = json.loads(outcome.read_text(encoding="utf-8"))["problem"]
    if problem is not None:
        raise LockError.at(
            problem["where"], problem["what"], f"change the specs or the pins, then {relock(out)}"
        )


def _request(
    inputs: LockInputs, channel_dir: Path | None, canonical_url: str, fresh: Path, out: Path
) -> dict[str, object]:
    pins = shown(inputs.pins_path)
    specs = [
        {
            "spec": _spec(name, spec),
            "where": inputs.places.get(f"environment.{environment.category}.{name}", pins),
        }
        for environment in inputs.environments
        for name, spec in sorted(environment.dependencies.items())
    ]
    constraints = [
        {"spec": _spec(name, spec), "where": inputs.places.get(f"pins.{name}", pins)}
        for name, spec in sorted(inputs.pins.items())
    ]
    platforms = [
        {
            "subdir": platform,
            "virtual_packages": [
                {
                    "name": name,
                    "version": version,
                    "where": inputs.places.get(f"virtual-packages.{platform}.{name}", pins),
                }
                for name, version in sorted(inputs.virtual_packages[platform].items())
            ],
        }
        for platform in sorted(inputs.platforms)
    ]
    digest = inputs_digest(inputs)
    facts = {f"{FACT_PREFIX}{name}": value for name, value in inputs.facts().items()}
    files = [inputs.pins_path, *(environment.path for environment in inputs.environments)]
    return {
        "canonical_url": canonical_url,
        "categories": [
            {"name": environment.category, "roots": environment.roots}
            for environment in inputs.environments
        ],
        "channel_dir": str(channel_dir) if channel_dir else None,
        "channels": list(inputs.channels),
        "constraints": constraints,
        "digest": digest.removeprefix("sha256:"),
        "header": f"# Written by `{relock(out)}`. Don't edit: change pins.yml or a layer's\n"
        "# environment.yml and run that command.\n",
        "metadata": {DIGEST_KEY: digest, **facts},
        "out": str(fresh),
        "pins": pins,
        "platforms": platforms,
        "sources": [os.path.relpath(path, out.parent) for path in files],
        "specs": specs,
    }


def _spec(name: str, spec: str) -> str:
    return name if spec == ANY_VERSION else f"{name} {spec}"


def _packages_before(out: Path) -> dict[tuple[str, str], LockedPackage]:
    """Return the packages of the lock that is replaced; a broken one counts as none."""
    if not out.is_file():
        return {}
    try:
        return _table(read_lock(out).packages)
    except LockError:
        return {}


def _table(packages: tuple[LockedPackage, ...]) -> dict[tuple[str, str], LockedPackage]:
    return {(package.platform, package.name): package for package in packages}


def _changes(
    before: dict[tuple[str, str], LockedPackage], after: dict[tuple[str, str], LockedPackage]
) -> tuple[LockChange, ...]:
    return tuple(
        LockChange(
            platform=platform,
            name=name,
            before=_text(before.get((platform, name))),
            after=_text(after.get((platform, name))),
        )
        for platform, name in sorted(before.keys() | after.keys())
        if _identity(before.get((platform, name))) != _identity(after.get((platform, name)))
    )


def _text(package: LockedPackage | None) -> str | None:
    return f"{package.version} {package.build}" if package else None


def _identity(package: LockedPackage | None) -> tuple[str, ...] | None:
    if package is None:
        return None
    return package.url, package.sha256, package.category
