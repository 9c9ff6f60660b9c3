"""The prefix tree of the images: which steps there are, and what decides each.

A pure function of the definitions, the lock and the files of the layers: the
engine is not asked here (`strata.store` says which steps are there already).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from strata.digest import folder_digests, inputs_digest, text_digest
from strata.embedded.base import RECIPE
from strata.labels import step_labels
from strata.lock import slice_document, slice_for
from strata.model import PLATFORMS, BootstrapBase
from strata.offer import not_offered

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from strata.lock import Lock, LockedPackage
    from strata.model import Image, Layer, Project, Variant

# Raise this when the bake file changes in a way that changes images.
FORMAT = "3"
NAMESPACE = "strata"
INBUILD = Path(__file__).parent / "inbuild"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One node of the tree: a layer on a given parent, for a given variant.

    `name` is its path from the base; `inputs` are the digests of all that
    decides its content, by what they are digests of, and `digest` is theirs.
    `packages` is its own slice of the lock.
    """

    name: str
    layer: Layer
    parent: Step | None
    inputs: Mapping[str, str]
    digest: str
    ref: str
    args: Mapping[str, str]
    labels: Mapping[str, str]
    packages: tuple[LockedPackage, ...]

    def path(self) -> tuple[Step, ...]:
        """Return the steps from the lowest to this one."""
        return (*self.parent.path(), self) if self.parent else (self,)

    def manifest(self) -> str:
        """Return `/opt/strata/manifest.json`: what is in the environment, and from which layer."""
        document = {
            "schema": "strata.manifest/1",
            "variant": self.labels["strata.variant"],
            "packages": [
                {
                    "name": package.name,
                    "version": package.version,
                    "build": package.build,
                    "sha256": package.sha256,
                    "layer": step.layer.name,
                }
                for step in self.path()
                for package in step.packages
            ],
        }
        return json.dumps(document, indent=1, sort_keys=True) + "\n"


@dataclass(frozen=True, kw_only=True)
class PlannedImage:
    """An image of a variant: its last step, its checks, and what was left out and why."""

    name: str
    variant: str
    summary: str
    step: Step
    checks: tuple[str, ...]
    left_out: Mapping[str, str]

    @property
    def ref(self) -> str:
        """The name that people use: `strata/NAME:VARIANT`."""
        return f"{NAMESPACE}/{self.name}:{self.variant}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """All steps of some images of one variant on one platform, parents first.

    `not_offered` holds the project's images that the variant does not have
    there, each with the reason.
    """

    variant: Variant
    platform: str
    steps: tuple[Step, ...]
    images: tuple[PlannedImage, ...]
    not_offered: Mapping[str, str]


def make_plan(
    project: Project,
    variant: Variant,
    images: Sequence[Image],
    lock: Lock,
    platform: str | None = None,
) -> Plan:
    """Lay the images' layers into a tree in which shared prefixes stand once.

    `platform` is one of the variant's (`linux/amd64`); its first for None.
    Images that are not offered there are passed over.
    """
    platform = platform or variant.platforms[0]
    left_out = variant.without(platform)
    missing = not_offered(project, variant, platform)
    steps: dict[tuple[str, ...], Step] = {}
    planned = []
    tools = folder_digests(INBUILD, "strata/inbuild")
    step = partial(_step, project, variant, platform=platform, lock=lock, tools=tools)
    for image in images:
        if image.name in missing:
            continue
        parent: Step | None = None
        path: tuple[str, ...] = ()
        for name in image.layers:
            if name in left_out:
                continue
            path = (*path, name)
            if path not in steps:
                steps[path] = step(path, parent=parent)
            parent = steps[path]
        if parent is None:
            continue
        planned.append(
            PlannedImage(
                name=image.name,
                variant=variant.name,
                summary=image.summary,
                step=parent,
                checks=image.checks,
                left_out={n: left_out[n] for n in image.layers if n in left_out},
            )
        )
    return Plan(
        variant=variant,
        platform=platform,
        steps=tuple(steps.values()),
        images=tuple(planned),
        not_offered=missing,
    )


def walk(plan: Plan) -> Iterator[tuple[int, Step]]:
    """Yield each step with its depth, a parent's branches one after the other."""

    def below(parent: Step | None, depth: int) -> Iterator[tuple[int, Step]]:
        for step in plan.steps:
            if step.parent is parent:
                yield depth, step
                yield from below(step, depth + 1)

    yield from below(None, 0)


def base_inputs(variant: Variant) -> dict[str, str]:
    """Return what decides the base, by name."""
    base = variant.base
    if isinstance(base, BootstrapBase):
        return {"base": f"{base.suite} {' '.join(sorted(base.include))}", "recipe": str(RECIPE)}
    return {"base": base.digest}


def _step(
    project: Project,
    variant: Variant,
    path: tuple[str, ...],
    *,
    platform: str,
    parent: Step | None,
    lock: Lock,
    tools: Mapping[str, str],
) -> Step:
    layer = project.layers[path[-1]]
    lower = parent.path() if parent else ()
    below = [root for step in lower for root in _roots(step.layer, lock)]
    packages = slice_for(lock, PLATFORMS[platform], _roots(layer, lock), below)
    args = _arguments(variant, layer, lower)
    inputs = {
        "format": FORMAT,
        "epoch": str(variant.epoch),
        "platforms": platform,
        **{f"ARG {name}": value for name, value in args.items()},
        **tools,
        **_layer_files(layer),
    }
    for context in layer.contexts:
        inputs |= folder_digests(project.root / context, context)
    if layer.installer and variant.installer:
        inputs["installer"] = variant.installer.sha256[platform]
    if packages:
        inputs["lock slice"] = text_digest(slice_document(packages))
    if parent:
        inputs["parent"] = parent.digest
    else:
        inputs |= base_inputs(variant)
    labels = step_labels(variant, layer, path, lock)
    inputs["labels"] = text_digest(json.dumps(labels, sort_keys=True))
    digest = inputs_digest(inputs)
    return Step(
        name="_".join(path),
        layer=layer,
        parent=parent,
        inputs=inputs,
        digest=digest,
        ref=f"{NAMESPACE}/{variant.name}/{layer.name}:{digest[:16]}",
        args=args,
        labels={**labels, "strata.input-digest": f"sha256:{digest}"},
        packages=packages,
    )


def _roots(layer: Layer, lock: Lock) -> tuple[str, ...]:
    """Return the packages that a layer asks for where the lock's accelerator is what it is."""
    return layer.roots + (layer.cuda_roots if lock.accelerator == "cuda" else ())


def _arguments(variant: Variant, layer: Layer, lower: Sequence[Step]) -> dict[str, str]:
    """Return what the layer's open ARGs get: its own value, a lower layer's, the variant's."""
    given: dict[str, str] = {}
    for step in lower:
        given |= step.layer.args
    given |= {**layer.args, **variant.args}
    return {name: given[name] for name in layer.arguments if name in given}


def _layer_files(layer: Layer) -> dict[str, str]:
    """Return the digests of the files that a build sees; the rest acts through its meaning."""
    parsed = {f"layers/{layer.name}/{name}" for name in ("layer.toml", "environment.yml")}
    files = folder_digests(layer.folder, f"layers/{layer.name}")
    return {name: digest for name, digest in files.items() if name not in parsed}
