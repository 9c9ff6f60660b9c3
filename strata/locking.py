"""Solves, checks and pins the variants' locks."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from strata.errors import DefinitionError, LockError
from strata.load import load, select
from strata.lock import check_lock, lock_inputs, solve_lock
from strata.lock.document import shown
from strata.lock.urls import base_of
from strata.model import PLATFORMS
from strata.upstream.mirrors import read_mirrors, with_variables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strata.lock import LockInputs, Solved
    from strata.model import Project, Variant
    from strata.workspace import Workspace

WHEELS = "wheels.txt"


def variant_inputs(project: Project, variant: Variant) -> LockInputs:
    """Return all that decides a variant's lock.

    Raises `DefinitionError` with all problems of its files, and where
    `sources.toml` and `pins.yml` don't name the same platforms.
    """
    inputs = lock_inputs(project.environments(variant), variant.pins, project.lacking(variant))
    sources = {PLATFORMS[platform] for platform in variant.platforms}
    if differing := sorted(sources ^ set(inputs.platforms)):
        raise DefinitionError.at(
            inputs.places["platforms"],
            f"the platforms are {', '.join(inputs.platforms)}, and those of"
            f" {shown(variant.folder / 'sources.toml')} are {', '.join(variant.platforms)}:"
            f" {', '.join(differing)} stands in one of them only",
            f"name the same platforms in both, then ./inv lock --variant {variant.name}",
        )
    return inputs


def check_locks(workspace: Workspace, variants: Sequence[str]) -> None:
    """Say of each lock whether it is current; raises `LockError` with all problems."""
    project = load(workspace.root)
    problems = []
    for variant in select("variant", variants, project.variants):
        found = check_lock(variant.lock, variant_inputs(project, variant))
        if not found:
            print(f"{variant.lock.relative_to(workspace.root)} is current")
        problems += found
    if problems:
        raise LockError(*problems)


@dataclass(frozen=True, kw_only=True)
class LockOptions:
    """How locks are solved.

    `channel` is a folder or a URL that stands for the variants' public channel;
    `newest` is the time after which no package may have been built; `markdown`
    is a file that gets the table of changes.
    """

    channel: str = ""
    newest: datetime | None = None
    markdown: Path | None = None
    dry_run: bool = False


def cooled(days: str, now: datetime) -> datetime | None:
    """Return the time before which a package must have been built; None for zero days.

    Raises `DefinitionError` for what is no number of days.
    """
    try:
        count = int(days) if days.isdecimal() else -1
        newest = now - timedelta(days=count)
    except (OverflowError, ValueError):  # before the year 1, or too many digits for a number
        count = -1
    if count < 0:
        raise DefinitionError.at(
            f"--cooldown {days}", "is no number of days", "write a whole number; 0 takes the newest"
        )
    return newest if count else None


def solve_locks(workspace: Workspace, variants: Sequence[str], options: LockOptions) -> None:
    """Solve each variant and write its lock, saying what changed; then `locks/README.md`."""
    from strata.lock.overview import write_overview  # noqa: PLC0415 - seldom needed
    from strata.lock.report import markdown_changes, print_changes  # noqa: PLC0415 - seldom needed

    project = load(workspace.root)
    chosen = select("variant", variants, project.variants)
    if options.channel and all(_is_made_here(variant) for variant in chosen):
        raise DefinitionError.at(
            f"--channel {options.channel}",
            "the variant makes its channel on the spot, and takes no other",
            "leave --channel out",
        )
    if options.markdown:
        _refuse_unwritable(options.markdown)
    texts = []
    for variant in chosen:
        solved = _solve(workspace, project, variant, options)
        print_changes(str(variant.lock.relative_to(workspace.root)), solved)
        texts.append(markdown_changes(variant.name, solved))
    if options.markdown:
        options.markdown.write_text("\n".join(texts), encoding="utf-8")
    if not options.dry_run and write_overview(project, workspace.root / "locks"):
        print("locks/README.md is written anew")


def _refuse_unwritable(file: Path) -> None:
    """Raise `DefinitionError` where a file can't be written, before anything else is."""
    if file.is_dir() or not os.access(file if file.exists() else file.parent, os.W_OK):
        raise DefinitionError.at(
            f"--markdown {file}", "cannot be written", "name a file in a folder that is there"
        )


def _solve(
    workspace: Workspace, project: Project, variant: Variant, options: LockOptions
) -> Solved:
    inputs = variant_inputs(project, variant)
    canonical = inputs.channels[0]
    folder, mirror, newest = None, None, options.newest
    if _is_made_here(variant):
        from strata.embedded.channel import make_channel  # noqa: PLC0415 - seldom needed

        folder = make_channel(workspace, variant.folder, variant.epoch)
        newest = None  # its wheels are pinned, and its packages have the variant's own time
    elif options.channel and "://" not in options.channel:
        folder = Path(options.channel).expanduser().absolute()
    else:
        mirror = _mirror_of(canonical, options.channel)
    for channel in inputs.channels:
        if channel != canonical or not (folder or mirror):
            with_variables(channel, os.environ, inputs.places["channels"])
    return solve_lock(
        inputs,
        folder,
        canonical,
        variant.lock,
        mirror_url=mirror,
        newest=newest,
        cache=workspace.cache / "index",
        dry_run=options.dry_run,
    )


def _mirror_of(canonical: str, wanted: str) -> str | None:
    """Return the URL that stands for a channel: the wanted one, or that of mirrors.toml.

    Its `$VAR` stay as they are, so that no file holds their values; one that is
    not set is a `DefinitionError`.
    """
    place = wanted or read_mirrors(os.environ).package_url(base_of(canonical))
    with_variables(place, os.environ, "--channel" if wanted else "mirrors.toml")
    return None if place == base_of(canonical) else place


def _is_made_here(variant: Variant) -> bool:
    return (variant.folder / WHEELS).is_file()


def pin_variant(workspace: Workspace, name: str, *, dry_run: bool) -> None:
    """Pin the newest wheels of a variant that is made from wheels.

    Raises `DefinitionError` for a variant that has none.
    """
    from strata.embedded.wheels import pin_wheels  # noqa: PLC0415 - seldom needed

    project = load(workspace.root)
    (variant,) = select("variant", [name], project.variants)
    if not (variant.folder / "wheels.in").is_file():
        raise DefinitionError.at(
            f"locks/{name}", "has no wheels.in, so there is nothing to pin", "./inv list"
        )
    if dry_run:
        print(f"would pin {variant.folder / 'wheels.in'} into {variant.folder / WHEELS}")
        return
    pin_wheels(variant.folder / "wheels.in", variant.folder / WHEELS)
    print(f"pinned {variant.folder / WHEELS}; now ./inv lock --variant {name}")
