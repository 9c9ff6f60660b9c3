"""Builds the steps that are missing, with one `docker buildx bake` call."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strata.bake import render_bake
from strata.blame import failed_step
from strata.engine.room import check_room
from strata.errors import BuildError, Problem
from strata.resources import measure_resources
from strata.run import run
from strata.store import list_images
from strata.upstream.base import base_context
from strata.upstream.reach import RELAY, open_reach, uses_network

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from strata.engine import Engine
    from strata.plan import Plan, Step
    from strata.record import Resources
    from strata.store import Store
    from strata.upstream.recording import Recording
    from strata.workspace import Workspace


@dataclass(frozen=True, kw_only=True)
class Built:
    """What a build left: each step's image digest, the names built now, and the seconds.

    `resources` is None where there was nothing to build: then nobody waits for it.
    """

    digests: Mapping[str, str]
    new: tuple[str, ...]
    seconds: float
    resources: Resources | None


def missing_steps(plan: Plan, digests: Mapping[str, str]) -> tuple[Step, ...]:
    """Return the steps whose image is not among the engine's, parents first."""
    return tuple(step for step in plan.steps if step.ref not in digests)


def build(workspace: Workspace, engine: Engine, store: Store, plan: Plan) -> Built:
    """Build what is missing and give every image its name.

    Raises `HostError` where the disks have no room for it, and `BuildError`
    naming the layer, the command and the log.
    """
    start = time.monotonic()
    digests = list_images(engine)
    missing = missing_steps(plan, digests)
    if missing:
        check_room(workspace, engine, store.sdk.info())
        _bake(workspace, engine, plan, {step.name for step in missing})
        digests = list_images(engine)
        if lost := missing_steps(plan, digests):
            raise BuildError.at(
                f"layers/{lost[0].layer.name}",
                f"docker buildx bake ended well, but {lost[0].ref} is not in the engine's store",
                "use the engine's own builder: docker buildx use default",
            )
    for image in plan.images:
        if digests.get(image.ref) != digests[image.step.ref]:
            store.tag(image.step.ref, image.ref)
    return Built(
        digests={step.name: digests[step.ref] for step in plan.steps},
        new=tuple(step.name for step in missing),
        seconds=time.monotonic() - start,
        resources=measure_resources(workspace, store) if missing else None,
    )


def bake_path(workspace: Workspace, plan: Plan) -> Path:
    """Return where the bake file of a variant is written."""
    return workspace.build / f"bake-{plan.variant.name}.json"


def record_network(
    workspace: Workspace, engine: Engine, plan: Plan, recording: Recording
) -> tuple[str, ...]:
    """Run the steps that use the network once more, writing down what they fetch.

    All steps' images must be there.  Nothing is kept of the images that are made.
    Returns the steps' names.  Raises `BuildError` naming the layer and the log.
    """
    names = {step.name for step in plan.steps if uses_network(step)}
    if names:
        _bake(workspace, engine, plan, names, recording)
    return tuple(step.name for step in plan.steps if step.name in names)


def _bake(
    workspace: Workspace,
    engine: Engine,
    plan: Plan,
    names: set[str],
    recording: Recording | None = None,
) -> None:
    from strata.contexts import make_contexts  # noqa: PLC0415 - slow to import, seldom needed

    contexts = make_contexts(workspace, plan, names)
    base_ref = None
    if any(step.parent is None for step in plan.steps if step.name in names):
        base_ref = base_context(workspace, plan.variant, plan.platform)
    with open_reach(workspace, engine, recording) as proxy:
        relay, dry = RELAY if proxy else "", recording is not None
        bake = render_bake(plan, names, workspace.root, contexts, base_ref, relay=relay, dry=dry)
        path = bake_path(workspace, plan)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(bake, indent=1) + "\n")
        _run_bake(workspace, engine, plan, {RELAY: proxy})


def _run_bake(workspace: Workspace, engine: Engine, plan: Plan, env: Mapping[str, str]) -> None:
    path = bake_path(workspace, plan)
    on_terminal = sys.stderr.isatty()
    log = workspace.build / "logs" / f"bake-{plan.variant.name}.log"
    progress = "auto" if on_terminal else "plain"
    try:
        run(
            ["docker", "buildx", "bake", "--file", str(path), "--progress", progress],
            error=BuildError,
            where=f"building {plan.variant.name}",
            fix="read the lines above from the first ERROR on",
            # An attestation would wrap each image into an index, with another digest.  And the
            # base, which has no output, would be exported all the same: gzipped at length, and
            # whether the first layer's image takes that blob would be a matter of luck.
            env={
                **engine.env,
                **env,
                "BUILDX_NO_DEFAULT_ATTESTATIONS": "1",
                "BUILDX_NO_DEFAULT_LOAD": "1",
                # From 0.20 on bake refuses contexts outside of the working directory; some of
                # ours are in the cache.
                "BUILDX_BAKE_ENTITLEMENTS_FS": "0",
            },
            log=log,
            show=on_terminal,
        )
    except BuildError as failed:
        step = failed_step(log.read_text(encoding="utf-8"), plan)
        if step is None:
            raise
        where = f"layers/{step.layer.name}/Dockerfile"
        problems = (Problem(where=where, what=p.what, fix=p.fix) for p in failed.problems)
        raise BuildError(*problems) from None
