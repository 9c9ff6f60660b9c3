"""An image in a folder, as the OCI image layout has it (image-spec, image-layout.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from strata.embedded.wheels import sha256_of

if TYPE_CHECKING:
    from pathlib import Path

VERSION = '{"imageLayoutVersion": "1.0.0"}\n'
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
SHA256 = "sha256:"


def blob_path(layout: Path, digest: str) -> Path:
    """Return where a layout has the blob of a digest (`sha256:…`)."""
    return layout / "blobs" / "sha256" / digest.removeprefix(SHA256)


def platform_manifest(manifest: bytes, platform: str) -> str | None:
    """Return the digest of a platform's manifest where this one is an index; else None.

    Raises `LookupError` where the index has none for the platform.
    """
    listed = json.loads(manifest).get("manifests")
    if listed is None:
        return None
    for entry in listed:
        one = entry.get("platform", {})
        if f"{one.get('os')}/{one.get('architecture')}" == platform:
            return str(entry["digest"])
    raise LookupError(platform)


def blobs_of(manifest: bytes) -> list[str]:
    """Return the digests of an image's configuration and layers."""
    document: dict[str, Any] = json.loads(manifest)
    return [document["config"]["digest"], *(layer["digest"] for layer in document["layers"])]


def is_whole_layout(layout: Path, digest: str, platform: str) -> bool:
    """Tell whether a layout has all of an image for a platform, each blob what its name says."""
    if not (layout / "index.json").is_file():
        return False
    try:
        inner = platform_manifest(blob_path(layout, digest).read_bytes(), platform) or digest
        needed = {digest, inner, *blobs_of(blob_path(layout, inner).read_bytes())}
        return all(f"{SHA256}{sha256_of(blob_path(layout, one))}" == one for one in needed)
    except (OSError, ValueError, KeyError, TypeError, LookupError):
        return False  # a blob is missing, or its bytes are no manifest


def complete_layout(layout: Path, digest: str) -> None:
    """Make a layout of a folder that has all blobs already; `digest` is the image's."""
    top = blob_path(layout, digest).read_bytes()
    described = {
        "mediaType": json.loads(top).get("mediaType", OCI_MANIFEST),
        "digest": digest,
        "size": len(top),
    }
    index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [described]}
    (layout / "oci-layout").write_text(VERSION)
    (layout / "index.json").write_text(json.dumps(index) + "\n")
