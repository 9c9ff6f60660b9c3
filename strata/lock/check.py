"""Say, offline and at once, what keeps a lock from being used."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from strata.errors import LockError, Problem, closest
from strata.lock.accelerator import accelerator_faults
from strata.lock.document import shown
from strata.lock.families import family_faults
from strata.lock.model import facts_digest, inputs_digest, packages_digest
from strata.lock.read import read_lock, relock
from strata.lock.slice import MissingPackageError, closure, dependencies
from strata.lock.urls import base_of, is_defaults, is_local, mask, secret_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from strata.lock.model import Lock, LockedPackage, LockInputs

SHA256 = re.compile(r"[0-9a-f]{64}\Z")


def check_lock(lock_path: Path, inputs: LockInputs) -> list[Problem]:
    """Return all that is wrong with a lock; nothing means that it can be built from."""
    try:
        lock = read_lock(lock_path)
    except LockError as broken:
        return list(broken.problems)
    stale = list(_stale(lock, inputs))
    problems = [*stale, *_platforms(lock, inputs), *_channels(lock, inputs)]
    for package in lock.packages:
        problems += _package(lock, package, inputs)
    if not stale:  # else the same difference would be told twice
        for platform in inputs.platforms:
            if lock.on(platform):
                problems += _layers(lock, platform, inputs)
                problems += _content(lock, platform, inputs)
        problems += _pins(lock, inputs)
    if not problems:  # else it is told already what was changed
        problems += _altered(lock)
    return problems


def _problem(lock: Lock, what: str, where: str | None = None) -> Problem:
    return Problem(where=where or shown(lock.path), what=mask(what), fix=relock(lock.path))


def _stale(lock: Lock, inputs: LockInputs) -> Iterator[Problem]:
    if not lock.inputs_digest:
        yield _problem(lock, "was not written by strata: it says nothing of what it was solved for")
        return
    if facts_digest(lock.facts) != lock.inputs_digest:
        yield _problem(lock, "its record of what it was solved for was edited by hand")
        return
    if lock.inputs_digest == inputs_digest(inputs):
        return
    now = inputs.facts()
    for fact in sorted(now.keys() | lock.facts.keys()):
        was, is_now = lock.facts.get(fact), now.get(fact)
        if was == is_now:
            continue
        if was is None:
            what = f'{fact} "{is_now}" is new'
        elif is_now is None:
            what = f'{fact} "{was}" is gone'
        elif fact.startswith("sources."):
            what = f"{fact.removeprefix('sources.')} has changed"
        else:
            what = f'{fact} was "{was}" and is "{is_now}"'
        yield _problem(lock, f"the lock is stale: {what}", _place(fact, inputs))


def _altered(lock: Lock) -> Iterator[Problem]:
    """Find what looks right and was not solved: another hash, a merge of two locks."""
    packages = ((p.platform, p.name, p.url, p.sha256) for p in lock.packages)
    if packages_digest(packages) != lock.packages_digest:
        yield _problem(lock, "its packages are not those that were solved: somebody edited them")


def _place(fact: str, inputs: LockInputs) -> str:
    """Return where a fact was read, or the file where it would stand."""
    while fact not in inputs.places and "." in fact:
        fact = fact.rpartition(".")[0]
    return inputs.places.get(fact) or shown(inputs.pins_path)


def _platforms(lock: Lock, inputs: LockInputs) -> Iterator[Problem]:
    solved = {package.platform for package in lock.packages}
    for platform in inputs.platforms:
        is_empty = bool(inputs.on(platform)) and platform not in solved
        if platform not in lock.platforms or is_empty:
            yield _problem(lock, f"holds no packages for {platform}")


def _channels(lock: Lock, inputs: LockInputs) -> Iterator[Problem]:
    allowed = {base_of(channel) for channel in inputs.channels}
    for channel in lock.channels:
        if kind := secret_in(channel):
            yield _problem(lock, f"channel {channel} carries {kind}")
        elif is_defaults(channel):
            yield _problem(lock, f"{channel} is one of the defaults channels")
        elif is_local(channel) or base_of(channel) not in allowed:
            yield _problem(lock, f"channel {channel} is not one of {' '.join(inputs.channels)}")


def _package(lock: Lock, package: LockedPackage, inputs: LockInputs) -> Iterator[Problem]:
    label = f"{package.name} {package.version} ({package.platform})"
    if not SHA256.match(package.sha256):
        yield _problem(lock, f"{label} has no sha256")
    if kind := secret_in(package.url):
        yield _problem(lock, f"{label}: {package.url} carries {kind}")
    elif not any(base_of(package.url).startswith(base_of(channel)) for channel in inputs.channels):
        yield _problem(lock, f"{label}: {package.url} is in none of {' '.join(inputs.channels)}")
    elif package.subdir not in {package.platform, "noarch"}:
        yield _problem(lock, f"{label}: {package.url} is for {package.subdir}")
    if package.category not in inputs.categories:
        known = closest(package.category, inputs.categories)
        yield _problem(lock, f'{label}: no layer has the category "{package.category}"{known}')


def _layers(lock: Lock, platform: str, inputs: LockInputs) -> Iterator[Problem]:
    """Check that no layer needs what only a higher layer brings."""
    packages = lock.on(platform)
    depends = dependencies(packages.values())
    rank = {category: height for height, category in enumerate(inputs.categories)}
    for environment in inputs.on(platform):
        height = rank[environment.category]
        try:
            needed = closure(depends, environment.roots)
        except MissingPackageError as missing:
            yield _problem(lock, f"{platform}: {missing}", shown(environment.path))
            continue
        for name in sorted(needed):
            category = packages[name].category
            if rank.get(category, height) > height:
                yield _problem(
                    lock,
                    f"{platform}: {environment.category} needs {name}, "
                    f"which the lock gives to the higher layer {category}",
                )


def _content(lock: Lock, platform: str, inputs: LockInputs) -> Iterator[Problem]:
    """Check that the packages are for the accelerator, and get on with each other."""
    packages = lock.on(platform)
    for fault in accelerator_faults(packages, inputs, platform):
        yield _problem(lock, f"{platform}: {fault}")
    for fault in family_faults(packages):
        yield _problem(lock, f"{platform}: {fault}")


def _pins(lock: Lock, inputs: LockInputs) -> Iterator[Problem]:
    """Check that every pin pins something: a name with a slip of the pen pins nothing."""
    names = {package.name for package in lock.packages}
    for name, spec in inputs.pins.items():
        if name not in names:
            yield Problem(
                where=_place(f"pins.{name}", inputs),
                what=f"the pin {name} {spec} pins nothing that is needed{closest(name, names)}",
                fix="correct the name, or take the pin out",
            )
