"""Which images a variant offers on a platform.

An image is offered where all of its layers are, but for those that are
`optional`: without one of these it is still that image, and says so.  Without
any other layer it would carry a name that promises what it does not hold
(docs/decisions/0009-variants.md).
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING

from strata.errors import DefinitionError, HostError, Problem, closest
from strata.load import select
from strata.model import MACHINES, BootstrapBase

if TYPE_CHECKING:
    from collections.abc import Iterable

    from strata.model import Image, Project, Variant


def not_offered(project: Project, variant: Variant, place: str) -> dict[str, str]:
    """Return the images that a variant does not have on a platform, each with the reason."""
    left_out = variant.without(place)
    reasons = {}
    for image in project.images.values():
        lacking = [n for n in image.layers if n in left_out and not project.layers[n].optional]
        if lacking:
            reasons[image.name] = "; ".join(f"{n} is left out: {left_out[n]}" for n in lacking)
    return reasons


def offered(
    project: Project, variant: Variant, place: str, names: Iterable[str] = ()
) -> list[Image]:
    """Return the named images, or all that are offered for no name, in the order of definition.

    Raises `DefinitionError` for every named one that there is not, or not here.
    """
    names = list(names)
    wanted = select("image", names, project.images)
    missing = not_offered(project, variant, place)
    problems = [
        Problem(
            where=f"--image {image.name}",
            what=f"the variant {variant.name} does not offer it on {place}: " + missing[image.name],
            fix=f"./inv list shows every image; locks/{variant.name}/sources.toml says what is"
            " left out",
        )
        for image in wanted
        if names and image.name in missing
    ]
    if problems:
        raise DefinitionError(*problems)
    return [image for image in wanted if image.name not in missing]


def choose(
    project: Project, variant: str, place: str, images: Iterable[str]
) -> tuple[Variant, str, list[Image]]:
    """Return the variant of that name, the platform to build for, and the images.

    For `place` see `choose_platform`, for `images` `offered`.  Raises
    `DefinitionError` with every name that is wrong.
    """
    images = list(images)
    problems: list[Problem] = []
    try:
        select("image", images, project.images)
    except DefinitionError as wrong:
        problems += wrong.problems
    try:
        (chosen,) = select("variant", [variant], project.variants)
        place = choose_platform(chosen, place)
    except DefinitionError as wrong:
        raise DefinitionError(*wrong.problems, *problems) from None
    if problems:
        raise DefinitionError(*problems)
    return chosen, place, offered(project, chosen, place, images)


def choose_platform(variant: Variant, wanted: str = "") -> str:
    """Return the platform to build for: the wanted one, this machine's, or the variant's first.

    Raises `DefinitionError` for one that the variant does not have.
    """
    if wanted and wanted not in variant.platforms:
        raise DefinitionError.at(
            f"--platform {wanted}",
            f"the variant {variant.name} has no such platform{closest(wanted, variant.platforms)}",
            f"its platforms are {', '.join(variant.platforms)}",
        )
    own = [name for name in variant.platforms if MACHINES[name] == platform.machine()]
    return wanted or next(iter(own), variant.platforms[0])


def refuse_foreign_base(variant: Variant, place: str) -> None:
    """Raise `HostError` where the variant's base is made on the spot, and not for this machine.

    A bootstrap runs the base's own programs: it can only make one like this machine.
    """
    machine = platform.machine()
    if isinstance(variant.base, BootstrapBase) and MACHINES[place] != machine:
        raise HostError.at(
            f"variant {variant.name}",
            f"its base is made on the spot, which gives one for {machine}, not for {place}",
            "build it on such a machine, or another variant here: ./inv list shows their platforms",
        )
