"""One environment behind every door: run, exec, shells, SSH, Jupyter, child images; for any user.

Every door prints what it sees (`parity_probe.py`), and is compared with `docker run IMAGE cmd`.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import pytest

from tests.e2e.boxes import ROOT, Boxes, Image, call
from tests.e2e.jupyterclient import Jupyter, wait_for_jupyter
from tests.e2e.sshclient import Client, make_key, wait_for_ssh

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from strata.engine import Engine
    from tests.e2e.boxes import Box
    from tests.e2e.sshclient import Key

PROBE = ROOT / "tests/e2e/parity_probe.py"
COMMAND = "python /probe.py"
SECRET = "not yours"  # noqa: S105 - it is one, for these containers
GIVEN = {
    "GIVEN_DOLLAR": "$HOME ${X:-y} $(id) `id` \\n \\",
    "GIVEN_EMPTY": "",
    "GIVEN_EQUALS": "a=b=c",
    "GIVEN_NEWLINES": "one\nPATH=/evil\n\nlast\n",
    "GIVEN_QUOTES": "a b=c\"d' it''s",
    "GIVEN_SPACES": "  two  \t",
    "GIVEN_UTF8": "é 日本",
    "CUDA_VISIBLE_DEVICES": "0,1",
    "LD_LIBRARY_PATH": "/opt/env/lib",
    "NCCL_DEBUG": "INFO",
    "NVIDIA_VISIBLE_DEVICES": "void",
    "OMP_NUM_THREADS": "3",
    "TZ": "Asia/Tokyo",
}
JUPYTERS = ("GIT_PAGER",)  # its kernels' own: no program waits for a key
USERS = {"dev": (), "other": ("--user", "12345:0")}
BASH = "bash -euo pipefail -c"
DOCKERFILE = """\
FROM {parent}
COPY probe.py /probe.py
RUN {command} >/tmp/sh
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
RUN {command} >/tmp/strict; bash -lc {quoted} >/tmp/login
USER 12345:0
RUN {command} >/tmp/other
USER 1000:1000
"""
DOORS = (
    "sh",
    "sh -l",
    "exec",
    "exec bash -l",
    "exec strict bash",
    "exec sh",
    "ssh login",
    "ssh command",
    "ssh login, sh",
    "ssh command, sh",
    "jupyter kernel",
    "jupyter !command",
    "jupyter terminal",
)
Facts = dict[str, Any]


def facts(said: str) -> Facts:
    """Read what the probe printed, among whatever else a terminal shows."""
    lines = [line for line in said.splitlines() if line.startswith('{"env"')]
    assert len(lines) == 1, said
    found: Facts = json.loads(lines[0])
    return found


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Key:
    """Make the key that is let in."""
    return make_key(tmp_path_factory.mktemp("parity"), "ada")


@pytest.fixture(scope="module", params=USERS)
def options(request: pytest.FixtureRequest, key: Key) -> tuple[str, ...]:
    """Return how all containers of a user are started."""
    given = {**GIVEN, "JUPYTER_TOKEN": SECRET, "STRATA_AUTHORIZED_KEYS": key.public}
    env = (word for name, value in given.items() for word in ("--env", f"{name}={value}"))
    here = ("--hostname", "parity", "--volume", f"{PROBE}:/probe.py:ro")
    return (*USERS[request.param], *here, *env)


@pytest.fixture(scope="module")
def box(shared_boxes: Boxes, options: tuple[str, ...]) -> Box:
    """Start an image that has every service."""
    ports = ("--publish", "127.0.0.1::2222", "--publish", "127.0.0.1::8888")
    return shared_boxes.start("dev", *ports, *options)


@pytest.fixture(scope="module")
def door(box: Box, shared_boxes: Boxes, options: tuple[str, ...], key: Key) -> Callable[[str], str]:
    """Return what the probe prints behind a door."""
    ssh = Client(wait_for_ssh(box), key)
    with_sh = shared_boxes.start(
        "remote", "--publish", "127.0.0.1::2222", *options, "--env", "SHELL=/bin/sh"
    )
    sh = Client(wait_for_ssh(with_sh), key)
    jupyter: Jupyter = wait_for_jupyter(Jupyter(box, SECRET))
    as_sh = ("--entrypoint", "sh", *options)
    doors: dict[str, Callable[[], str]] = {
        "sh": lambda: shared_boxes.once("dev", *as_sh, command=("-c", COMMAND)).out,
        "sh -l": lambda: shared_boxes.once("dev", *as_sh, command=("-lc", COMMAND)).out,
        "exec": lambda: box.run(*COMMAND.split()).out,
        "exec bash -l": lambda: box.run("bash", "-lc", COMMAND).out,
        "exec strict bash": lambda: box.run(*BASH.split(), COMMAND).out,
        "exec sh": lambda: box.run("sh", "-c", COMMAND).out,
        "ssh login": lambda: ssh.login(f"{COMMAND}\n").out,
        "ssh command": lambda: ssh.run(COMMAND).out,
        "ssh login, sh": lambda: sh.login(f"{COMMAND}\n").out,
        "ssh command, sh": lambda: sh.run(COMMAND).out,
        "jupyter kernel": lambda: jupyter.cell("exec(open('/probe.py').read())"),
        "jupyter !command": lambda: jupyter.cell(f"!{COMMAND}"),
        "jupyter terminal": lambda: jupyter.terminal(COMMAND),
    }
    assert tuple(doors) == DOORS
    return lambda name: doors[name]()


@pytest.fixture(scope="module")
def run(shared_boxes: Boxes, options: tuple[str, ...]) -> Facts:
    """Return what `docker run IMAGE python` sees, which is what was given, and the image's own."""
    done = shared_boxes.once("dev", *options, command=tuple(COMMAND.split()))
    assert (done.code, done.err) == (0, "")
    found = facts(done.out)
    assert {name: found["env"].get(name) for name in GIVEN} == GIVEN
    return found


def test_what_is_meant(run: Facts) -> None:
    """The environment is /opt/env, first on PATH; all is UTF-8; one starts in the work folder."""
    assert (run["prefix"], run["env"]["CONDA_PREFIX"]) == ("/opt/env", "/opt/env")
    assert run["env"]["PATH"].startswith("/opt/env/bin:/opt/strata/bin:")
    bins = {name: run["which"][name] for name in ("python", "pip", "torchrun", "ssh", "curl")}
    own, system = "/opt/env/bin", "/usr/bin"
    assert bins == {
        **{name: f"{own}/{name}" for name in ("python", "pip", "torchrun")},
        **{name: f"{system}/{name}" for name in ("ssh", "curl")},
    }
    assert run["locale"][1] == "utf-8"
    assert (run["env"]["LANG"], run["umask"], run["folder"]) == ("C.UTF-8", 0o022, "/home/dev/work")


@pytest.mark.parametrize("name", DOORS)
def test_door(door: Callable[[str], str], run: Facts, name: str) -> None:
    """A door shows every variable byte for byte, and every fact, as `docker run` does."""
    seen = facts(door(name))
    if name.endswith(", sh"):
        assert seen["env"].pop("SHELL") == "/bin/sh"
        seen["env"]["SHELL"] = "/bin/bash"
    if name.startswith("jupyter"):
        for variable in JUPYTERS:
            seen["env"].pop(variable, None)
        seen["locale"][1] = run["locale"][1]
    assert seen == run


def test_child_image(
    engine: Engine, image: Image, boxes: Boxes, tmp_path: Path, run: Facts
) -> None:
    """A RUN of a child Dockerfile, by sh, strict and login bash, another user, sees the image's."""
    quoted = shlex.quote(COMMAND)
    text = DOCKERFILE.format(parent=image("dev"), command=COMMAND, quoted=quoted)
    (tmp_path / "Dockerfile").write_text(text)
    (tmp_path / "probe.py").write_bytes(PROBE.read_bytes())
    built = call("docker", "build", "--quiet", str(tmp_path), env=engine.env)
    assert built.code == 0, built.err
    try:
        command = ("cat", "/tmp/sh", "/tmp/strict", "/tmp/login", "/tmp/other")  # noqa: S108
        done = boxes.once(built.out, command=command)
    finally:
        call("docker", "image", "rm", "--force", built.out, env=engine.env)
    four = [facts(line) for line in done.out.splitlines() if line]
    own = {name: value for name, value in run["env"].items() if name not in GIVEN}
    del own["HOSTNAME"]
    assert [seen["who"][:2] for seen in four] == [[1000, 1000]] * 3 + [[12345, 0]]
    for seen in four:
        seen["env"].pop("HOSTNAME", None)
        assert seen["env"] == own
        for fact in ("prefix", "which", "locale", "umask", "folder"):
            assert seen[fact] == run[fact], fact


@pytest.mark.usefixtures("door")  # it waits for the services
def test_secrets_stay(box: Box, key: Key) -> None:
    """Jupyter's token is told neither to an SSH session nor to a kernel or a terminal."""
    client = Client(wait_for_ssh(box), key)
    script = "env -0 | tr '\\0' '\\n'"
    jupyter = Jupyter(box, SECRET)
    shown = [
        client.run(script).out,
        client.login(f"{script}\n").out,
        jupyter.cell("import os; print(dict(os.environ))"),
        jupyter.terminal("env"),
    ]
    assert [SECRET in text for text in shown] == [False] * 4
    assert ["GIVEN_UTF8" in text for text in shown] == [True] * 4
    assert SECRET not in box.run("ps", "-ww", "-eo", "args").out


@pytest.mark.usefixtures("door")  # it waits for the services
def test_user(box: Box, key: Key, run: Facts) -> None:
    """By run, exec and SSH one is dev, with the number that was given and a home to write to."""
    python = (
        "import getpass, os, torch; os.makedirs(torch.hub.get_dir(), exist_ok=True);"
        " print(getpass.getuser())"
    )
    script = f"id -un; whoami; python -c {shlex.quote(python)}; touch ~/mine; stat -c %u ~/mine"
    uid = str(run["who"][0])
    wanted = ["dev", "dev", "dev", uid]
    client = Client(wait_for_ssh(box), key)
    assert client.run(script).out.split() == wanted
    # Docker gives a user that it doesn't know HOME=/ in exec (docs/doors.md says so).
    home = () if uid == "1000" else ("--env", "HOME=/tmp/.strata/home")
    assert box.docker("exec", *home, box.name, "sh", "-c", script).out.split() == wanted
    assert box.run("stat", "-c", "%a", "/etc/passwd").out == "644"


@pytest.mark.usefixtures("door")  # it waits for the services
@pytest.mark.parametrize("program", ["scp", "sftp", "rsync"])
def test_copies(box: Box, key: Key, tmp_path: Path, program: str) -> None:
    """What copies over SSH is not disturbed, and starts in the work folder, for any user."""
    client = Client(wait_for_ssh(box), key)
    back = tmp_path / "back"
    ssh, port = shlex.join(["ssh", *client.options, "-p", str(client.port)]), str(client.port)
    there = f"{client.target}:/probe.py"
    (tmp_path / "batch").write_text(f"lpwd\npwd\nget /probe.py {back}\n")
    argv = {
        "scp": ("scp", *client.options, "-P", port, there, str(back)),
        "sftp": ("sftp", *client.options, "-P", port, "-b", f"{tmp_path}/batch", client.target),
        "rsync": ("rsync", "-e", ssh, there, str(back)),
    }[program]
    done = call(*argv)
    assert (done.code, done.err) == (0, "")
    assert back.read_bytes() == PROBE.read_bytes()
    is_there = "Remote working directory: /home/dev/work" in done.out.splitlines()
    assert is_there == (program == "sftp")
