"""`./inv run`, `jupyter` and `ssh` start containers as they should be started."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
import requests

from tests.e2e.boxes import ROOT, Box, call, until
from tests.e2e.sshclient import make_key

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from docker import DockerClient

    from strata.engine import Engine
    from tests.e2e.boxes import Ended, Image

SOMEBODY = (12345, 54321)


@dataclass
class Inv:
    """The command line in a folder of somebody's, who is not the image's user."""

    engine: Engine
    folder: Path
    names: list[str] = field(default_factory=list)

    def name(self, purpose: str) -> str:
        """Return the name of a container that is removed at the end."""
        self.names.append(f"strata-test-{purpose}-{uuid.uuid4().hex[:8]}")
        return self.names[-1]

    def argv(self, *words: str) -> list[str]:
        """Return the argv of a task."""
        return [sys.executable, "-m", "strata", "--search-root", str(ROOT), *words]

    @property
    def env(self) -> dict[str, str]:
        """What differs in a task's environment: an own home, no agent, no token."""
        mine = {"HOME": str(self.folder.parent), "PYTHONPATH": str(ROOT), "SSH_AUTH_SOCK": ""}
        return {**self.engine.env, **mine, "JUPYTER_TOKEN": "", "PYTHONDONTWRITEBYTECODE": "1"}

    def __call__(self, *words: str, stdin: bytes = b"") -> Ended:
        """Run a task to its end."""
        return call("env", "-C", str(self.folder), *self.argv(*words), env=self.env, stdin=stdin)

    def close(self) -> None:
        """Remove what was started; a name without a container is no error."""
        if not self.names:
            return
        removed = call("docker", "rm", "--force", "--volumes", *self.names, env=self.engine.env)
        assert removed.code == 0, removed.err


@pytest.fixture
def inv(engine: Engine, image: Image, tmp_path: Path) -> Iterator[Inv]:
    """Return the command line in an empty folder that belongs to somebody else."""
    for name in ("dev", "lab", "remote", "slim"):
        image(name)
    folder = tmp_path / "my work, here"
    folder.mkdir()
    os.chown(folder, *SOMEBODY)
    found = Inv(engine, folder)
    try:
        yield found
    finally:
        found.close()


def test_a_command_is_the_containers(inv: Inv) -> None:
    """Words, stdin, exit code and files pass through, and nothing else is on stdout."""
    script = 'cat; touch made; printf "%s|" "$(whoami)" "$(pwd)" "$HOME" "$FOO" "$1"; exit 37'
    name = inv.name("run")
    done = inv(
        *("run", "slim", "--name", name, "--env", "FOO=a 'b' \"c\"  d", "--", "sh", "-c"),
        *(script, "sh", "x  y"),
        stdin=b"in and out\n",
    )
    assert done.code == 37, done.err
    assert f"container {name}: strata/slim:embedded, " in done.err
    assert done.out == ("in and out\ndev|/home/dev/work|/tmp/.strata/home|a 'b' \"c\"  d|x  y|")
    made = (inv.folder / "made").stat()
    assert (made.st_uid, made.st_gid) == SOMEBODY
    gone = call("docker", "container", "inspect", name, env=inv.engine.env)
    assert gone.code == 1


def test_a_signal_is_the_commands(inv: Inv) -> None:
    """What ends the task ends the container, by the command's own exit code."""
    name = inv.name("signal")
    script = "trap 'exit 41' TERM; echo ready; while :; do sleep 0.1; done"
    argv = inv.argv("run", "slim", "--work", "none", "--name", name, "--", "bash", "-c", script)
    with subprocess.Popen(
        argv,
        env={**os.environ, **inv.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 41


def test_a_terminal_is_passed_on(inv: Inv) -> None:
    """Without a command it is a shell, in a terminal, where any user can write without a folder."""
    flags = ("--work", "none", "--user", "12345:54321", "--name", inv.name("tty"))
    command = shlex.join(inv.argv("run", "slim", *flags))
    env = {**inv.env, "TERM": "xterm"}
    typed = b"test -t 0 && touch mine ~/mine && test -O mine && exit 43; exit 1\n"
    done = call("script", "-qefc", command, "/dev/null", env=env, stdin=typed)
    assert done.code == 43, done.out


def test_jupyter_is_started_once(inv: Inv, docker_client: DockerClient) -> None:
    """The link works, nothing is open to the network, and a second call gives the same link."""
    name = inv.name("jupyter")
    task = ("jupyter", "dev", "--name", name)
    done = inv(*task)
    assert done.code == 0, done.err
    assert done.out.startswith("http://127.0.0.1:")
    assert requests.get(done.out, timeout=60).status_code == 200
    wrong = f"{done.out.partition('?')[0]}?token=wrong"
    assert requests.get(wrong, timeout=60, allow_redirects=False).status_code != 200

    box = docker_client.containers.get(name)
    addresses = {address["HostIp"] for address in box.ports["8888/tcp"] or ()}
    assert addresses == {"127.0.0.1"}
    assert box.ports["2222/tcp"] is None  # nothing but what was asked for
    host = box.attrs["HostConfig"]
    assert (host["CapDrop"], host["SecurityOpt"]) == (["ALL"], ["no-new-privileges"])
    assert host["ShmSize"] > 64 << 20
    token = done.out.partition("token=")[2]
    assert token not in done.err
    assert token not in str(box.top(ps_args="-eo pid,args"))

    root, headers = done.out.partition("/lab")[0], {"Authorization": f"token {token}"}
    body = {"type": "notebook"}
    made = requests.post(f"{root}/api/contents", json=body, headers=headers, timeout=60)
    assert made.status_code == 201
    kept = (inv.folder / made.json()["name"]).stat()
    assert (kept.st_uid, kept.st_gid) == SOMEBODY

    assert inv(*task).out == done.out
    other = inv(*task, "--shm", "1g")
    assert (other.code, other.out) == (2, "")
    assert "shared memory: " in other.err
    box.stop(timeout=5)
    again = inv(*task)
    assert requests.get(again.out, timeout=60).status_code == 200

    assert inv(*task, "--stop").out == f"{name}: stopped and removed"
    assert inv(*task, "--stop").out == f"{name}: is not there"


def test_ssh_asks_no_question(inv: Inv) -> None:
    """The printed command logs in as somebody with a name; the block does so for ~/.ssh/config."""
    keys = inv.folder.parent / ".ssh"
    keys.mkdir()
    make_key(keys, "work")
    name = inv.name("ssh")
    task = ("ssh", "remote", "--name", name)
    done = inv(*task)
    assert done.code == 0, done.err
    script = 'echo "$(id -u):$(id -g) $USER $HOME"; touch mine; python -c "import torch"'
    argv = shlex.split(done.out)
    said = call(*argv, "-o", "BatchMode=yes", script, env=inv.env)
    assert (said.code, said.err) == (0, "")
    assert said.out == "12345:54321 dev /tmp/.strata/home"
    in_exec = call("docker", "exec", name, "sh", "-c", "echo $HOME && touch ~/it", env=inv.env)
    assert (in_exec.code, in_exec.out) == (0, "/tmp/.strata/home")  # noqa: S108
    made = (inv.folder / "mine").stat()
    assert (made.st_uid, made.st_gid) == SOMEBODY

    block = inv(*task, "--config")
    config = inv.folder.parent / "config"
    config.write_text(block.out)
    argv = ["ssh", "-F", str(config), "-o", "BatchMode=yes", name]
    assert call(*argv, "exit 44", env=inv.env).code == 44

    pinned = ROOT / "build/start" / f"{name}.known_hosts"
    lines = pinned.read_text().splitlines()
    assert [line.split()[:2] for line in lines] == [[name, "ssh-ed25519"], [name, "ssh-rsa"]]
    stranger = make_key(inv.folder.parent, "stranger")
    blob = " ".join(stranger.public.split()[:2])
    pinned.write_text(f"{name} {blob}\n")
    refused = call(*argv, "true", env=inv.env)
    assert refused.code == 255
    assert "Host key verification failed" in refused.err

    other = inv(*task, "--key", f"{stranger.file}.pub")
    assert other.code == 2
    assert "it was started with other public keys" in other.err
    assert inv(*task, "--stop").code == 0
    assert not pinned.exists()


def test_what_is_taken_is_said(inv: Inv, docker_client: DockerClient) -> None:
    """A port that somebody has is the engine's error, and no container stays behind."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        name = inv.name("taken")
        done = inv("jupyter", "--name", name, "--port", str(port))
    assert done.code == 8
    assert "address already in use" in done.err
    assert docker_client.containers.list(all=True, filters={"name": name}) == []


def test_a_service_that_ends_is_shown_and_removed(inv: Inv, docker_client: DockerClient) -> None:
    """Its last lines say why."""
    name = inv.name("ends")
    broken = ("--env", "JUPYTER_CONFIG_DIR=/proc/1/nowhere", "--env", "JUPYTER_RUNTIME_DIR=/proc/x")
    done = inv("jupyter", "--name", name, *broken)
    assert done.code == 8, done.out
    assert f"error: container {name}: it ended with " in done.err
    assert "\n    | " in done.err
    assert docker_client.containers.list(all=True, filters={"name": name}) == []


def test_an_interrupt_leaves_nothing(inv: Inv, docker_client: DockerClient) -> None:
    """Whoever stops waiting has no container that was not asked for."""
    name = inv.name("interrupt")
    # A shell's background job ignores SIGINT, and so would all that it starts.
    argv = ["env", "--default-signal=INT", *inv.argv("jupyter", "--work", "none", "--name", name)]
    with subprocess.Popen(
        argv,
        env={**os.environ, **inv.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        until(lambda: docker_client.containers.list(filters={"name": name}) or None, "its start")
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130
    assert docker_client.containers.list(all=True, filters={"name": name}) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("run", "slimm"), 'error: image slimm: no image "slimm" (did you mean "slim"?)'),
        (("jupyter", "remote"), "error: image remote: it has no JupyterLab"),
        (("jupyter", "--env", "JUPYTER_PORT=9"), "error: --env JUPYTER_PORT: JupyterLab must"),
        (("run", "127.0.0.1:1/me/slim:x"), "error: image 127.0.0.1:1/me/slim:x: `docker pull"),
    ],
)
def test_bad_arguments_start_nothing(inv: Inv, words: tuple[str, ...], message: str) -> None:
    """They end with 2, the reason and the fix."""
    done = inv(*words)
    assert done.code == 2
    assert message in done.err
    assert "  fix: " in done.err
    assert "docker run" not in done.err


def test_a_dry_run_is_the_command(inv: Inv) -> None:
    """What it prints starts the same service, by hand."""
    key = make_key(inv.folder.parent, "ada")
    os.chown(inv.folder, 1000, 1000)
    name = inv.name("dry")
    done = inv("ssh", "--name", name, "--key", str(key.file), "--dry-run")
    assert done.code == 0, done.err
    box = Box(name, inv.engine.env)
    assert box.docker("container", "inspect", name).code == 1
    started = call(*shlex.split(done.out), env=inv.env)
    assert started.code == 0, started.err
    until(lambda: "Server listening" in box.logs or None, "sshd")
