"""Solves, checks and pins the variants' locks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.errors import DefinitionError, LockError
from strata.load import load, select
from strata.lock import check_lock, lock_inputs, solve_lock

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strata.workspace import Workspace

WHEELS = "wheels.txt"


def check_locks(workspace: Workspace, variants: Sequence[str]) -> None:
    """Say of each lock whether it is current; raises `LockError` with all problems."""
    project = load(workspace.root)
    problems = []
    for variant in select("variant", variants, project.variants):
        found = check_lock(variant.lock, lock_inputs(project.environments(), variant.pins))
        if not found:
            print(f"{variant.lock.relative_to(workspace.root)} is current")
        problems += found
    if problems:
        raise LockError(*problems)


def solve_locks(workspace: Workspace, variants: Sequence[str]) -> None:
    """Solve each variant and write its lock, saying what changed."""
    project = load(workspace.root)
    for variant in select("variant", variants, project.variants):
        inputs = lock_inputs(project.environments(), variant.pins)
        channel = None
        if (variant.folder / WHEELS).is_file():
            from strata.embedded.channel import make_channel  # noqa: PLC0415 - seldom needed

            channel = make_channel(workspace, variant.folder, variant.epoch)
        changes = solve_lock(inputs, channel, inputs.channels[0], variant.lock)
        print(f"{variant.lock.relative_to(workspace.root)}: {len(changes)} changes")
        for change in changes:
            print(f"  {change.platform} {change.name}: {change.before} -> {change.after}")


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
