"""The engine's side of a push: one image, one tag, and what the engine says about it."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import requests
from docker.errors import APIError, DockerException, ImageNotFound
from urllib3.exceptions import HTTPError

from strata.credentials import LOGIN
from strata.errors import Problem, PublishError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from docker import DockerClient

    from strata.credentials import Credentials

# What reading the engine's answer raises when the engine fails or goes away.
_ENGINE_ERRORS = (DockerException, requests.RequestException, HTTPError, OSError, ValueError)
_DENIED = ("denied", "unauthorized", "authentication required", "no basic auth", "401", "403")
_UNREACHABLE = ("dial tcp", "no such host", "timeout", "unreachable", "eof", "tls:", "x509:")
_DIGEST = re.compile(r": digest: (sha256:[0-9a-f]{64}) size: ")
_DONE = ("pushed", "layer already exists", "mounted from")


@dataclass(frozen=True, kw_only=True)
class Pusher:
    """Pushes images by their digests through one engine.

    `client` is docker's SDK; every failure of the engine is a `PublishError`.
    """

    client: DockerClient
    credentials: Credentials
    log: Callable[[str], None]

    def push(self, digest: str, repository: str, tag: str) -> None:
        """Push the local image `digest` to `repository:tag` (`HOST[:PORT]/OWNER/NAME:TAG`).

        Raises `PublishError` when the engine cannot, says that it could not, or
        sent anything but `digest`.
        """
        reference = f"{repository}:{tag}"
        self.log(f"pushing {reference}")
        try:
            with self._local_tag(digest, repository, tag):
                stream = self.client.api.push(
                    repository,
                    tag=tag,
                    stream=True,
                    decode=True,
                    auth_config=self.credentials.as_engine_takes_them(),
                )
                sent = read_push_stream(stream, reference, self.log)
        except _ENGINE_ERRORS as failure:
            raise PublishError(push_problem(reference, _text(failure))) from failure
        if sent != digest:
            raise PublishError.at(
                reference,
                f"the engine pushed {sent}, not {digest}",
                "use an engine with the containerd image store: ./inv engine start",
            )

    @contextmanager
    def _local_tag(self, digest: str, repository: str, tag: str) -> Iterator[None]:
        """Give the image the name under which it is pushed, and leave the store as it was."""
        reference = f"{repository}:{tag}"
        before = local_id(self.client, reference)
        if before == digest:
            yield
            return
        self.client.api.tag(digest, repository, tag)
        try:
            yield
        finally:
            if before is None:
                self.client.api.remove_image(reference, noprune=True)
            else:
                self.client.api.tag(before, repository, tag)


def read_push_stream(items: Iterable[object], reference: str, log: Callable[[str], None]) -> str:
    """Read the engine's answer to a push and return the digest that it names.

    Each layer is logged once, when it has arrived.  Raises `PublishError` for the
    first item that is an error, and when the stream ends without a digest.
    """
    digest = error = ""
    for item in items:  # to its end, so that the connection is free again
        if not isinstance(item, dict):
            error = error or f"the engine answered {item!r}"
            continue
        if "error" in item or "errorDetail" in item:
            detail = item.get("errorDetail")
            message = detail.get("message") if isinstance(detail, dict) else detail
            error = error or str(item.get("error") or message or "an error without a text")
        status = str(item.get("status", ""))
        if item.get("id") and status.lower().startswith(_DONE):
            log(f"  {item['id']}: {status}")
        # Of the engine's image stores only the old one adds an `aux` item, both say this.
        if named := _DIGEST.search(status):
            digest = named[1]
    if not digest:
        error = error or "the engine's answer ended before the push did"
    if error:
        raise PublishError(push_problem(reference, error))
    return digest


def push_problem(reference: str, message: str) -> Problem:
    """Return the problem for what the engine says about a push, with the fix that suits it."""
    lower = message.lower()
    if any(word in lower for word in _DENIED):
        fix = LOGIN.format(host=reference.partition("/")[0])
    elif any(word in lower for word in _UNREACHABLE):
        fix = "check the host, the port, its certificate, and the engine's own network and proxy"
    else:
        fix = "push again; the layers that arrived are not sent twice"
    return Problem(where=reference, what=f"the push failed: {message}", fix=fix)


def local_id(client: DockerClient, reference: str) -> str | None:
    """Return the id of a local image, or None; raises `PublishError` if the engine fails."""
    try:
        found: Mapping[str, object] = client.api.inspect_image(reference)  # type: ignore[no-untyped-call]
    except ImageNotFound:
        return None
    except _ENGINE_ERRORS as failure:
        raise PublishError.at(
            reference, f"the engine cannot be asked: {_text(failure)}", "./inv engine status"
        ) from failure
    return str(found["Id"])


def engine_info(client: DockerClient) -> Mapping[str, object]:
    """Return what the engine says about itself; raises `PublishError` if it fails."""
    try:
        info: Mapping[str, object] = client.api.info()
    except _ENGINE_ERRORS as failure:
        raise PublishError.at(
            "engine", f"it cannot be asked: {_text(failure)}", "./inv engine status"
        ) from failure
    return info


def _text(failure: Exception) -> str:
    if isinstance(failure, APIError) and failure.explanation:
        return str(failure.explanation)
    return f"{type(failure).__name__}: {failure}"
