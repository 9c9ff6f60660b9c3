"""Public keys: those of a file, else those of the agent and of ~/.ssh."""

from __future__ import annotations

import base64
import binascii
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from strata.errors import DefinitionError, HostError, StrataError
from strata.run import run

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

# A line of authorized_keys: options, the key's type, its blob, a comment (sshd(8)).
_KEY = re.compile(
    r"(?:^|\s)(ssh-[a-z0-9-]+|ecdsa-sha2-[a-z0-9-]+|sk-[a-z0-9-]+@openssh\.com)"
    r"\s+([A-Za-z0-9+/]+={0,3})(?:\s|$)"
)
PRIVATE = "PRIVATE KEY"
AGENT_PATIENCE = 10.0  # seconds
NO_KEY_FIX = "ssh-keygen -t ed25519 makes one; or name yours: --key FILE.pub"


@dataclass(frozen=True, kw_only=True)
class Keys:
    """Lines for authorized_keys, and the files of the private keys; `is_named`: by `--key`."""

    lines: tuple[str, ...]
    identities: tuple[Path, ...] = ()
    is_named: bool = False


def find_keys(key: str, cwd: Path, home: Path) -> Keys:
    """Return the keys that shall be let in: those of the file `key`, else all that are ours.

    Raises `DefinitionError` when the file holds none, or when there is none at
    all.
    """
    if key:
        return read_key((cwd / Path(key).expanduser()).resolve())
    folder = home / ".ssh"
    kept, reason = agent_keys(os.environ)
    files = sorted(folder.glob("*.pub"))
    texts = [kept, *(file.read_text(errors="replace") for file in files)]
    lines = key_lines("\n".join(texts))
    if not lines:
        asked = f"there is none in {folder}/*.pub, nor in ssh-agent"
        raise DefinitionError.at(
            "public key", f"{asked} ({reason})" if reason else asked, NO_KEY_FIX
        )
    return Keys(lines=lines, identities=private_files(files))


def read_key(file: Path) -> Keys:
    """Return the public keys of a file; of a private key's file those of FILE.pub beside it.

    Raises `DefinitionError` when it can't be read or holds none.
    """
    where = f"--key {file}"
    try:
        text = file.read_text(errors="replace")
        if PRIVATE in text:  # it stays here: only its public half is needed
            file = file.with_name(f"{file.name}.pub")
            text = file.read_text(errors="replace")
    except OSError as error:
        raise DefinitionError.at(where, f"{error.strerror}: {error.filename}", NO_KEY_FIX) from None
    lines = key_lines(text)
    if not lines:
        raise DefinitionError.at(where, "it holds no public key", NO_KEY_FIX)
    return Keys(lines=lines, identities=private_files([file]), is_named=True)


def private_files(files: Iterable[Path]) -> tuple[Path, ...]:
    """Return the private keys beside public ones: the client tries few names by itself."""
    named = [file.with_suffix("") for file in files if file.suffix == ".pub"]
    return tuple(private for private in named if private.is_file())


def key_lines(text: str) -> tuple[str, ...]:
    """Return the lines of `text` that are public keys, each key once."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        blob = key_blob(line)
        if blob:
            found.setdefault(blob, line.strip())
    return tuple(found.values())


def key_blob(line: str) -> str:
    """Return a public key's own part, without options and comment; "" if it is none."""
    match = _KEY.search(line)
    if match is None or line.lstrip().startswith("#"):
        return ""
    try:
        raw = base64.b64decode(match[2], validate=True)
    except binascii.Error:
        return ""
    # The blob starts with its type, as a length of four bytes and the text (RFC 4253, 6.6).
    length = int.from_bytes(raw[:4], "big")
    return match[2] if raw[4 : 4 + length] == match[1].encode() else ""


def same_keys(one: Iterable[str], other: Iterable[str]) -> bool:
    """Tell whether two lists of lines have a key in common."""
    return not {key_blob(line) for line in one}.isdisjoint(key_blob(line) for line in other)


class _AgentError(StrataError):
    """ssh-add says that there is no agent, or none with a key."""


def agent_keys(environ: Mapping[str, str]) -> tuple[str, str]:
    """Return what ssh-agent holds, as text, and why that is nothing where it is."""
    if not environ.get("SSH_AUTH_SOCK"):
        return "", "none runs"
    try:
        argv = ["ssh-add", "-L"]
        patience = AGENT_PATIENCE
        kept = run(
            argv, error=_AgentError, where="ssh-agent", fix=NO_KEY_FIX, timeout=patience, quiet=True
        )
    except (
        _AgentError,
        HostError,
    ) as none:  # an agent is one of two places: the other is asked too
        return "", none.problems[0].what
    return kept, ""
