"""What `docker login` kept for a registry."""

from __future__ import annotations

import base64
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

from docker import auth as docker_auth
from docker.errors import DockerException

from strata.errors import PublishError

if TYPE_CHECKING:
    from collections.abc import Mapping

LOGIN = (
    "docker login {host} with a user who may push there (at ghcr.io: a token with write:packages)"
)
HUB = ("docker.io", "index.docker.io", "registry-1.docker.io")


@dataclass(frozen=True, kw_only=True)
class Credentials:
    """What `docker login` kept for one host: a password, or a token, or nothing."""

    username: str = ""
    password: str = ""
    identity_token: str = ""

    def __repr__(self) -> str:
        """Keep secrets out of logs and tracebacks."""
        return f"Credentials(username={self.username!r})"

    @property
    def is_empty(self) -> bool:
        """Whether nothing is kept, so that requests go out without a name."""
        return not (self.identity_token or (self.username and self.password))

    @property
    def basic(self) -> str:
        """The value of an `Authorization` header (RFC 7617)."""
        pair = f"{self.username}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"

    def as_engine_takes_them(self) -> dict[str, str]:
        """Return the engine API's `X-Registry-Auth`, as docker's SDK wants it."""
        if self.identity_token:
            return {"identitytoken": self.identity_token}
        return {"username": self.username, "password": self.password}


def read_credentials(host: str, environ: Mapping[str, str]) -> Credentials:
    """Return what `docker login` keeps for `host`: in its file or in a credential helper.

    The file is the one that docker's client reads in the environment `environ`.
    Raises `PublishError` when the file is broken or the helper fails.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of a missing helper, which then fails
            kept = docker_auth.load_config(
                config_path=_config_file(environ), credstore_env=dict(environ)
            ).resolve_authconfig("docker.io" if host in HUB else host)
    except (DockerException, ValueError, OSError) as broken:
        raise PublishError.at(
            host,
            f"docker's credentials cannot be read: {type(broken).__name__}",
            f"repair ~/.docker/config.json and its credential helper, or docker login {host}",
        ) from None
    # Entries of the file are spelled in small letters, those of helpers in capitals.
    entry = {str(key).lower(): str(value) for key, value in (kept or {}).items() if value}
    return Credentials(
        username=entry.get("username", ""),
        password=entry.get("password", ""),
        identity_token=entry.get("identitytoken", ""),
    )


def _config_file(environ: Mapping[str, str]) -> str | None:
    folder = environ.get("DOCKER_CONFIG")
    return f"{folder}/config.json" if folder else None
