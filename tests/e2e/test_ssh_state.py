"""What the SSH server keeps and is given: its folder's owner and modes, keys, settings."""

from __future__ import annotations

import subprocess
import uuid
from typing import TYPE_CHECKING

import pytest

from tests.e2e.boxes import until
from tests.e2e.sshclient import KEYS, PORT, Client, Key, fingerprints, make_key, wait_for_ssh

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from docker import DockerClient

    from tests.e2e.boxes import Boxes


@pytest.fixture
def volume(docker_client: DockerClient, boxes: Boxes) -> Iterator[str]:
    """Name a volume, which is removed after the containers that made it."""
    name = f"strata-test-{uuid.uuid4().hex[:12]}"
    yield name
    boxes.close()
    boxes.names.clear()
    docker_client.volumes.get(name).remove()


def test_identity_in_a_named_volume(boxes: Boxes, key: Key, volume: str) -> None:
    """A new volume at the documented place is the user's; a container made anew is the same host.

    What a session removes from /tmp, and modes that a cluster gives a volume's files, end nothing.
    """
    given = (
        *("--volume", f"{volume}:/home/dev/.strata-ssh"),
        *("--volume", f"{key.file}.pub:{KEYS}:ro", "--env", "KEPT=it"),
    )
    box = boxes.start("remote", *PORT, *given)
    client = Client(wait_for_ssh(box), key)
    first = fingerprints(client.port)
    assert client.run("rm -rf /tmp/*").code == 0
    assert client.run("echo $KEPT").out == "it"
    opened = "chmod 2770 ~/.strata-ssh; chmod 660 ~/.strata-ssh/*"
    assert box.run("sh", "-c", opened).code == 0
    box.stop()
    again = Client(wait_for_ssh(boxes.start("remote", *PORT, *given)), key)
    assert fingerprints(again.port) == first
    assert again.run("stat -c %a ~/.strata-ssh/host_rsa").out == "600"


OPEN = {
    "a home that all may write": ("--volume", "{home}:/home/dev"),  # as an emptyDir is
    "a home in /tmp": ("--env", "HOME=/tmp"),
    "a folder in /tmp": ("--env", "STRATA_SSH_DIR=/tmp/ssh"),
}


@pytest.mark.parametrize("place", OPEN)
def test_open_places(boxes: Boxes, key: Key, tmp_path: Path, place: str) -> None:
    """Who else may write around the server's folder locks nobody out of it."""
    tmp_path.chmod(0o777)
    options = (word.format(home=tmp_path) for word in OPEN[place])
    box = boxes.start("remote", *PORT, *options, "--volume", f"{key.file}.pub:{KEYS}:ro")
    assert Client(wait_for_ssh(box), key).run("id -un").out == "dev"


def test_joined_options(boxes: Boxes, tmp_path: Path) -> None:
    """A key that is joined to another keeps its `from=`; SetEnv in a mounted file takes nothing.

    `docker stop` ends the server within 5 seconds though a session is open.
    """
    one, two, settings = make_key(tmp_path, "one"), make_key(tmp_path, "two"), tmp_path / "asked"
    settings.mkdir()
    (settings / "env.conf").write_text("SetEnv MORE=1\n")
    joined = f'{one.public},from="203.0.113.0/24" {two.public}'
    box = boxes.start(
        "remote",
        *(*PORT, "--env", f"STRATA_AUTHORIZED_KEYS={joined}", "--env", "KEPT=it"),
        *("--volume", f"{settings}:/etc/strata/sshd_config.d:ro"),
    )
    client = Client(wait_for_ssh(box), one)
    assert client.run("echo $KEPT $CONDA_PREFIX").out == "it /opt/env"
    assert client.with_key(two).run("true").code == 255
    sleeps = ["ssh", *client.options, "-p", str(client.port), client.target, "sleep", "60"]
    with subprocess.Popen(sleeps, stderr=subprocess.DEVNULL) as session:
        until(lambda: box.run("pgrep", "-x", "sleep").out or None, "the session's sleep")
        code, seconds = box.stop()
        session.wait(timeout=10)
    assert code in (0, 143)
    assert seconds < 5
