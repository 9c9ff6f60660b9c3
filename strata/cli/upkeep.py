"""Tasks that keep things in order: lock, pin, engine, clean."""

from __future__ import annotations

from typing import Any

from strata.cli.frame import DRY_RUN, VARIANT, strata_task, workspace_of


@strata_task(
    help={
        "variant": VARIANT,
        "check": "only say, offline, whether the lock is current",
        "dry-run": DRY_RUN,
    }
)
def lock(c: Any, variant: str = "", check: bool = False, dry_run: bool = False) -> None:
    """Solve a variant's environments and write its lock; without a variant, all of them."""
    from strata.locking import check_locks, solve_locks

    workspace = workspace_of(c)
    if check or dry_run:
        check_locks(workspace, [variant] if variant else [])
    else:
        solve_locks(workspace, [variant] if variant else [])


@strata_task(help={"variant": VARIANT, "dry-run": DRY_RUN})
def pin(c: Any, variant: str = "embedded", dry_run: bool = False) -> None:
    """Look up newer versions for a variant's own pins (wheels.txt) and write them."""
    from strata.locking import pin_variant

    pin_variant(workspace_of(c), variant, dry_run=dry_run)


@strata_task(
    positional=["action"],
    help={
        "action": "start, stop or status",
        "purge": "with stop: remove its images and caches too",
        "dry-run": DRY_RUN,
    },
)
def engine(c: Any, action: str, purge: bool = False, dry_run: bool = False) -> None:
    """Start, stop or show this project's private engine (STRATA_ENGINE=private)."""
    from strata.cli.private_engine import act

    act(workspace_of(c), action, purge=purge, dry_run=dry_run)


@strata_task(help={"dry-run": DRY_RUN})
def clean(c: Any, dry_run: bool = False) -> None:
    """Empty the cache folder (wheels, channel, base); images and the record stay."""
    from strata.clean import empty_cache

    empty_cache(workspace_of(c), dry_run=dry_run)
