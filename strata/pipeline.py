"""The pipeline as a table of contents: load, plan, build, check, record."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from strata.build import build, missing_steps
from strata.check import check_image, raise_failures, remove_orphans, run_beside
from strata.check.options import choose_gpus, why_no_gpu
from strata.describe import recorded_layers
from strata.engine import client, ensure_engine, find_engine
from strata.engine.connect import unreachable
from strata.errors import DefinitionError, HostError, LockError, Problem
from strata.explain import write_inputs
from strata.load import load
from strata.lock import check_lock, read_lock
from strata.locking import variant_inputs
from strata.offer import choose, refuse_foreign_base
from strata.plan import make_plan
from strata.record import ImageRecord, read_records, write_records
from strata.resources import kept_resources
from strata.store import Store, list_images
from strata.upstream.fetch import refuse_unset

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from strata.build import Built
    from strata.check.options import CheckOptions
    from strata.engine import Engine
    from strata.plan import Plan, PlannedImage
    from strata.record import Outcome
    from strata.workspace import Workspace

    Report = Callable[[Sequence[ImageRecord]], None]
    Checked = tuple[tuple[Outcome, ...], dict[str, str]]

NO_CHECK = "--no-check was given"
GPU_TRAINING = "training on GPUs"


def prepare(workspace: Workspace, images: Sequence[str], variant: str, platform: str = "") -> Plan:
    """Load, check the lock and plan; nothing outside the project is asked.

    `platform` is one of the variant's; without one, it is this machine's where
    the variant has it, else the variant's first.

    Raises `DefinitionError` and `LockError` with everything that is wrong.
    """
    project = load(workspace.root)
    chosen, place, wanted = choose(project, variant, platform, images)
    if problems := check_lock(chosen.lock, variant_inputs(project, chosen)):
        raise LockError(*problems)
    return make_plan(project, chosen, wanted, read_lock(chosen.lock), place)


@contextmanager
def open_store(engine: Engine) -> Iterator[Store]:
    """Open the engine's image store.

    Raises `HostError` when the engine goes away, or refuses what nobody foresaw.
    """
    sdk = client(engine, timeout=600)
    import docker.errors  # noqa: PLC0415 - slow to import
    import requests.exceptions  # noqa: PLC0415 - slow to import

    try:
        yield Store(sdk)
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        raise HostError(unreachable(engine, str(error))) from None
    finally:
        sdk.close()


def step_states(workspace: Workspace, plan: Plan) -> dict[str, str]:
    """Return for each step whether its image is there: "current" or "build".

    No engine is installed or started for it: without one, everything is to be built.
    """
    engine = find_engine(workspace)
    if engine is None:
        return {step.name: "build" for step in plan.steps}
    missing = {step.name for step in missing_steps(plan, list_images(engine))}
    return {step.name: "build" if step.name in missing else "current" for step in plan.steps}


def build_images(
    workspace: Workspace, plan: Plan, options: CheckOptions | None, report: Report
) -> None:
    """Build what is missing, check it (unless `options` is None), record and report it.

    Failed checks are recorded and reported before they are raised.
    """
    refuse_foreign_base(plan.variant, plan.platform)
    refuse_unset(plan.variant)  # it needs no engine to be told
    engine, host = ensure_engine(workspace)
    with open_store(engine) as store:
        built = build(workspace, engine, store, plan)
        write_inputs(inputs_path(workspace, plan), plan)
        records = _check_and_record(
            workspace,
            engine,
            store,
            plan,
            digests=built.digests,
            options=options,
            gpus=choose_gpus(options, host),
            built=built,
        )
    report(records)
    raise_failures({record.ref: record.checks for record in records})


def check_images(workspace: Workspace, plan: Plan, options: CheckOptions, report: Report) -> None:
    """Check images that are built; raises `DefinitionError` for those that are not."""
    engine, host = ensure_engine(workspace)
    with open_store(engine) as store:
        found = list_images(engine)
        missing = {step.name for step in missing_steps(plan, found)}
        problems = [
            Problem(where=image.ref, what="is not built", fix=f"./inv build --image {image.name}")
            for image in plan.images
            if image.step.name in missing
        ]
        if problems:
            raise DefinitionError(*problems)
        digests = {step.name: found[step.ref] for step in plan.steps}
        records = _check_and_record(
            workspace,
            engine,
            store,
            plan,
            digests=digests,
            options=options,
            gpus=choose_gpus(options, host),
        )
    report(records)
    raise_failures({record.ref: record.checks for record in records})


def inputs_path(workspace: Workspace, plan: Plan) -> Path:
    """Return where the inputs of a variant's last build are kept."""
    return workspace.build / f"inputs-{plan.variant.name}.json"


def record_path(workspace: Workspace) -> Path:
    """Return where the record is."""
    return workspace.build / "record.json"


def _check_and_record(
    workspace: Workspace,
    engine: Engine,
    store: Store,
    plan: Plan,
    *,
    digests: Mapping[str, str],
    options: CheckOptions | None,
    gpus: str,
    built: Built | None = None,
) -> list[ImageRecord]:
    path = record_path(workspace)
    records = read_records(path)
    fresh: list[ImageRecord] = []

    def check(image: PlannedImage, options: CheckOptions, known: Sequence[ImageRecord]) -> Checked:
        return check_image(
            workspace.root,
            engine,
            store,
            image,
            known,
            nproc=options.nproc,
            nodes=options.nodes,
            gpus=gpus,
            force=options.force,
            report=workspace.build / "checks" / f"{plan.variant.name}-{image.name}.xml",
        )

    no_gpu = why_no_gpu(options.gpus, gpus) if options else ""
    work: dict[str, Callable[[], Checked]] = {}
    if options is not None:
        remove_orphans(store.sdk)
        for image in plan.images:
            digest = digests[image.step.name]
            known = _of(digest, records.values())
            work.setdefault(digest, partial(check, image, options, known))
    with run_beside(store.sdk, work) as running:
        layers = recorded_layers(store, plan, digests, records.values())  # takes seconds, too
        for image in plan.images:
            digest = digests[image.step.name]
            known = _of(digest, records.values())
            if options is None:
                checks, facts, no_gpu = _earlier(known, image)
            elif digest in work:
                del work[digest]
                checks, facts = running[digest].result()
            else:  # checked just now under another name: what passed there is not repeated
                checks, facts = check(image, replace(options, force=False), _of(digest, fresh))
            record = ImageRecord(
                image=image.name,
                variant=plan.variant.name,
                ref=image.ref,
                input_digest=f"sha256:{image.step.digest}",
                digest=digest,
                layers=layers[digest],
                facts=facts,
                checks=checks,
                not_run=_not_run(image, no_gpu, is_checked=bool(checks)),
                build_seconds=round(built.seconds, 2) if built and built.new else 0,
                recorded=datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                resources=(built and built.resources) or kept_resources(image, known),
            )
            records[plan.variant.name, image.name] = record
            fresh.append(record)
            write_records(path, records.values())
    return fresh


def _of(digest: str, records: Iterable[ImageRecord]) -> list[ImageRecord]:
    return [record for record in records if record.digest == digest]


def _earlier(
    known: Sequence[ImageRecord], image: PlannedImage
) -> tuple[tuple[Outcome, ...], dict[str, str], str]:
    """Return what an earlier run recorded of this very image: nothing was checked now.

    That is outcomes, facts, and why it was not trained on GPUs ("" if it was).
    """
    for record in known:
        if record.image == image.name:
            return record.checks, dict(record.facts), record.not_run.get(GPU_TRAINING, "")
    return (), {}, ""


def _not_run(image: PlannedImage, no_gpu: str, *, is_checked: bool) -> dict[str, str]:
    reasons = {f"layer {name}": why for name, why in image.left_out.items()}
    if not is_checked:
        reasons["checks"] = NO_CHECK
    elif no_gpu and image.checks:
        reasons[GPU_TRAINING] = no_gpu
    return reasons
