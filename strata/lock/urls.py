"""Channel and package URLs: where they lead, and that they carry no secret."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from strata.secrets import hide

if TYPE_CHECKING:
    from urllib.parse import SplitResult

CONDA_HOST = "https://conda.anaconda.org/"
# Anaconda's own channels, whose terms don't allow what we do; conda.anaconda.org
# mirrors them under these names.
DEFAULTS = frozenset({"anaconda", "defaults", "free", "main", "msys2", "pro", "r"})
DEFAULTS_HOSTS = frozenset({"repo.anaconda.com", "repo.continuum.io"})
MASK = "***"

_VARIABLE = re.compile(r"\$(\w+|\{\w+\})\Z")
_WORD = r"[^/?#@\s\"'(]"
_USERINFO = re.compile(rf"(?<!{_WORD}){_WORD}+(?:@{_WORD}*)*(?=@)")
_TOKEN = re.compile(r"(?<=/t/)[^/?#\s]+")
_QUERY = re.compile(r"(?<=\?)[^#\s]+")
_FRAGMENT = re.compile(r"(?<=#)\S+")
_URL = re.compile(r"\w+://\S+")


def mask(text: str) -> str:
    """Return the text with every secret in its URLs replaced by `***`.

    `$VAR` and `${VAR}` are no secrets and stay; where their values were put in,
    the names stand again.
    """
    text = _USERINFO.sub(lambda found: _mask_parts(found[0]), hide(text))
    text = _TOKEN.sub(lambda found: _mask_parts(found[0]), text)
    return _URL.sub(lambda found: _FRAGMENT.sub(MASK, _QUERY.sub(MASK, found[0])), text)


def _mask_parts(text: str) -> str:
    return ":".join(part if _VARIABLE.match(part) else MASK for part in text.split(":"))


def secret_in(url: str) -> str | None:
    """Say what kind of secret a URL carries, if it does.

    A user, a password or a token must be written as `$VAR` or `${VAR}`.
    Literal masks such as `<TOKEN>` are refused too: nobody can use them.
    Package URLs have neither query nor fragment, so whatever stands there is
    refused.
    """
    for pattern, kind in (
        (_USERINFO, "a user name or password"),
        (_TOKEN, "a token"),
    ):
        for found in pattern.finditer(url):
            if any(not _VARIABLE.match(part) for part in found[0].split(":")):
                return kind
    if _QUERY.search(url):
        return "a query, which may hold a secret"
    if _FRAGMENT.search(url):
        return "a fragment, which may hold a secret"
    return None


def split(url: str) -> SplitResult | None:
    """Return the parts of a URL, or None for a text that can be none (`http://[bad/`)."""
    try:
        return urlsplit(url)
    except ValueError:
        return None


def is_local(url: str) -> bool:
    """Say whether a channel or a package URL means something on one machine only."""
    parts = split(url)
    if url.startswith(("/", "./", "../", "~")) or (parts and parts.scheme == "file"):
        return True
    return parts is not None and parts.hostname in {"localhost", "127.0.0.1", "::1", "0.0.0.0"}  # noqa: S104 - compared


def is_defaults(channel: str) -> bool:
    """Say whether a channel is one of Anaconda's `defaults`, by name or by URL."""
    parts = split(channel)
    if parts is None:
        return False
    if parts.hostname in DEFAULTS_HOSTS:
        return True
    if "://" in channel and parts.hostname not in {"conda.anaconda.org", "anaconda.org"}:
        return False
    return re.sub(r"^/?(t/[^/]*/)?", "", parts.path).split("/")[0] in DEFAULTS


def base_of(channel: str) -> str:
    """Return the URL, ending in `/`, below which all packages of a channel are.

    A bare name is a channel of conda.anaconda.org.  `${VAR}` is written `$VAR`,
    as both mean the same.
    """
    url = channel if "://" in channel else f"{CONDA_HOST}{channel}"
    return re.sub(r"\$\{(\w+)\}", r"$\1", url.rstrip("/") + "/")
