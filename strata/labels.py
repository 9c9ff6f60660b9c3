"""The labels that an image carries: what it is, of what, and what it needs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from strata.model import BootstrapBase

if TYPE_CHECKING:
    from strata.lock import Lock
    from strata.model import Layer, Variant


def step_labels(
    variant: Variant, layer: Layer, path: tuple[str, ...], lock: Lock
) -> dict[str, str]:
    """Return the labels of the image that a layer makes on the layers below it in `path`."""
    created = datetime.fromtimestamp(variant.epoch, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {
        "org.opencontainers.image.title": f"strata {variant.name} {path[-1]}",
        "org.opencontainers.image.description": layer.summary,
        "org.opencontainers.image.created": created,
        "strata.variant": variant.name,
        "strata.layers": " ".join(path),
    }
    if not isinstance(variant.base, BootstrapBase):
        labels["org.opencontainers.image.base.name"] = variant.base.image
        labels["org.opencontainers.image.base.digest"] = variant.base.digest
    if lock.minimum_driver:  # the oldest NVIDIA driver that the image runs on
        labels["strata.minimum-driver"] = lock.minimum_driver
    return labels
