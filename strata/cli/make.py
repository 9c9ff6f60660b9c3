"""Tasks that make images and check them: build, fetch, check, push."""

from __future__ import annotations

from typing import Any

from strata.cli.frame import DRY_RUN, IMAGES, VARIANT, strata_task, workspace_of


@strata_task(
    iterable=["image"],
    help={
        "image": IMAGES,
        "variant": VARIANT,
        "no-check": "build only; the record says that nothing was checked",
        "from": "a folder that `fetch` has filled: everything is taken from there",
        "dry-run": DRY_RUN,
    },
)
def build(  # noqa: PLR0917 - the flags of the task
    c: Any,
    image: list[str],
    variant: str = "embedded",
    no_check: bool = False,
    from_: str = "",
    dry_run: bool = False,
) -> None:
    """Build what is missing, check every layer and image, write build/record.json."""
    from strata.check.options import CheckOptions
    from strata.pipeline import build_images, prepare

    workspace = workspace_of(c)
    plan = prepare(workspace, image, variant)
    if from_:
        from strata.upstream.carried import open_folder

        workspace = open_folder(workspace, from_, variant)
    if dry_run:
        from strata.cli.show import print_plan

        print_plan(workspace, plan)
        return
    from strata.report import print_report

    build_images(workspace, plan, None if no_check else CheckOptions(), print_report)


@strata_task(
    iterable=["image"],
    help={
        "image": IMAGES,
        "variant": VARIANT,
        "to": "the folder; it may hold what was fetched for other variants",
        "dry-run": DRY_RUN,
    },
)
def fetch(
    c: Any, image: list[str], to: str = "", variant: str = "embedded", dry_run: bool = False
) -> None:
    """Bring all that a variant's build needs into a folder, for `build --from` without network."""
    from pathlib import Path

    from strata.errors import DefinitionError
    from strata.offer import refuse_foreign_base
    from strata.pipeline import prepare

    if not to:
        raise DefinitionError.at("fetch", "it has no folder to fill", "./inv fetch --to DIR")
    workspace = workspace_of(c)
    plan = prepare(workspace, image, variant)
    if dry_run:
        print(f"would fetch what {len(plan.steps)} steps of {variant} are built from to {to}")
        return
    from strata.upstream.carry import fill_folder

    refuse_foreign_base(plan.variant, plan.platform)
    fill_folder(workspace, plan, Path(to).expanduser().absolute())


@strata_task(
    iterable=["image"],
    help={
        "image": IMAGES,
        "variant": VARIANT,
        "nproc": "ranks of each node; default: one a GPU, or 2 on a CPU",
        "nodes": "containers that train together, over a network of their own",
        "gpus": "all, none, or auto: all where the engine offers them",
        "force": "repeat checks that passed for the same image and the same tests",
        "dry-run": DRY_RUN,
    },
)
def check(  # noqa: PLR0917 - the flags of the task
    c: Any,
    image: list[str],
    variant: str = "embedded",
    nproc: str = "",
    nodes: int = 1,
    gpus: str = "auto",
    force: bool = False,
    dry_run: bool = False,
) -> None:
    """Check built images: their layers' tests, and training on several ranks."""
    from strata.check.options import check_options
    from strata.pipeline import check_images, prepare
    from strata.report import print_report

    workspace = workspace_of(c)
    options = check_options(nproc=nproc, nodes=nodes, gpus=gpus, force=force)
    plan = prepare(workspace, image, variant)
    if dry_run:
        for planned in plan.images:
            layers = ", ".join(step.layer.name for step in planned.step.path())
            print(f"{planned.ref}: tests of {layers}; {', '.join(planned.checks)}")
        return
    check_images(workspace, plan, options, print_report)


@strata_task(
    iterable=["image"],
    help={
        "image": IMAGES,
        "variant": VARIANT,
        "registry": "HOST[:PORT]/OWNER, such as ghcr.io/OWNER",
        "dry-run": DRY_RUN,
    },
)
def push(
    c: Any,
    image: list[str],
    registry: str = "",
    variant: str = "embedded",
    dry_run: bool = False,
) -> None:
    """Push the images whose checks passed: an immutable tag, then the variant's moving tag."""
    from strata.pipeline import prepare
    from strata.promote import promote
    from strata.tags import validate_registry

    validate_registry(registry, "--registry")
    workspace = workspace_of(c)
    plan = prepare(workspace, image, variant)
    for pushed in promote(workspace, plan, registry, dry_run=dry_run):
        print(f"{pushed.reference}  (also {pushed.moving})")
