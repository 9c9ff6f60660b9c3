"""Solve a variant's environments and write its lock."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from strata.errors import BuildError, DefinitionError, LockError
from strata.lock.changes import Solved, compare
from strata.lock.check import check_lock
from strata.lock.document import shown
from strata.lock.model import ANY_VERSION, inputs_digest
from strata.lock.read import DIGEST_KEY, FACT_PREFIX, read_lock, relock
from strata.lock.urls import mask
from strata.run import run

if TYPE_CHECKING:
    from datetime import datetime

    from strata.errors import StrataError
    from strata.lock.changes import Order
    from strata.lock.model import Lock, LockInputs

SOLVE_TIMEOUT = 900.0  # seconds; a GPU variant for two platforms takes about 60
# What each kind of the solver's problems is for us, and what to do about it.
FAILURES: dict[str, tuple[type[StrataError], str]] = {
    "specs": (LockError, "change the specs or the pins, then {}"),
    "address": (DefinitionError, "write a URL, or the path of a folder"),
    "folder": (LockError, "index that folder anew, or name another one: --channel DIR"),
    "network": (BuildError, "check the network, or name a mirror: docs/mirrors.md"),
}


def solve_lock(
    inputs: LockInputs,
    channel_dir: Path | None,
    canonical_url: str,
    out: Path,
    *,
    mirror_url: str | None = None,
    newest: datetime | None = None,
    cache: Path | None = None,
    dry_run: bool = False,
) -> Solved:
    """Solve all layers together, once per platform, and write the lock to `out`.

    `channel_dir` is a folder, or `mirror_url` another server, that stands for
    the channel `canonical_url`; the lock carries that URL and never theirs.
    Without them, all channels are read from where they are, and `cache` keeps
    their index.  No package is taken that says it was built after `newest`.
    The same inputs and channel give the same
    bytes.  A lock that is there stays untouched until a good one takes its
    place, and with `dry_run` for ever.

    Raises `LockError` when there is no solution, the folder is no channel or the
    solver fails, `BuildError` when a channel can't be asked, `DefinitionError`
    when `canonical_url` is not one of the channels or a pin pins nothing.
    """
    if (channel_dir or mirror_url) and canonical_url not in inputs.channels:
        raise DefinitionError.at(
            inputs.places.get("channels", shown(inputs.pins_path)),
            f'the channel that is made here, "{canonical_url}", is not among the channels',
            f"add - {canonical_url}",
        )
    if channel_dir is not None:
        _refuse_empty(channel_dir, inputs.platforms, out)
    before = _lock_before(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    # Beside the lock, so that the last step is one rename on one file system.
    with tempfile.TemporaryDirectory(prefix=".lock-", dir=out.parent) as scratch:
        fresh = Path(scratch) / out.parent.name / out.name
        fresh.parent.mkdir()
        request = _request(inputs, fresh, out) | {
            "before": _versions(before),
            "cache": str(cache or Path(scratch) / "index"),
            "canonical_url": canonical_url,
            "channel_dir": str(channel_dir) if channel_dir else None,
            "mirror_url": mirror_url,
            "newest": newest.timestamp() if newest else None,
        }
        order = _solve(request, fresh, out)
        problems = check_lock(fresh, inputs)
        if any(problem.where.startswith(shown(fresh)) for problem in problems):
            raise LockError(*problems)
        if problems:
            raise DefinitionError(*problems)
        after = read_lock(fresh)
        if not dry_run:
            fresh.chmod(0o644)
            fresh.replace(out)
    return Solved(before=before, after=after, changes=compare(before, after, order))


def _refuse_empty(channel_dir: Path, platforms: tuple[str, ...], out: Path) -> None:
    for platform in platforms:
        files = [channel_dir / name / "repodata.json" for name in (platform, "noarch")]
        if not any(file.is_file() for file in files):
            raise LockError.at(
                str(channel_dir),
                f"is no channel for {platform}: there is no {files[0]}",
                f"{relock(out)} makes the channel again",
            )


def _solve(request: dict[str, object], fresh: Path, out: Path) -> Order:
    question = fresh.with_name("request.json")
    outcome = fresh.with_name("outcome.json")
    question.write_text(json.dumps(request), encoding="utf-8")
    run(
        [sys.executable, "-m", "strata.lock.solver", str(question), str(outcome)],
        error=LockError,
        where=shown(out),
        fix="this is a fault of the solver: report it with the text above",
        env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
        timeout=SOLVE_TIMEOUT,
        quiet=True,
    )
    answer = json.loads(outcome.read_text(encoding="utf-8"))
    if problem := answer["problem"]:
        error, fix = FAILURES[problem["kind"]]
        raise error.at(mask(problem["where"]), mask(problem["what"]), fix.format(relock(out)))
    order: Order = answer["order"]
    return order


def _request(inputs: LockInputs, fresh: Path, out: Path) -> dict[str, object]:
    pins = shown(inputs.pins_path)
    constraints = [
        {"spec": _spec(name, spec), "where": inputs.places.get(f"pins.{name}", pins)}
        for name, spec in sorted(inputs.pins.items())
    ]
    platforms = [
        {
            "subdir": platform,
            "categories": [
                {"name": environment.category, "roots": environment.roots}
                for environment in inputs.on(platform)
            ],
            "specs": [
                {
                    "spec": _spec(name, spec),
                    "where": inputs.places.get(f"environment.{environment.category}.{name}", pins),
                }
                for environment in inputs.on(platform)
                for name, spec in sorted(environment.dependencies.items())
            ],
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
    }


def _spec(name: str, spec: str) -> str:
    return name if spec == ANY_VERSION else f"{name} {spec}"


def _lock_before(out: Path) -> Lock | None:
    """Return the lock that is replaced; a broken one counts as none."""
    if not out.is_file():
        return None
    try:
        return read_lock(out)
    except LockError:
        return None


def _versions(lock: Lock | None) -> dict[str, dict[str, str]]:
    versions: dict[str, dict[str, str]] = {}
    for package in lock.packages if lock else ():
        versions.setdefault(package.platform, {})[package.name] = package.version
    return versions
