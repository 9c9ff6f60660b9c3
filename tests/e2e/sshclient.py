"""OpenSSH's own client, with keys and known hosts of a test's own."""

from __future__ import annotations

import socket
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from tests.e2e.boxes import call, until

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.boxes import Box, Ended

# A value that a shell would take apart; the port and the file of keys that the images have.
FOO = 'a b=c"d'
PORT = ("--publish", "127.0.0.1::2222")
KEYS = "/etc/strata/authorized_keys"
Keys = Callable[[str], "Key"]


@dataclass(frozen=True)
class Key:
    """A key pair: its private file and its public line."""

    file: Path
    public: str


def make_key(folder: Path, name: str) -> Key:
    """Make an Ed25519 key without a passphrase."""
    file = folder / name
    done = call("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", str(file))
    assert done.code == 0, done.err
    return Key(file, file.with_suffix(".pub").read_text().strip())


@dataclass(frozen=True)
class Client:
    """One way in: a port of this machine, a key, a user."""

    port: int
    key: Key
    user: str = "dev"

    @property
    def options(self) -> tuple[str, ...]:
        """What every program of OpenSSH's takes."""
        known = self.key.file.with_name(f"known_hosts_{self.port}")
        settings = (
            "BatchMode=yes",
            "IdentitiesOnly=yes",
            f"IdentityFile={self.key.file}",
            "StrictHostKeyChecking=accept-new",
            f"UserKnownHostsFile={known}",
            "LogLevel=ERROR",
        )
        return ("-F", "none", *(word for text in settings for word in ("-o", text)))

    @property
    def target(self) -> str:
        """The user at this machine."""
        return f"{self.user}@127.0.0.1"

    def run(self, *command: str, options: tuple[str, ...] = (), stdin: bytes = b"") -> Ended:
        """Run a command on the other side, as `ssh host command` does."""
        argv = ("ssh", *self.options, *options, "-p", str(self.port), self.target, *command)
        return call(*argv, env={"SSH_AUTH_SOCK": ""}, stdin=stdin)

    def login(self, script: str, options: tuple[str, ...] = ()) -> Ended:
        """Log in without a command, and type a script into the login shell."""
        return self.run(options=("-T", *options), stdin=script.encode())

    def with_key(self, key: Key) -> Client:
        """Return the same way in, with another key."""
        return replace(self, key=key)


def wait_for_ssh(box: Box) -> int:
    """Wait until sshd greets; return its port on this machine."""
    port = box.port(2222)

    def greets() -> bool | None:
        if not box.state["Running"]:
            pytest.fail(f"the container ended: {box.logs}")
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=2) as line:
                return line.recv(4) == b"SSH-" or None
        except OSError:
            return None

    until(greets, "sshd's greeting")
    return port


def fingerprints(port: int) -> set[str]:
    """Return the host keys that a server shows."""
    said = call("ssh-keyscan", "-p", str(port), "127.0.0.1")
    assert said.code == 0, said.err
    return {line.partition(" ")[2] for line in said.out.splitlines() if not line.startswith("#")}
