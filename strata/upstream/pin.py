"""Asks the registry and the installer's site for what is newest, and pins that."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import requests

from strata.credentials import read_credentials
from strata.errors import BuildError, DefinitionError, PublishError
from strata.load import load, select
from strata.lock.urls import mask
from strata.locking import WHEELS, pin_variant
from strata.model import ImageBase
from strata.registry import Registry, is_plain_http
from strata.upstream.download import TIMEOUT, root_cause
from strata.upstream.installers import newest_release
from strata.upstream.mirrors import full_name, read_mirrors, with_variables
from strata.upstream.sources import set_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from strata.model import Installer, Variant
    from strata.upstream.mirrors import Mirrors
    from strata.workspace import Workspace

NO_LIST = frozenset({403, 404, 405})
CHUNK = 1 << 20  # bytes


@dataclass(frozen=True, kw_only=True)
class Change:
    """One value of `sources.toml` that is to be another one."""

    key: tuple[str, ...]
    before: str
    after: str

    def __str__(self) -> str:
        """Render as one line."""
        return f"{'.'.join(self.key)}: {self.before} -> {self.after}"


def pin_variants(workspace: Workspace, names: Sequence[str], *, dry_run: bool) -> None:
    """Pin the newest wheels, base and installer of each variant, saying what changes.

    Without names, of all variants.  Raises `DefinitionError` for one that pins
    nothing, `BuildError` when an upstream can't be asked.
    """
    project = load(workspace.root)
    mirrors = read_mirrors(os.environ)
    for variant in select("variant", names, project.variants):
        if (variant.folder / WHEELS).is_file():
            pin_variant(workspace, variant.name, dry_run=dry_run)
        else:
            _pin_sources(workspace, variant, mirrors, dry_run=dry_run)


def find_changes(variant: Variant, mirrors: Mirrors) -> tuple[Change, ...]:
    """Return what is newer upstream than a variant's `sources.toml` says.

    Raises `BuildError` when an upstream can't be asked or has no such thing.
    """
    found: dict[tuple[str, ...], tuple[str, str]] = {}
    base, installer = variant.base, variant.installer
    if isinstance(base, ImageBase):
        found["base", "digest"] = (base.digest, base_digest(base.image, mirrors))
    if installer:
        url, sha256 = newest_installer(installer, variant.platforms, mirrors)
        found["installer", "url"] = (installer.url, url)
        for platform in variant.platforms:
            found["installer", "sha256", platform] = (
                installer.sha256[platform],
                sha256[platform],
            )
    return tuple(
        Change(key=key, before=before, after=after)
        for key, (before, after) in found.items()
        if before != after
    )


def base_digest(image: str, mirrors: Mirrors) -> str:
    """Return the digest that the registry, or its mirror, has for `IMAGE:TAG` now.

    Raises `BuildError` where it has none, or can't be asked.
    """
    name = full_name(mirrors.base_image(image))
    repository, _, tag = name.rpartition(":") if ":" in name.rsplit("/", 1)[-1] else (name, "", "")
    host = repository.split("/", 1)[0]
    try:
        registry = Registry(
            host, read_credentials(host, os.environ), plain_http=is_plain_http(host, {})
        )
        try:
            digest = registry.digest(repository, tag or "latest")
        finally:
            registry.close()
    except PublishError as failed:
        raise BuildError(*failed.problems) from None
    if digest is None:
        raise BuildError.at(name, "the registry has no such image", "correct base.image")
    return digest


def newest_installer(
    installer: Installer, platforms: Sequence[str], mirrors: Mirrors
) -> tuple[str, dict[str, str]]:
    """Return the URL (with `{arch}`) and the sha256 by platform of the newest installer.

    The site's page lists names and hashes; a file whose hash it does not
    publish is downloaded for it.  Where the site has no page, the version
    stays.  Raises `BuildError` when it can't be asked, or lists no such file.
    """
    folder, _, name = installer.url.rpartition("/")
    listing = mirrors.installer or f"{folder}/"
    answer = _get(listing)
    if answer.status_code in NO_LIST:
        print(f"{mask(listing)} has no list of installers: the version stays")
        hashes = dict.fromkeys(platforms, "")
    else:
        _refuse(answer, listing)
        release = newest_release(answer.text, name, platforms)
        if release is None:
            what = f"lists no {name} for {', '.join(platforms)}, nor a newer one"
            raise BuildError.at(mask(listing), what, "correct installer.url")
        name, hashes = release.name, dict(release.sha256)
    url = f"{folder}/{name}"
    pinned = replace(installer, url=url)
    for platform, sha256 in hashes.items():
        hashes[platform] = sha256 or _hash_of(mirrors.installer_url(pinned.url_for(platform)))
    return url, hashes


def _pin_sources(
    workspace: Workspace, variant: Variant, mirrors: Mirrors, *, dry_run: bool
) -> None:
    path = variant.folder / "sources.toml"
    where = str(path.relative_to(workspace.root))
    if not isinstance(variant.base, ImageBase) and variant.installer is None:
        raise DefinitionError.at(where, "names nothing that could be pinned", "./inv list")
    changes = find_changes(variant, mirrors)
    text = set_values(path.read_text(), {change.key: change.after for change in changes}, where)
    for change in changes:
        print(f"{where}: {change}")
    if not changes:
        print(f"{where}: everything is the newest")
    elif dry_run:
        print(f"{where} would change; nothing was written")
    else:
        new = path.with_name(f".{path.name}.new")
        new.write_text(text)
        new.replace(path)


def _get(url: str, *, stream: bool = False) -> requests.Response:
    address = with_variables(url, os.environ, "mirrors.toml")
    try:
        return requests.get(address, timeout=TIMEOUT, stream=stream)
    except requests.RequestException as failed:
        raise BuildError.at(
            mask(url), mask(root_cause(failed)), "check the network, or docs/mirrors.md"
        ) from None


def _refuse(answer: requests.Response, url: str) -> None:
    if not answer.ok:
        said = f"the server answers {answer.status_code} {answer.reason}"
        raise BuildError.at(mask(url), said, "try again later, or name a mirror: docs/mirrors.md")


def _hash_of(url: str) -> str:
    """Download a file for its sha256: nothing of it is kept."""
    print(f"+ download {mask(url)} for its sha256")
    digest = hashlib.sha256()
    with _get(url, stream=True) as answer:
        _refuse(answer, url)
        try:
            for chunk in answer.iter_content(CHUNK):
                digest.update(chunk)
        except requests.RequestException as broken:
            raise BuildError.at(mask(url), mask(root_cause(broken)), "run this again") from None
    return digest.hexdigest()
