"""The base image of a variant: where the engine takes it from, and how it is carried along."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from strata.credentials import read_credentials
from strata.errors import BuildError, LockError, PublishError
from strata.model import ImageBase
from strata.registry import Registry, is_plain_http
from strata.upstream.download import Wanted
from strata.upstream.fetch import fetch, place
from strata.upstream.layout import (
    blob_path,
    blobs_of,
    complete_layout,
    is_whole_layout,
    platform_manifest,
)
from strata.upstream.mirrors import full_name, read_mirrors

if TYPE_CHECKING:
    from pathlib import Path

    from strata.model import Variant
    from strata.workspace import Workspace

BASES = "base"


def base_context(workspace: Workspace, variant: Variant, platform: str) -> str | None:
    """Return a variant's base as a bake context; None for one that is made on the spot.

    It comes from the registry or its mirror into the cache, with
    `workspace.carried` from that folder, and is verified before the engine sees
    it: containerd would keep the wrong bytes of a manifest or a layer, and go on
    to fail with them when the registry is right again.  Raises `LockError` where
    the registry has another image under that digest, `BuildError` where it can't
    be had.
    """
    base = variant.base
    if not isinstance(base, ImageBase):
        return None
    layout = layout_of(workspace.carried or workspace.cache, base)
    if not is_whole_layout(layout, base.digest, platform):
        if workspace.carried:
            raise BuildError.at(
                str(layout),
                f"the base {base.image}@{base.digest} is not there, or damaged",
                "./inv fetch again",
            )
        carry_base(workspace, variant, base, workspace.cache, platform)
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
    blob_path(layout, base.digest).parent.mkdir(parents=True, exist_ok=True)
    try:
        registry = Registry(
            host, read_credentials(host, os.environ), plain_http=is_plain_http(host, {})
        )
        try:
            manifests = _manifests(registry, repository, base.digest, platform, where)
            for digest, content in manifests.items():
                blob_path(layout, digest).write_bytes(content)
            wanted = [
                _blob(registry, repository, digest, where, repin)
                for digest in blobs_of(list(manifests.values())[-1])
            ]
        finally:
            registry.close()
    except PublishError as failed:
        raise BuildError(*failed.problems) from None
    for sha256, file in fetch(workspace, wanted).items():
        place(file, blob_path(layout, sha256))
    complete_layout(layout, base.digest)
    return layout


def _manifests(
    registry: Registry, repository: str, digest: str, platform: str, where: str
) -> dict[str, bytes]:
    """Return the manifest of a digest and, if it is an index, then the one of the platform."""
    found = {digest: _manifest(registry, repository, digest, where)}
    try:
        inner = platform_manifest(found[digest], platform)
    except LookupError:
        raise BuildError.at(
            f"{repository}@{digest}", f"has no {platform}", f"correct platforms in {where}"
        ) from None
    if inner:
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
