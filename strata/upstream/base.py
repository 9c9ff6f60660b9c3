"""The base image of a variant: where the engine takes it from, and how it is carried along."""

from __future__ import annotations

import hashlib
import json
import os
from typing import TYPE_CHECKING, Any

from strata.credentials import read_credentials
from strata.errors import BuildError, LockError, PublishError
from strata.model import ImageBase
from strata.registry import Registry, is_plain_http
from strata.upstream.download import Wanted
from strata.upstream.fetch import fetch, place
from strata.upstream.mirrors import full_name, read_mirrors

if TYPE_CHECKING:
    from pathlib import Path

    from strata.model import BootstrapBase, Variant
    from strata.workspace import Workspace

BASES = "base"
LAYOUT = '{"imageLayoutVersion": "1.0.0"}\n'
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


def base_context(workspace: Workspace, base: BootstrapBase | ImageBase) -> str | None:
    """Return the base as a bake context; None for one that is made on the spot.

    From the registry or its mirror, by digest; with `workspace.carried` from the
    folder.  Raises `BuildError` where that folder lacks it.
    """
    if not isinstance(base, ImageBase):
        return None
    if workspace.carried is None:
        return f"docker-image://{read_mirrors(os.environ).base_image(base.image)}@{base.digest}"
    layout = layout_of(workspace.carried, base)
    if not (layout / "index.json").is_file():
        raise BuildError.at(
            str(layout), f"the base {base.image}@{base.digest} is not there", "./inv fetch again"
        )
    return f"oci-layout://{layout}@{base.digest}"


def layout_of(folder: Path, base: ImageBase) -> Path:
    """Return where a base is kept in a folder of `fetch`, as an OCI image layout."""
    return folder / BASES / base.digest.removeprefix("sha256:")


def carry_base(
    workspace: Workspace, variant: Variant, base: ImageBase, folder: Path, platform: str
) -> Path:
    """Fetch a base for a platform into an OCI image layout, each blob verified.

    Returns the layout's folder.  Raises `LockError` where the registry has
    another image under that digest, `BuildError` where it can't be had.
    """
    layout = layout_of(folder, base)
    name = full_name(read_mirrors(os.environ).base_image(base.image))
    repository = name.rpartition(":")[0] if ":" in name.rsplit("/", 1)[-1] else name
    host = repository.split("/", 1)[0]
    where = f"locks/{variant.name}/sources.toml"
    repin = f"./inv pin --variant {variant.name}"
    blobs = layout / "blobs" / "sha256"
    blobs.mkdir(parents=True, exist_ok=True)
    try:
        registry = Registry(
            host, read_credentials(host, os.environ), plain_http=is_plain_http(host, {})
        )
        try:
            manifests = _manifests(registry, repository, base.digest, platform, where)
            for digest, content in manifests.items():
                (blobs / digest.removeprefix("sha256:")).write_bytes(content)
            wanted = [
                _blob(registry, repository, digest, where, repin)
                for content in manifests.values()
                for digest in _blob_digests(json.loads(content))
            ]
        finally:
            registry.close()
    except PublishError as failed:
        raise BuildError(*failed.problems) from None
    for sha256, file in fetch(workspace, wanted).items():
        place(file, blobs / sha256)
    top = manifests[base.digest]
    described = {
        "mediaType": json.loads(top).get("mediaType", OCI_MANIFEST),
        "digest": base.digest,
        "size": len(top),
    }
    index = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [described]}
    (layout / "oci-layout").write_text(LAYOUT)
    (layout / "index.json").write_text(json.dumps(index) + "\n")
    return layout


def _manifests(
    registry: Registry, repository: str, digest: str, platform: str, where: str
) -> dict[str, bytes]:
    """Return the manifest of a digest and, if it is an index, the one of the platform."""
    top = _manifest(registry, repository, digest, where)
    found = {digest: top}
    listed = json.loads(top).get("manifests")
    if listed is None:
        return found
    by_platform: dict[str, str] = {}
    for entry in listed:
        one = entry.get("platform", {})
        by_platform.setdefault(f"{one.get('os')}/{one.get('architecture')}", entry["digest"])
    if platform not in by_platform:
        raise BuildError.at(
            f"{repository}@{digest}", f"has no {platform}", f"correct platforms in {where}"
        )
    inner = by_platform[platform]
    found[inner] = _manifest(registry, repository, inner, where)
    return found


def _manifest(registry: Registry, repository: str, digest: str, where: str) -> bytes:
    content = registry.manifest(repository, digest)
    name = f"{repository}@{digest}"
    if content is None:
        raise BuildError.at(name, "the registry has no such image", f"see [base] in {where}")
    found = f"sha256:{hashlib.sha256(content).hexdigest()}"
    if found != digest:
        raise LockError.at(
            where,
            f"the registry has another image under this digest\n    from:   {name}"
            f"\n    found:  {found}",
            "ask who runs that registry",
        )
    return content


def _blob_digests(manifest: dict[str, Any]) -> list[str]:
    if "manifests" in manifest:
        return []
    return [manifest["config"]["digest"], *(layer["digest"] for layer in manifest["layers"])]


def _blob(registry: Registry, repository: str, digest: str, where: str, repin: str) -> Wanted:
    url, headers = registry.blob(repository, digest)
    return Wanted(
        name=f"{repository}@{digest}",
        url=url,
        sha256=digest.removeprefix("sha256:"),
        where=where,
        repin=repin,
        headers=headers,
    )
