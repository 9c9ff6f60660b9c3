"""Tasks that only show: list, plan."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from strata.cli.frame import IMAGES, VARIANT, strata_task, workspace_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from strata.plan import Plan
    from strata.workspace import Workspace

PLAN_SCHEMA = "strata.plan/1"


@strata_task(name="list")
def list_(c: Any) -> None:
    """Show layers, images and variants, one line each."""
    from strata.load import load
    from strata.model import BootstrapBase
    from strata.offer import not_offered

    project = load(workspace_of(c).root)
    print("layers")
    for layer in project.layers.values():
        print(f"  {layer.name:14} {layer.summary}")
    print("images")
    for image in project.images.values():
        print(f"  {image.name:14} {image.summary} ({' '.join(image.layers)})")
    print("variants")
    for variant in project.variants.values():
        base = variant.base
        text = f"Debian {base.suite}" if isinstance(base, BootstrapBase) else base.image
        print(f"  {variant.name:14} {text}, {' '.join(variant.platforms)}")
        for platform in variant.platforms:
            if missing := not_offered(project, variant, platform):
                print(f"  {'':14} without {' '.join(missing)} on {platform}")


@strata_task(
    iterable=["image"],
    help={
        "image": IMAGES,
        "variant": VARIANT,
        "platform": "one of the variant's; without it, this machine's",
        "json": "print the plan as one JSON document",
        "explain": "say for each step why it will be built",
    },
)
def plan(  # noqa: PLR0917 - the flags of the task
    c: Any,
    image: list[str],
    variant: str = "embedded",
    platform: str = "",
    json: bool = False,
    explain: bool = False,
) -> None:
    """Show the tree of steps: input digest, state (current, build) and download of each."""
    from strata.load import load
    from strata.pipeline import prepare

    workspace = workspace_of(c)
    made = prepare(workspace, image, variant, platform)
    if json:
        print_json(workspace, made, load(workspace.root).variants)
    else:
        print_plan(workspace, made, explain=explain)


def print_plan(workspace: Workspace, plan: Plan, *, explain: bool = False) -> None:
    """Print the tree, a line a step, and the images that end at each."""
    from strata.explain import read_inputs, reasons
    from strata.lock import download
    from strata.pipeline import inputs_path, step_states
    from strata.plan import walk

    states = step_states(workspace, plan)
    before = read_inputs(inputs_path(workspace, plan))
    print(f"variant {plan.variant.name} on {plan.platform}")
    for depth, step in walk(plan):
        names = ", ".join(image.name for image in plan.images if image.step is step)
        branch = "  " * (depth + 1) + step.layer.name
        state = states[step.name]
        brings = download(step.packages)
        size = f"{brings.packages} packages, {brings}" if step.packages else ""
        line = (
            f"{branch:28} {step.digest[:16]}  {state:8} {size:32} {f'= {names}' if names else ''}"
        )
        print(line.rstrip())
        if explain and state == "build":
            for reason in reasons(step, before.get(step.name)):
                print(f"{'':{2 * depth + 6}}- {reason}")
    left_out = {name: why for image in plan.images for name, why in image.left_out.items()}
    for name, why in left_out.items():
        print(f"left out: {name}: {why}")
    for name, why in plan.not_offered.items():
        print(f"not offered: {name}: {why}")
    if unset := plan.variant.unset:
        print(f"not pinned: {', '.join(unset)}: ./inv pin --variant {plan.variant.name}")


def print_json(workspace: Workspace, plan: Plan, variants: Iterable[str]) -> None:
    """Print the plan as a document for programs; `variants` are all that the project has."""
    from strata.lock import download
    from strata.pipeline import step_states

    states = step_states(workspace, plan)
    document = {
        "schema": PLAN_SCHEMA,
        "variant": plan.variant.name,
        "variants": list(variants),
        "platforms": list(plan.variant.platforms),
        "platform": plan.platform,
        "steps": [
            {
                "name": step.name,
                "layer": step.layer.name,
                "parent": step.parent.name if step.parent else None,
                "digest": f"sha256:{step.digest}",
                "ref": step.ref,
                "state": states[step.name],
                "packages": len(step.packages),
                "download": download(step.packages).size,
            }
            for step in plan.steps
        ],
        "images": [
            {
                "name": image.name,
                "variant": image.variant,
                "ref": image.ref,
                "step": image.step.name,
                "checks": list(image.checks),
                "left_out": dict(image.left_out),
            }
            for image in plan.images
        ],
        "not_offered": dict(plan.not_offered),
    }
    print(json.dumps(document, indent=1))
