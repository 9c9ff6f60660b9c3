"""docs/run.md does what it says: every line of its shell blocks is run."""

from __future__ import annotations

import os
import re
import shlex
import socket
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import requests

from tests.e2e.boxes import ROOT, call
from tests.e2e.conftest import VARIANT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from strata.engine import Engine
    from tests.e2e.boxes import Ended, Image

GUIDE = ROOT / "docs/run.md"
BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# OpenSSH takes a user's home from the list of accounts, not from HOME.
SSH_OF_A_HOME = """#!/bin/sh
exec /usr/bin/ssh -F none -o BatchMode=yes -o IdentitiesOnly=yes \\
  -o "UserKnownHostsFile=$HOME/.ssh/known_hosts" -i "$HOME/.ssh/id_ed25519" "$@"
"""


@dataclass(frozen=True)
class Guide:
    """The guide's blocks, with this machine's images and free ports, in a home of their own."""

    home: Path
    env: dict[str, str]
    names: dict[str, str]
    ports: dict[str, int]

    def blocks(self) -> list[list[str]]:
        """Return the lines of each block, ready to be run."""
        return [
            [self.ready(line) for line in block.splitlines()]
            for block in BLOCK.findall(GUIDE.read_text())
        ]

    def ready(self, line: str) -> str:
        """Return a line with the placeholders filled in, and nothing else changed."""
        line = re.sub(r"REGISTRY/OWNER/(\w+):VARIANT", rf"strata/\1:{VARIANT}", line)
        for name, mine in self.names.items():
            line = re.sub(rf"\b{name}\b(?!\.)", mine, line)
        for inside, port in self.ports.items():
            line = line.replace(f"127.0.0.1:{inside}:{inside}", f"127.0.0.1:{port}:{inside}")
            line = line.replace(f"ssh -p {inside} dev@", f"ssh -p {port} dev@")
            line = line.replace(f"[127.0.0.1]:{inside}", f"[127.0.0.1]:{port}")
        return line

    def run(self, line: str) -> Ended:
        """Run a line as a shell does; in a terminal where it asks for one."""
        argv = ["bash", "-euc", f"cd {shlex.quote(str(self.home))}; {line}"]
        if "--tty" in line:
            argv = ["script", "-qefc", shlex.join(argv), "/dev/null"]
        return call(*argv, env=self.env, stdin=b"exit 0\n", patience=180)

    def run_all(self, lines: list[str]) -> Ended:
        """Run lines, each of which must end well; return how the last one did."""
        for line in lines:
            done = self.run(line)
            assert done.code == 0, f"{line}\n{done.out}\n{done.err}"
        return done


@pytest.fixture(scope="module")
def guide(
    engine: Engine, image: Image, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Guide]:
    """Return the guide; what its lines started is removed."""
    for name in ("lab", "remote", "train"):
        image(name)
    home = tmp_path_factory.mktemp("home")
    tools = home / "bin"
    tools.mkdir()
    (tools / "ssh").write_text(SSH_OF_A_HOME)
    (tools / "ssh").chmod(0o755)
    mark = uuid.uuid4().hex[:8]
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    found = Guide(
        home=home,
        env={**engine.env, "HOME": str(home), "PATH": path, "TERM": "xterm"},
        names={name: f"{name}-{mark}" for name in ("strata-lab", "strata-remote", "strata-work")},
        ports=dict(zip(("8888", "2222"), free_ports(2), strict=True)),
    )
    try:
        yield found
    finally:
        lab, remote, work = found.names.values()
        call("docker", "rm", "--force", "--volumes", lab, remote, env=engine.env)
        removed = call("docker", "volume", "rm", "--force", work, env=engine.env)
        assert removed.code == 0, removed.err


def free_ports(count: int) -> list[int]:
    """Return ports of the loopback that nobody listens on, each another."""
    doors = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [int(door.getsockname()[1]) for door in doors]
    finally:
        for door in doors:
            door.close()


def test_the_guide_leads_to_a_notebook(guide: Guide) -> None:
    """Its first block prints a link that opens, and the second one ends it."""
    start, end, *_ = guide.blocks()
    link = re.search(r"http://127\.0\.0\.1:8888/lab\?token=\w+", guide.run_all(start).out)
    assert link is not None
    address = link[0].replace(":8888/", f":{guide.ports['8888']}/")
    assert requests.get(address, timeout=60).status_code == 200
    token = address.partition("token=")[2]
    saved = requests.post(
        f"{address.partition('/lab')[0]}/api/contents",
        json={"type": "notebook"},
        headers={"Authorization": f"token {token}"},
        timeout=60,
    )
    assert saved.status_code == 201  # the new volume is the user's
    guide.run_all(end)


def test_the_guide_leads_to_a_session(guide: Guide) -> None:
    """Its lines make a key, pin the host, and log in without a question."""
    _, _, start, end, *_ = guide.blocks()
    assert re.fullmatch(r"2\.\d+\.\d+\S*", guide.run_all(start).out)
    known = guide.home / ".ssh/known_hosts"
    assert known.read_text().startswith(f"[127.0.0.1]:{guide.ports['2222']} ssh-ed25519 ")
    guide.run_all(end)
    assert known.read_text() == ""


def test_the_guides_commands_run(guide: Guide) -> None:
    """The check passes, the shell is one, and a file of another user's is theirs; that is all."""
    _, _, _, _, commands, files = guide.blocks()
    check, shell = commands
    assert "verdict: pass" in guide.run(check).out
    assert guide.run(shell).code == 0
    guide.run_all(files)
    assert (guide.home / "work/mine").stat().st_uid == os.getuid()
