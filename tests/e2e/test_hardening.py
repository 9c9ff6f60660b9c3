"""The images work where little is allowed: read-only, without capabilities, as any user."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import requests

from tests.e2e.boxes import until
from tests.e2e.sshclient import Client, make_key, wait_for_ssh

if TYPE_CHECKING:
    from pathlib import Path

    from tests.e2e.boxes import Boxes

CLOSED = ("--cap-drop", "ALL", "--security-opt", "no-new-privileges")
READ_ONLY = (
    "--read-only",
    *("--tmpfs", "/tmp"),  # noqa: S108
    *("--tmpfs", "/home/dev:uid=1000,gid=1000,mode=0755"),
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


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", ["slim", "dev"])
def test_torch(boxes: Boxes, name: str, way: str) -> None:
    """Torch imports and computes, without a warning."""
    done = boxes.once(name, *WAYS[way], "--network", "none", command=TORCH)
    assert (done.code, done.out, done.err) == (0, "2.0", "")


def test_home_is_writable(boxes: Boxes) -> None:
    """With the documented mounts the user can write to its home though all else is closed."""
    script = "touch ~/mine /tmp/mine && ! touch /opt/strata/mine 2>/dev/null"
    done = boxes.once("train", *READ_ONLY, *CLOSED, command=("sh", "-c", script))
    assert (done.code, done.err) == (0, "")


def test_ddp_check(boxes: Boxes) -> None:
    """The training check passes where everything is closed."""
    options = (*WAYS["all"], "--network", "none", "--shm-size", "1g")
    done = boxes.once("train", *options, command=("ddp-check",))
    assert done.code == 0, done.err


def test_services(boxes: Boxes, tmp_path: Path) -> None:
    """Jupyter and SSH serve from a read-only container without capabilities."""
    key = make_key(tmp_path, "ada")
    box = boxes.start(
        "dev",
        *READ_ONLY,
        *CLOSED,
        *("--publish", "127.0.0.1::2222", "--publish", "127.0.0.1::8888"),
        *("--volume", f"{key.file}.pub:/etc/strata/authorized_keys:ro"),
        *("--env", "JUPYTER_TOKEN=open"),
    )
    client = Client(wait_for_ssh(box), key)
    assert client.run(*TORCH[:3], "-c", "'import torch; print(1)'").out == "1"
    root = f"http://127.0.0.1:{box.port(8888)}"
    headers = {"Authorization": "token open"}

    def answers() -> int | None:
        try:
            return requests.get(f"{root}/api/kernels", headers=headers, timeout=30).status_code
        except requests.ConnectionError:
            return None

    assert until(answers, "JupyterLab") == 200
    made = requests.post(
        f"{root}/api/kernels", json={"name": "python3"}, headers=headers, timeout=60
    )
    assert made.status_code == 201


def test_user_gains_nothing(boxes: Boxes) -> None:
    """A container that is started plainly runs without any capability in force."""
    done = boxes.once("dev", command=("grep", "-E", "^Cap(Eff|Prm|Amb):", "/proc/self/status"))
    assert {line.split()[1] for line in done.out.splitlines()} == {"0000000000000000"}
