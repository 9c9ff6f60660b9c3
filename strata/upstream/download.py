"""Downloads one file whose sha256 is known; whatever is kept has been verified.

The bytes are written to `.SHA256.part`, verified, and then renamed to `SHA256`:
a file under its own name is whole, and a download that broke is taken up again
where it ended, in this run or in the next.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import requests

from strata.embedded.wheels import sha256_of
from strata.errors import BuildError, HostError, LockError
from strata.lock.urls import mask
from strata.upstream.mirrors import with_variables

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from strata.errors import StrataError

TIMEOUT = (10, 60)  # seconds to connect, and between two bytes
ATTEMPTS = 5
FIRST_PAUSE = 0.5  # seconds; each pause is twice the one before
CHUNK = 1 << 16  # bytes: so many are lost, at most, where a connection breaks
# What passes by itself (RFC 9110): a timeout, too many requests, a server in trouble.
PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
TOKENS = "docs/mirrors.md says where the address of a mirror and its token go"


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """One file: what people call it, where it is, what it must be, and who says so.

    `url` may hold `$VAR`, and is shown as it stands; `sha256` is 64 hex digits;
    `headers` go with every request for it.  `where` is the file that pins the
    hash, `repin` the command that writes it anew, `layer` the one that it is for,
    if it is for one.
    """

    name: str
    url: str
    sha256: str
    where: str
    repin: str
    layer: str = ""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


class _BrokenError(Exception):
    """A failure that another attempt may mend."""


def download(
    wanted: Wanted, folder: Path, *, pause: Callable[[float], object] = time.sleep
) -> Path:
    """Return the file, downloaded into `folder` unless it is there and whole.

    Servers in trouble and broken connections are tried again, `ATTEMPTS` times
    in all.  Raises `LockError` when the server has another file than the pinned
    one, `BuildError` when there is none to be had, `HostError` when it can't be
    written.  The caller sees to it that no two processes download at once.
    """
    return _keep(wanted, folder, lambda part: _fill(wanted, part, pause))


def take(wanted: Wanted, folder: Path, *, source: Path) -> Path:
    """Return the file, copied into `folder` from a folder `source` where it has its hash as name.

    Raises `BuildError` where it isn't there, else as `download` does.
    """
    file = source / wanted.sha256

    def copy(part: Path) -> None:
        if not file.is_file():
            raise BuildError.at(
                wanted.name,
                f"is not in {source.parent}",
                "./inv fetch again, where there is a network",
            )
        shutil.copyfile(file, part)
        if (found := sha256_of(part)) != wanted.sha256:
            part.unlink()
            raise _another_file(wanted, str(file), found)

    return _keep(wanted, folder, copy)


def _keep(wanted: Wanted, folder: Path, fill: Callable[[Path], None]) -> Path:
    """Return the file in `folder`, filled with the pinned bytes where it is not there and whole."""
    if not re.fullmatch("[0-9a-f]{64}", wanted.sha256):
        raise LockError.at(wanted.where, f"{wanted.name} has no sha256", wanted.repin)
    target = folder / wanted.sha256
    try:
        if target.is_file():
            if sha256_of(target) == wanted.sha256:
                return target
            target.unlink()
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f".{wanted.sha256}.part"
        fill(part)
        part.replace(target)
    except OSError as failed:  # of the file system: those of the network end in _fetch
        where = failed.filename or folder
        raise HostError.at(
            str(where),
            f"{wanted.name} cannot be kept: {failed.strerror}",
            "make room, or move the cache: STRATA_CACHE=FOLDER",
        ) from None
    return target


def _fill(wanted: Wanted, part: Path, pause: Callable[[float], object]) -> None:
    """Bring the pinned bytes into `part`, or raise."""
    reason = ""
    url = with_variables(wanted.url, os.environ, wanted.where)
    with requests.Session() as session:
        for attempt in range(ATTEMPTS):
            if attempt:
                pause(FIRST_PAUSE * 2 ** (attempt - 1))
            try:
                kept = _fetch(session, wanted, url, part)
            except _BrokenError as broken:
                reason = str(broken)
                continue
            found = sha256_of(part)
            if found == wanted.sha256:
                return
            part.unlink()
            if not kept:
                raise _another_file(wanted, mask(wanted.url), found)
            # The first bytes may be of another day's file, or of another mirror's.
            reason = "what an earlier attempt had left was of no use"
    raise BuildError.at(
        wanted.name,
        f"{mask(wanted.url)}: {reason} ({ATTEMPTS} attempts)",
        "run this again, which goes on where it ended; or name a mirror: docs/mirrors.md",
    )


def _fetch(session: requests.Session, wanted: Wanted, url: str, part: Path) -> int:
    """Write what is missing of `part`; return how many bytes of it were kept."""
    there = part.stat().st_size if part.exists() else 0
    # Compressed transfer would make the offsets those of other bytes.
    headers = {**wanted.headers, "Accept-Encoding": "identity"}
    if there:
        headers["Range"] = f"bytes={there}-"
    try:
        with session.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
            status = answer.status_code
            if status == requests.codes.requested_range_not_satisfiable and there:
                part.unlink()
                raise _BrokenError("the server has fewer bytes than an earlier attempt left")
            if not answer.ok:
                raise _refused(wanted, answer)
            span = answer.headers.get("Content-Range", "")
            resumes = status == requests.codes.partial_content
            if resumes and not span.startswith(f"bytes {there}-"):
                part.unlink(missing_ok=True)
                raise _BrokenError(f"the server sent another range than the one asked for: {span}")
            with part.open("ab" if resumes else "wb") as sink:
                for chunk in answer.iter_content(CHUNK):
                    sink.write(chunk)
    except requests.RequestException as failed:
        raise _network(wanted, failed) from None
    return there if resumes else 0


def _network(wanted: Wanted, failed: requests.RequestException) -> Exception:
    if isinstance(failed, (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema)):
        return BuildError.at(wanted.name, f"{mask(wanted.url)} is no address", TOKENS)
    if isinstance(failed, requests.TooManyRedirects):
        return BuildError.at(wanted.name, f"{mask(wanted.url)} redirects in a circle", TOKENS)
    if isinstance(failed, requests.exceptions.SSLError):
        return BuildError.at(
            wanted.name,
            f"{mask(wanted.url)}: the certificate is not trusted: {mask(root_cause(failed))}",
            "name your company's certificates: ca_bundle in docs/mirrors.md",
        )
    return _BrokenError(mask(root_cause(failed)))


def _refused(wanted: Wanted, answer: requests.Response) -> Exception:
    address = answer.url if answer.history else wanted.url
    said = f"{mask(address)} answers {answer.status_code} {answer.reason}"
    if answer.status_code in PASSING:
        return _BrokenError(said.removeprefix(f"{mask(wanted.url)} "))
    if answer.status_code in {requests.codes.unauthorized, requests.codes.forbidden}:
        return BuildError.at(wanted.name, f"{said}: it wants a token, or another one", TOKENS)
    fix = f"{wanted.repin}; or name a mirror that has it: docs/mirrors.md"
    return BuildError.at(wanted.name, said, fix)


def _another_file(wanted: Wanted, place: str, found: str) -> StrataError:
    return LockError.at(
        wanted.where,
        f"{wanted.name} is not the file that is pinned"
        f"\n    from:   {place}"
        f"\n    pinned: sha256 {wanted.sha256}"
        f"\n    found:  sha256 {found}",
        f"ask who keeps that place why it has another file; {wanted.repin} pins anew",
    )


def root_cause(failed: BaseException) -> str:
    """Return the innermost reason of a network failure, which is the one that people know."""
    inner: BaseException | None = failed
    cause = failed
    while inner is not None:
        cause = inner
        reason = getattr(inner, "reason", None)
        nested = [arg for arg in inner.args if isinstance(arg, BaseException)]
        inner = reason if isinstance(reason, BaseException) else nested[0] if nested else None
    return f"{type(cause).__name__}: {cause}"
