"""What OpenSSH's client needs: the host's key, pinned, and the block of a configuration."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Login:
    """A way into a container: its name stands for the host, at a port of this machine.

    `has_other_keys` says that the client may try more than `identities`: the agent's.
    """

    name: str
    port: int
    user: str
    known_hosts: Path
    config: Path
    identities: tuple[Path, ...]
    has_other_keys: bool

    @property
    def command(self) -> str:
        """The command that logs in, as a shell takes it."""
        return shlex.join(["ssh", "-F", str(self.config), self.name])


def known_hosts(name: str, scanned: str) -> str:
    """Return the lines of known_hosts for a host called `name`, from what ssh-keyscan printed."""
    keys = [line.split()[1:3] for line in scanned.splitlines() if not line.startswith("#")]
    return "".join(f"{name} {' '.join(key)}\n" for key in sorted(keys) if len(key) == 2)  # noqa: PLR2004 - type and key


def config_block(login: Login, address: str) -> str:
    """Return the block for ~/.ssh/config; a host with another key is refused without a question."""
    lines = [
        f"Host {login.name}",
        f"  HostName {address}",
        f"  Port {login.port}",
        f"  User {login.user}",
        f"  HostKeyAlias {login.name}",
        f"  UserKnownHostsFile {quoted(login.known_hosts)}",
        "  StrictHostKeyChecking yes",
    ]
    lines += [f"  IdentityFile {quoted(identity)}" for identity in login.identities]
    if login.identities and not login.has_other_keys:
        lines.append("  IdentitiesOnly yes")
    return "\n".join(lines) + "\n"


def quoted(path: Path) -> str:
    """Return a path as ssh_config(5) takes it: spaces need quotes, and % begins a token."""
    return f'"{path}"'.replace("%", "%%")
