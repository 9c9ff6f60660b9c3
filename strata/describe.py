"""What the record says of built images beside their checks: layers and what made them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from strata.load.dockerfile import instructions
from strata.record import RecordedLayer

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from strata.plan import Plan, PlannedImage, Step
    from strata.record import ImageRecord
    from strata.store import Store

BASE = "base"
# Each of these makes one layer of an image, even where it changes nothing.
LAYER_MAKERS = ("ADD", "COPY", "RUN", "WORKDIR")


def recorded_layers(
    store: Store, plan: Plan, digests: Mapping[str, str], records: Iterable[ImageRecord]
) -> dict[str, tuple[RecordedLayer, ...]]:
    """Return the layers of the plan's images, by image digest.

    `digests` are those of the steps, by name.  Images that are in `records`
    already are taken from there, since reading them from the store takes seconds.
    """
    known = {record.digest: record.layers for record in records}
    images = {digests[image.step.name]: image for image in plan.images}
    blobs = store.layers([digest for digest in images if digest not in known])
    for digest, layers in blobs.items():
        causes = _causes(store, images[digest], digests)
        known[digest] = tuple(
            RecordedLayer(
                digest=layer.digest,
                compressed=layer.compressed,
                unpacked=layer.unpacked,
                cause=cause,
            )
            for layer, cause in zip(layers, causes, strict=True)
        )
    return {digest: known[digest] for digest in images}


def _causes(store: Store, image: PlannedImage, digests: Mapping[str, str]) -> list[str]:
    """Return what made each layer, lowest first: the base, or a folder of `layers/`."""
    causes: list[str] = []
    for step in image.step.path():
        count = store.layer_count(digests[step.name])
        if step.parent is None:
            causes = [BASE] * (count - _own_layers(step))
        causes += [step.layer.name] * (count - len(causes))
    return causes


def _own_layers(step: Step) -> int:
    text = (step.layer.folder / "Dockerfile").read_text(encoding="utf-8")
    return sum(1 for instruction in instructions(text) if instruction.keyword in LAYER_MAKERS)
