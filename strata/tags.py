"""Names and tags: what people have, turned into references that registries take.

The grammar is that of the OCI distribution specification ("Pulling manifests")
and of Docker's references, which add the registry's host in front.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from strata.errors import DefinitionError

if TYPE_CHECKING:
    from datetime import date

    from strata.errors import StrataError

MAX_TAG = 128  # characters, OCI distribution specification
MAX_REPOSITORY = 255  # characters, host and path together, Docker's references

_COMPONENT = re.compile(r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,127}")
_VARIANT = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
_HOST = re.compile(
    r"(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*|\[[a-f0-9:]+\])"
    r"(?::[0-9]{1,5})?"
)
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_STAMP = re.compile(r"-[0-9]{8}-g[0-9a-f]{7}")
_MARK = re.compile(r"-x[0-9a-f]{10}")  # how `tag_of` ends what it had to change
_STAMP_LENGTH = len("-YYYYMMDD-gSHA7SHA")
_REGISTRY_FIX = "write it as HOST[:PORT]/OWNER, for example ghcr.io/OWNER or localhost:5000/OWNER"


@dataclass(frozen=True, kw_only=True)
class Registry:
    """The place in a registry under which the images are kept."""

    host: str
    owner: str

    def __str__(self) -> str:
        """Render as the prefix of a reference."""
        return f"{self.host}/{self.owner}"


def tag_of(text: str) -> str:
    """Return a valid tag for any text that is not empty: a branch, a version, a name.

    A valid tag is returned as it is.  Anything else loses what no tag may hold
    and ends in a hash of the whole text, so that distinct texts keep distinct
    tags (`a/b` is not `a-b`, nor is any text the tag of another one).

    Raises `DefinitionError` for an empty text.
    """
    if not text:
        raise DefinitionError.at("tag", "it is empty", "name a branch, a version or a commit")
    if _TAG.fullmatch(text) and not _ends_in(_MARK, text):
        return text
    mark = f"-x{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:10]}"
    kept = re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip(".-") or "_"
    return kept[: MAX_TAG - len(mark)].rstrip(".-") + mark


def immutable_tag(variant: str, day: date, sha: str, *, dirty: bool) -> str:
    """Return `VARIANT-YYYYMMDD-gSHA7`, the tag that is never moved.

    `day` is the (UTC) day on which the images were recorded, built or checked, last;
    `sha` the full or short id of the commit that they were built from.

    Raises `DefinitionError` where that commit would be a lie: outside git, or
    with changes that are in no commit.
    """
    validate_variant_name(variant)
    if not sha:
        raise DefinitionError.at(
            "git",
            "there is no commit, so nothing says what the images were built from",
            "push from a git clone: git init && git add -A && git commit",
        )
    if not _COMMIT.fullmatch(sha):
        raise DefinitionError.at(
            "git", f"{sha!r} is not the id of a commit", "git rev-parse HEAD prints one"
        )
    if dirty:
        raise DefinitionError.at(
            "git",
            f"there are changes that commit {sha[:7]} does not have, so its tag would not say "
            "what the images were built from",
            "commit or stash them (git status lists them), build, and push again",
        )
    return f"{variant}-{day:%Y%m%d}-g{sha[:7]}"


def validate_image_name(name: str, where: str = "image name") -> None:
    """Raise `DefinitionError` unless a registry takes `name` as a repository's last part."""
    if _COMPONENT.fullmatch(name) and len(name) <= MAX_TAG:
        return
    reason = (
        f"it has {len(name)} characters, {MAX_TAG} are allowed"
        if len(name) > MAX_TAG
        else "names are small letters and digits, joined by single dots, underscores or hyphens"
    )
    raise DefinitionError.at(where, f"no registry takes {_shown(name)}: {reason}", _rename(name))


def validate_variant_name(name: str, where: str = "variant name") -> None:
    """Raise `DefinitionError` unless `name` can be a tag and the start of immutable ones."""
    longest = MAX_TAG - _STAMP_LENGTH
    if len(name) > longest:
        reason = f"it has {len(name)} characters, {longest} leave room for date and commit"
    elif not _VARIANT.fullmatch(name):
        reason = "variants are small letters and digits, joined by single dots, _ or -"
    elif _ends_in(_STAMP, name):
        reason = "it ends like the immutable tag of another variant"
    elif _ends_in(_MARK, name):
        reason = "it ends like a tag that was made from a branch"
    else:
        return
    raise DefinitionError.at(where, f"{_shown(name)} cannot be a tag: {reason}", _rename(name))


def validate_tag(tag: str, where: str = "tag") -> None:
    """Raise `DefinitionError` unless a registry takes `tag` as it is."""
    if not _TAG.fullmatch(tag):
        raise DefinitionError.at(
            where,
            f"no registry takes {_shown(tag)}: tags are 1 to {MAX_TAG} letters, digits, dots, "
            "underscores and hyphens, and start with no dot or hyphen",
            f"use {tag_of(tag) if tag else 'a name'}",
        )


def validate_registry(text: str, where: str = "registry") -> None:
    """Raise `DefinitionError` unless `text` is `HOST[:PORT]/OWNER` as Docker reads it."""
    parse_registry(text, where)


def parse_registry(text: str, where: str = "registry") -> Registry:
    """Return host and owner of `HOST[:PORT]/OWNER`, both in small letters.

    Hosts are the same in any case, and so are the owners of the registries that
    have capital letters in theirs (`MyOrg` at GitHub), while no reference may
    have any.

    Raises `DefinitionError`; a password in `text` is not repeated in it.
    """

    def refuse(what: str, fix: str = _REGISTRY_FIX) -> StrataError:
        return DefinitionError.at(where, what, fix)

    if "@" in text:
        raise refuse(
            "it has an @: user names, passwords and digests do not belong there",
            "leave it out; docker login HOST keeps the credentials",
        )
    if "://" in text:
        raise refuse(f"{_shown(text)} is a URL", f"leave {text.partition('://')[0]}:// out")
    first, slash, rest = text.partition("/")
    host, owner = first.lower(), rest.lower().rstrip("/")
    if not slash or not owner:
        raise refuse(f"{_shown(text)} is not a host and an owner")
    if not (host == "localhost" or "." in host or ":" in host):
        raise refuse(_no_host(first), f"{_REGISTRY_FIX}; Docker Hub is docker.io/{host}")
    if not _HOST.fullmatch(host):
        raise refuse(f"{_shown(first)} is not the name of a host")
    for component in owner.split("/"):
        if not _COMPONENT.fullmatch(component):
            raise refuse(
                f"no registry takes the owner {_shown(component)}: owners are letters and digits, "
                "joined by single dots, underscores or hyphens"
            )
    if len(host) + len(owner) + 1 + len("/x") > MAX_REPOSITORY:
        raise refuse(f"it has {len(text)} characters; with an image {MAX_REPOSITORY} are allowed")
    return Registry(host=host, owner=owner)


def repository(registry: str, image_name: str) -> str:
    """Return `HOST[:PORT]/OWNER/NAME` for an image under `registry` (`HOST[:PORT]/OWNER`).

    Raises `DefinitionError` if either is not valid, or both are too long together.
    """
    place = parse_registry(registry)
    validate_image_name(image_name)
    name = f"{place}/{image_name}"
    if len(name) > MAX_REPOSITORY:
        raise DefinitionError.at(
            "registry",
            f"{_shown(name)} has {len(name)} characters, {MAX_REPOSITORY} are allowed",
            "choose a shorter owner or image name",
        )
    return name


def _no_host(first: str) -> str:
    # Docker's trap: without a dot, a port or "localhost" the first part is an
    # owner on Docker Hub, unless a capital letter makes it a host.
    if first != first.lower():
        return (
            f"Docker would take {_shown(first)} for the host of a registry, because of its "
            "capital letters, and it is none"
        )
    return f"{_shown(first)} is not a host: it has no dot, no port, and is not localhost"


def _ends_in(pattern: re.Pattern[str], text: str) -> bool:
    return re.search(rf"{pattern.pattern}\Z", text) is not None


def _shown(text: str) -> str:
    longest = 60
    return repr(text if len(text) <= longest else f"{text[:longest]}...")


def _rename(name: str) -> str:
    kept = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40].rstrip("-")
    return f"rename it, for example {kept or 'train'}"
