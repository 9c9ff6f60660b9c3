"""What the container's variables and secrets say about the Jupyter server.

Jupyter's configuration file (`/opt/env/etc/jupyter/jupyter_server_config.py`) calls
`settle`.  A setting that can't be right ends the server before it listens: it must
never be open, nor closed to its owner, because of a slip.  Runs on Python 3.9.
"""

from __future__ import annotations

import functools
import os
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Read = Callable[[str], "str | None"]

SECRETS = "/run/secrets"  # where Docker and Compose put them; Kubernetes can
TOKEN = "JUPYTER_TOKEN"  # noqa: S105 - its name
PASSWORD_HASH = "JUPYTER_PASSWORD_HASH"  # noqa: S105 - its name
PORT = 8888
ALL_INTERFACES = "0.0.0.0"  # noqa: S104 - of the container
MOST = 65535  # of ports
EX_CONFIG = 78  # of sysexits.h
# What jupyter_server.auth.security.passwd_check reads.
HASH = re.compile(r"argon2:\$argon2(id|i|d)\$\S+|sha(1|256|512):[0-9a-f]+:[0-9a-f]+")


class SettingError(ValueError):
    """A setting that can't be right: what it is, and how to put it right."""

    def __init__(self, what: str, fix: str) -> None:
        """Take both halves of the text."""
        super().__init__(f"{what}; fix: {fix}")


@dataclass(frozen=True)
class Settings:
    """How the server listens and whom it lets in; an empty `token` means a random one.

    `base_url` begins and ends with /.  `public_url` is where people reach the
    server behind a proxy, "" where there is none.
    """

    ip: str
    port: int
    base_url: str
    public_url: str
    token: str
    password_hash: str

    @property
    def origin(self) -> str:
        """Scheme and host of `public_url`, as browsers name the page's origin."""
        return "{0.scheme}://{0.netloc}".format(urlsplit(self.public_url))


def decide(environ: Mapping[str, str], read: Read) -> Settings:
    """Return the settings; `read` returns a file's text, None where there is none.

    Raises `SettingError`.
    """
    password_hash = _secret(PASSWORD_HASH, environ, read)
    if password_hash and not HASH.fullmatch(password_hash):
        raise SettingError(
            f"{PASSWORD_HASH} is no hash of Jupyter's (argon2:..., sha256:...)",
            "jupyter server password makes one; in compose.yaml write $$ for each $",
        )
    token = _secret(TOKEN, environ, read)
    if not token.isprintable():
        raise SettingError(f"{TOKEN} has a line break or a control character", "leave it out")
    if token != token.strip():  # Jupyter strips what people type in, and would let nobody in
        raise SettingError(f"{TOKEN} begins or ends with a space", "leave the space out")
    public_url = environ.get("JUPYTER_PUBLIC_URL", "")
    parts = urlsplit(public_url)
    if public_url and not (parts.scheme in {"http", "https"} and parts.netloc):
        raise SettingError(
            f"JUPYTER_PUBLIC_URL is no address: {public_url}",
            "such as https://gpu.example.org/ada/",
        )
    return Settings(
        ip=environ.get("JUPYTER_IP") or ALL_INTERFACES,
        port=_port(environ.get("JUPYTER_PORT", "")),
        base_url=_base_url(environ.get("JUPYTER_BASE_URL") or "/"),
        public_url=public_url,
        token=token,
        password_hash=password_hash,
    )


@functools.cache
def settle() -> Settings:
    """Return the settings, and take the secrets out of what kernels and terminals inherit.

    Jupyter reads its configuration more than once: the first time counts.  A
    setting that can't be right ends the program with 78.
    """
    try:
        settings = decide(os.environ, _read)
    except SettingError as error:
        print(f"jupyter: {error}", file=sys.stderr)
        sys.exit(EX_CONFIG)
    for name in (TOKEN, PASSWORD_HASH):
        os.environ.pop(name, None)
        os.environ.pop(f"{name}_FILE", None)
    return settings


def _secret(name: str, environ: Mapping[str, str], read: Read) -> str:
    """Return a secret from its variable, the file that NAME_FILE names, or a mounted secret."""
    value, path = environ.get(name, ""), environ.get(f"{name}_FILE", "")
    if value and path:
        raise SettingError(f"{name} and {name}_FILE are both given", "give one of them")
    if value:
        return value
    place = path or f"{SECRETS}/{name.lower()}"
    text = read(place)
    if text is None and not path:
        return ""
    if text is None:
        raise SettingError(f"{name}_FILE: there is no {path}", "mount it into the container")
    if not text.strip():
        raise SettingError(f"{place} is empty", "write the secret into it, or leave it out")
    return text.rstrip("\r\n")


def _port(text: str) -> int:
    # Kubernetes gives pods an address of this name where a Service is called "jupyter".
    if not text or text.startswith("tcp://"):
        return PORT
    if not (text.isascii() and text.isdigit() and 0 < int(text) <= MOST):
        raise SettingError(f"JUPYTER_PORT is no port: {text}", f"a number from 1 to {MOST}")
    return int(text)


def _base_url(text: str) -> str:
    if not re.fullmatch(r"[\w.~%+@/-]*", text, re.ASCII):
        raise SettingError(f"JUPYTER_BASE_URL is no path: {text}", "such as /ada/lab/")
    path = text.strip("/")
    return f"/{path}/" if path else "/"


def _read(path: str) -> str | None:
    try:
        return Path(path).read_text("utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(
            f"{path} cannot be read by uid {os.getuid()} ({error})", "chmod a+r on the host"
        ) from None
