"""The images work where little is allowed: read-only, without capabilities, as any user."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from tests.e2e.boxes import ROOT
from tests.e2e.jupyterclient import start_jupyter
from tests.e2e.sshclient import Client, make_key, wait_for_ssh

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.boxes import Boxes

CLOSED = ("--cap-drop", "ALL", "--security-opt", "no-new-privileges")
# As docs/hardening.md has them.
READ_ONLY = (
    "--read-only",
    *("--tmpfs", "/tmp:exec"),  # noqa: S108
    *("--tmpfs", "/home/dev:exec,uid=1000,gid=1000,mode=0755"),
    *("--tmpfs", "/home/dev/work:exec,uid=1000,gid=1000,mode=0755"),
)
ANYBODY = ("--user", "12345:12345", "--env", "HOME=/tmp")
TORCH = ("python", "-W", "error", "-c", "import torch; print(torch.ones(2).sum().item())")
WAYS = {
    "plain": (),
    "closed": CLOSED,
    "read-only": READ_ONLY,
    "anybody": ANYBODY,
    "all": (*CLOSED, "--read-only", "--tmpfs", "/tmp", *ANYBODY),  # noqa: S108
}
# Every socket that listens, as address and port in hexadecimal.
LISTENING = (
    "import pathlib; print(sorted({row[1] for file in ('tcp', 'tcp6') "
    "for row in map(str.split, pathlib.Path('/proc/net', file).read_text().splitlines()[1:]) "
    "if row[3] == '0A'}))"
)
JUPYTER, SSH = "00000000:22B8", "00000000:08AE"


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["slim", "dev"])
def test_torch(boxes: Boxes, name: str, way: str) -> None:
    """Torch imports and computes, without a warning."""
    done = boxes.once(name, *WAYS[way], "--network", "none", command=TORCH)
    assert (done.code, done.out, done.err) == (0, "2.0", "")


def test_home_is_writable(boxes: Boxes) -> None:
    """With the documented mounts the user can write to its home though all else is closed."""
    script = "touch mine ~/mine /tmp/mine && ! touch /opt/strata/mine 2>/dev/null"
    done = boxes.once("train", *READ_ONLY, *CLOSED, command=("sh", "-c", script))
    assert (done.code, done.err) == (0, "")


def test_the_mounts_are_documented() -> None:
    """The options of these tests are the ones that docs/hardening.md shows."""
    page = (ROOT / "docs/hardening.md").read_text()
    assert " ".join((*CLOSED, *READ_ONLY)) in page


def test_ddp_check(boxes: Boxes) -> None:
    """The training check passes where everything is closed."""
    options = (*WAYS["all"], "--network", "none", "--shm-size", "1g")
    done = boxes.once("train", *options, command=("ddp-check",))
    assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("name", "uid"), [("remote", 1000), ("lab", 1000), ("dev", 1000), ("dev", 12345)]
)
def test_services(boxes: Boxes, tmp_path: Path, name: str, uid: int) -> None:
    """Jupyter and SSH serve from a read-only container without capabilities, by all their doors.

    So they do for a user whom the image doesn't know, with its own numbers in the mounts.
    Nothing listens to the network but those that the image has.
    """
    key = make_key(tmp_path, "ada")
    mounts = tuple(word.replace("id=1000", f"id={uid}") for word in READ_ONLY)
    options = (
        *(*mounts, *CLOSED, "--user", f"{uid}:{uid}"),
        *("--volume", f"{key.file}.pub:/etc/strata/authorized_keys:ro"),
        *("--env", "JUPYTER_TOKEN=open", "--publish", "127.0.0.1::2222"),
    )
    ports = set()
    if name == "remote":
        box = boxes.start(name, *options)
    else:
        server = start_jupyter(boxes, name, *options, token="open")  # noqa: S106 - of this test
        box = server.box
        shown = server.cells(TORCH[-1], "open('mine', 'w').close()", LISTENING)
        assert shown[0] == "2.0\n"
        assert public(shown[2]) <= {JUPYTER, SSH}
        assert server.terminal("ls /home/dev/work") == "mine\r\n"
        assert box.run("healthy").out == "well"
        ports.add(JUPYTER)
    if name != "lab":
        client = Client(wait_for_ssh(box), key)
        script = "touch ~/kept && stat -c %u ~/kept; python -c 'import torch; print(1)'"
        assert client.run(script).out.split() == [str(uid), "1"]
        ports.add(SSH)
    assert public(box.run("python", "-c", LISTENING).out) == ports


def public(said: str) -> set[str]:
    """Return what LISTENING found but for the loopback's, as the kernel's own; all IPs are one."""
    found = re.findall(r"[0-9A-F]+:[0-9A-F]{4}", said)
    return {it.replace("0" * 32, "0" * 8) for it in found if not it.startswith("0100007F:")}


@pytest.mark.parametrize("name", ["train", "dev"])
def test_nothing_listens(boxes: Boxes, name: str) -> None:
    """A container that was given a command listens to nothing, whatever it could serve."""
    done = boxes.once(name, command=("python", "-c", LISTENING))
    assert (done.code, done.out) == (0, "[]")


def test_only_what_was_asked_for_listens(boxes: Boxes) -> None:
    """`dev` with Jupyter alone has no SSH server."""
    server = start_jupyter(boxes, "dev", command=("/opt/strata/services/jupyter",))
    assert server.box.run("python", "-c", LISTENING).out == f"['{JUPYTER}']"


def test_user_gains_nothing(boxes: Boxes) -> None:
    """A container that is started plainly runs without any capability in force."""
    done = boxes.once("dev", command=("grep", "-E", "^Cap(Eff|Prm|Amb):", "/proc/self/status"))
    assert {line.split()[1] for line in done.out.splitlines()} == {"0000000000000000"}
