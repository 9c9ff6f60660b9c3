"""Which installers of Miniconda there are, by the page that lists them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from packaging.version import Version

from strata.model import MACHINES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# Miniconda3-py312_26.7.1-1-Linux-{arch}.sh
_NAME = re.compile(r"^(?P<head>.*_)(?P<version>\d+(\.\d+)+-\d+)(?P<tail>-.*)$")
_LINK = re.compile(r'<a\s[^>]*href="(?P<name>[^"/?#]+)"', re.IGNORECASE)
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")


@dataclass(frozen=True, kw_only=True)
class Release:
    """One version of the installer: its name, with `{arch}`, and the published hashes.

    `sha256` maps each platform to 64 hex digits, or to "" where the page has none.
    """

    name: str
    sha256: Mapping[str, str]


def newest_release(page: str, name: str, platforms: Sequence[str]) -> Release | None:
    """Return the newest release like `name`, none older, that the page lists for all platforms.

    `name` is `….sh` with `{arch}`: a release is like it that differs in nothing
    but the version.  Without a version in the name, only that very file is.
    Returns None where the page lists none.
    """
    listed = _listed(page)
    pattern = _NAME.match(name)
    templates = {name}
    if pattern:
        machine = "|".join(MACHINES.values())
        head, tail = re.escape(pattern["head"]), re.escape(pattern["tail"])
        tail = tail.replace(re.escape("{arch}"), f"(?:{machine})")
        like = re.compile(rf"{head}(\d+(?:\.\d+)+-\d+){tail}")
        found = (like.fullmatch(file) for file in listed)
        templates |= {f"{pattern['head']}{m[1]}{pattern['tail']}" for m in found if m}
    complete = [
        template
        for template in templates
        if _version(template) >= _version(name)
        and all(template.replace("{arch}", MACHINES[platform]) in listed for platform in platforms)
    ]
    if not complete:
        return None
    newest = max(complete, key=_version)
    return Release(
        name=newest,
        sha256={
            platform: listed[newest.replace("{arch}", MACHINES[platform])] for platform in platforms
        },
    )


def _version(name: str) -> Version:
    found = _NAME.match(name)
    return Version(found["version"]) if found else Version("0")


def _listed(page: str) -> dict[str, str]:
    """Return the files that a page links to, and the sha256 that stands beside each, if any."""
    links = list(_LINK.finditer(page))
    ends = [link.start() for link in links[1:]] + [len(page)]
    files = {}
    for link, end in zip(links, ends, strict=True):
        digest = _SHA256.search(page, link.end(), end)
        files[unquote(link["name"])] = digest[0] if digest else ""
    return files
