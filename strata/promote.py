"""Promotes tested images to a registry: only what the record says has passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.engine import client, ensure_engine
from strata.errors import Problem, PublishError
from strata.pipeline import record_path
from strata.publish import Candidate, push_images
from strata.record import read_records
from strata.run import run
from strata.tags import immutable_tag

if TYPE_CHECKING:
    from pathlib import Path

    from strata.plan import Plan, PlannedImage
    from strata.publish import Pushed
    from strata.record import ImageRecord
    from strata.workspace import Workspace

SILENCE = 600  # seconds: a slow registry may say nothing for minutes


def promote(workspace: Workspace, plan: Plan, registry: str, *, dry_run: bool) -> list[Pushed]:
    """Push the plan's images under one immutable tag, then move the tag of the variant.

    Raises `PublishError` for every image that has not been built from these
    definitions or has not passed, before anything is sent.
    """
    records = read_records(record_path(workspace))
    problems = [
        problem
        for image in plan.images
        if (problem := unfit(image, records.get((image.variant, image.name))))
    ]
    if problems:
        raise PublishError(*problems)
    commit, is_dirty = commit_of(workspace.root)
    # The day on which the last of them was recorded: the same push has the same tag tomorrow.
    day = max(records[image.variant, image.name].day for image in plan.images)
    tag = immutable_tag(plan.variant.name, day, commit, dirty=is_dirty)
    engine, _ = ensure_engine(workspace)
    sdk = client(engine, timeout=SILENCE)
    try:
        return push_images(
            engine.env,
            sdk,
            [
                Candidate(
                    image=image.name,
                    variant=image.variant,
                    local_ref=image.step.ref,
                    digest=records[image.variant, image.name].digest,
                )
                for image in plan.images
            ],
            registry=registry,
            tag=tag,
            moving_tag=plan.variant.name,
            dry_run=dry_run,
            log=print,
        )
    finally:
        sdk.close()


def unfit(image: PlannedImage, record: ImageRecord | None) -> Problem | None:
    """Return why an image may not be pushed, or None if it may."""
    again = f"./inv build --image {image.name} --variant {image.variant}"
    if record is None:
        return Problem(where=image.ref, what="the record does not know it", fix=again)
    if record.input_digest != f"sha256:{image.step.digest}":
        what = "the definitions changed since it was built"
        return Problem(where=image.ref, what=what, fix=again)
    if not record.has_passed:
        bad = [f"{c.name} {c.verdict}" for c in record.checks if c.verdict != "pass"]
        what = f"its checks did not pass ({', '.join(bad) or 'none was run'})"
        return Problem(where=image.ref, what=what, fix=again)
    return None


def commit_of(root: Path) -> tuple[str, bool]:
    """Return the commit that is checked out ("" outside git), and whether files differ from it.

    Files that git does not track count: those in `layers/` enter images.
    """
    if not (root / ".git").exists():
        return "", True
    commit = _git(root, "rev-parse", "--verify", "HEAD")
    return commit.strip(), bool(_git(root, "status", "--porcelain"))


def _git(root: Path, *words: str) -> str:
    return run(
        ["git", "-C", str(root), *words],
        error=PublishError,
        where="git",
        fix="push from a git clone with a commit: git log -1",
        quiet=True,
    )
