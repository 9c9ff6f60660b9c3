"""Whether the ARGs of the Dockerfiles and the values that the definitions give fit together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.errors import Problem, closest

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from strata.model import Image, Layer, Variant

# What the build itself, and BuildKit ("automatic platform ARGs"), give to every Dockerfile.
PLATFORM_PARTS = ("PLATFORM", "OS", "ARCH", "VARIANT")
BUILD_ARGUMENTS = (
    "SOURCE_DATE_EPOCH",
    *(f"BUILD{part}" for part in PLATFORM_PARTS),
    *(f"TARGET{part}" for part in PLATFORM_PARTS),
)


def check_arguments(
    layers: Mapping[str, Layer],
    images: Iterable[Image],
    variants: Iterable[Variant],
    problems: list[Problem],
) -> None:
    """Add a problem for each open ARG that nobody supplies, and each value that nobody takes.

    A layer gets its own values, those of the layers below it, and the variant's.
    """
    variants = tuple(variants)
    paths = {_path(image.layers, layers) for image in images}
    # A layer that no image has yet would stand on all that is lower.
    paths |= {tuple(n for n in layers if n <= name) for name in layers}
    for variant in variants:
        lacks = {
            (name, argument)
            for path in paths
            for name, argument in _unsupplied(path, layers, variant)
        }
        given = {*BUILD_ARGUMENTS, *variant.args}
        given |= {name for layer in layers.values() for name in layer.args}
        problems += [
            Problem(
                where=f"layers/{name}/Dockerfile",
                what=f"ARG {argument} is supplied by nobody in the variant {variant.name}"
                + closest(argument, sorted(given - {argument})),
                fix="add it to [args] of its layer.toml, of a layer.toml below it, or of"
                f" locks/{variant.name}/sources.toml",
            )
            for name, argument in sorted(lacks)
        ]
    taken = sorted({argument for layer in layers.values() for argument in layer.arguments})
    places = {f"layers/{layer.name}/layer.toml": layer.args for layer in layers.values()}
    places |= {f"locks/{variant.name}/sources.toml": variant.args for variant in variants}
    problems += [
        Problem(
            where=where,
            what=f"args: no Dockerfile takes {name}{closest(name, taken)}",
            fix=f"write `ARG {name}`, without a default, into the Dockerfile that needs it",
        )
        for where, args in places.items()
        for name in args
        if name not in taken
    ]


def _path(names: Iterable[str], layers: Mapping[str, Layer]) -> tuple[str, ...]:
    """Return the layers as they should be listed: that they are not is told elsewhere."""
    found: set[str] = set()
    todo = list(names)
    while todo:
        name = todo.pop()
        if name in layers and name not in found:
            found.add(name)
            todo += layers[name].requires
    return tuple(sorted(found))


def _unsupplied(
    path: tuple[str, ...], layers: Mapping[str, Layer], variant: Variant
) -> Iterable[tuple[str, str]]:
    given = {*BUILD_ARGUMENTS, *variant.args}
    there = [layers[name] for name in path if name not in variant.left_out]
    required = {name for layer in there for name in layer.requires}
    for layer in (layers[name] for name in path):
        if layer in there or layer.name in required:
            given |= layer.args.keys()
            yield from ((layer.name, name) for name in layer.arguments if name not in given)
