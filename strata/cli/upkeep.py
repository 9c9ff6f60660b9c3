"""Tasks that keep things in order: lock, pin, engine, clean."""

from __future__ import annotations

from typing import Any

from strata.cli.frame import DRY_RUN, VARIANT, strata_task, workspace_of


@strata_task(
    help={
        "variant": VARIANT,
        "check": "only say, offline, whether the lock is current",
        "channel": "a folder or URL to solve against; the lock still names the public channel",
        "cooldown": "take no package built less than so many days ago; not for embedded's wheels",
        "markdown": "write the table of changes to this file, too",
        "dry-run": "solve and say what would change, and write no lock",
    }
)
def lock(  # noqa: PLR0917 - the flags of the task
    c: Any,
    variant: str = "",
    check: bool = False,
    channel: str = "",
    cooldown: str = "7",
    markdown: str = "",
    dry_run: bool = False,
) -> None:
    """Solve a variant's environments and write its lock; without a variant, all of them."""
    from datetime import UTC, datetime
    from pathlib import Path

    from strata.locking import LockOptions, check_locks, cooled, solve_locks

    workspace = workspace_of(c)
    variants = [variant] if variant else []
    if check:
        check_locks(workspace, variants)
        return
    options = LockOptions(
        channel=channel,
        newest=cooled(cooldown, datetime.now(UTC)),
        markdown=Path(markdown) if markdown else None,
        dry_run=dry_run,
    )
    solve_locks(workspace, variants, options)


@strata_task(help={"variant": VARIANT, "dry-run": DRY_RUN})
def pin(c: Any, variant: str = "", dry_run: bool = False) -> None:
    """Pin the newest base, installer and wheels of a variant; without a variant, of all."""
    from strata.upstream.pin import pin_variants

    pin_variants(workspace_of(c), [variant] if variant else [], dry_run=dry_run)


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
