"""Which image is meant: one of the project's, one of the engine's, or one in a registry."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from strata.errors import DefinitionError, closest
from strata.plan import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Collection


@dataclass(frozen=True, kw_only=True)
class Reference:
    """An image: the reference, a short name for containers, and whether it has to be pulled."""

    text: str
    short: str
    needs_pull: bool = False


def choose_reference(
    image: str, variant: str, projects: Collection[str], present: Collection[str]
) -> Reference:
    """Return the image that `image` names.

    `projects` are the names of the project's images, `present` the `NAME:TAG`
    and `NAME@DIGEST` that the engine has.  Only what names a registry's host is
    pulled: anything else would come from Docker Hub, from whoever has that name
    there.

    Raises `DefinitionError` for an image that is unknown, or known and not built.
    """
    if image in projects:
        reference = f"{NAMESPACE}/{image}:{variant}"
        if reference not in present:
            built = [ref for ref in present if ref.startswith(f"{NAMESPACE}/{image}:")]
            more = f" (of it there is {', '.join(sorted(built))})" if built else ""
            raise DefinitionError.at(
                f"image {image}",
                f"it is not built for the variant {variant}{more}",
                f"./inv build --image {image} --variant {variant}",
            )
        return Reference(text=reference, short=image)
    if not any(mark in image for mark in "/:@"):
        raise DefinitionError.at(
            f"image {image}",
            f'no image "{image}"{closest(image, projects)}',
            "./inv list shows every image",
        )
    last = image.rpartition("/")[2]
    tagged = image if ":" in last or "@" in last else f"{image}:latest"
    short = short_name(image)
    if tagged in present:
        return Reference(text=tagged, short=short)
    if _has_host(image):
        return Reference(text=tagged, short=short, needs_pull=True)
    raise DefinitionError.at(
        f"image {image}",
        f"the engine has no such image, and it names no registry{closest(tagged, present)}",
        f"docker pull it first, or write its registry too, such as docker.io/{tagged}",
    )


def short_name(image: str) -> str:
    """Return the last part of an image's name, without tag and digest."""
    return image.rpartition("/")[2].partition("@")[0].partition(":")[0]


def _has_host(image: str) -> bool:
    # Docker's own rule for the first part of a reference.
    first, slash, _ = image.partition("/")
    return bool(slash) and (first == "localhost" or "." in first or ":" in first)
