"""The recipes that are compared, and the files that the two with pip are given."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from strata.bench.model import Recipe
from strata.embedded.channel import read_names
from strata.embedded.pins import read_pins
from strata.embedded.wheels import fetch_wheels
from strata.errors import LockError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from strata.embedded.pins import Pin
    from strata.plan import Plan
    from strata.workspace import Workspace

STRATA = Recipe(
    name="strata",
    title="strata",
    dockerfile="",
    choices=(
        "the whole command, as a user types it: ./inv build --image lab --no-check",
        "its clock includes unpacking and compressing the base, and writing the record",
    ),
)
SEED = Recipe(
    name="seed",
    title="seed recipe",
    dockerfile="bench/seed.Dockerfile",
    choices=(
        "one Dockerfile: pip install into a venv, then chown -R to the user",
        "docker buildx build with its defaults (gzip), attestations off",
    ),
)
PIP = Recipe(
    name="pip",
    title="careful pip",
    dockerfile="bench/pip.Dockerfile",
    choices=(
        "venv, requirements pinned by hash, in two steps: PyTorch's below Jupyter's",
        "wheels and requirements are mounted; no cache kept, no chown, apt lists removed",
        "docker buildx build with its defaults (gzip), attestations off",
    ),
)
RECIPES = (STRATA, SEED, PIP)


def pins_by_category(
    plan: Plan, pins: Iterable[Pin], rename: Mapping[str, str]
) -> dict[str, tuple[Pin, ...]]:
    """Return the wheels that stand for each category's packages of a plan with one image.

    `rename` holds conda's names by project.  Raises `LockError` for a wheel that
    no layer installs: the recipes would hold other packages than strata.
    """
    categories = {
        package.name: step.layer.category
        for step in plan.steps
        for package in step.packages
        if step.layer.category
    }
    sorted_out: dict[str, list[Pin]] = {category: [] for category in categories.values()}
    for pin in pins:
        name = rename.get(pin.project, pin.project)
        if name not in categories:
            raise LockError.at(
                str(plan.variant.folder / "wheels.txt"),
                f"{pin.project} is in no layer of {plan.images[0].ref}",
                "./inv lock --variant embedded",
            )
        sorted_out[categories[name]].append(pin)
    return {category: tuple(listed) for category, listed in sorted_out.items()}


def lay_wheels(workspace: Workspace, plan: Plan, target: Path) -> None:
    """Lay out what the Dockerfiles with pip mount: wheels and requirements, by category.

    `target/wheels/CATEGORY` holds the wheels; `target/requirements` holds
    `CATEGORY.txt` with hashes and `requirements.txt` with all of them without.
    """
    requirements = plan.variant.folder / "wheels.txt"
    rename = read_names(plan.variant.folder / "names.toml")
    wheels = fetch_wheels(workspace, requirements)
    texts = target / "requirements"
    texts.mkdir(parents=True)
    names = []
    for category, pins in pins_by_category(plan, read_pins(requirements), rename).items():
        folder = target / "wheels" / category
        folder.mkdir(parents=True)
        for pin in pins:
            shutil.copyfile(wheels[pin.project], folder / wheels[pin.project].name)
            names.append(f"{pin.project}=={pin.version}\n")
        (texts / f"{category}.txt").write_text("".join(map(str, pins)))
    (texts / "requirements.txt").write_text("".join(names))
