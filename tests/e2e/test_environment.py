"""One environment behind every door (case C1): run, exec, shells, and child images."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest

from tests.e2e.boxes import Boxes, Image, call, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from strata.engine import Engine

IMAGES = ["train", "lab", "remote", "dev", "slim"]
PROGRAM = "import os, sys; print(sys.prefix, os.environ['CONDA_PREFIX'], os.environ['PATH'])"
COMMAND = shlex.join(["python", "-c", PROGRAM])
BASH = ("-euo", "pipefail", "-c", COMMAND)
CHILD = "strata-test/child:environment"
# What a child image adds must reach its users too, by every door.
DOCKERFILE = f"""\
FROM {{parent}}
RUN {COMMAND} >/tmp/sh
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
RUN {COMMAND} >/tmp/bash
RUN bash -lc {shlex.quote(COMMAND)} >/tmp/login
ENV PATH=/app/bin:$PATH
"""


@pytest.mark.parametrize("name", IMAGES)
def test_every_door_of_a_container(boxes: Boxes, name: str) -> None:
    """Run, other entry points, strict bash, login shells and exec all find the same Python."""
    idle = boxes.start(name, command=("sleep", "infinity"))
    doors = {
        "run": boxes.once(name, command=("python", "-c", PROGRAM)),
        "sh": boxes.once(name, "--entrypoint", "sh", command=("-c", COMMAND)),
        "bash": boxes.once(name, "--entrypoint", "bash", command=BASH),
        "strict": boxes.once(name, command=("bash", *BASH)),
        "login": boxes.once(name, command=("bash", "-l", "-c", COMMAND)),
        "strict login": boxes.once(name, command=("bash", "-l", *BASH)),
        "exec": idle.run("python", "-c", PROGRAM),
        "exec login": idle.run("bash", "-lc", COMMAND),
    }
    assert {door: done.err for door, done in doors.items() if done.err} == {}
    said = {done.out for done in doors.values()}
    assert len(said) == 1, doors
    prefix, conda_prefix, path = said.pop().split()
    assert (prefix, conda_prefix) == ("/opt/env", "/opt/env")
    assert path.startswith("/opt/env/bin:")


def test_the_environment_uses_all_the_cpus_that_it_is_given(boxes: Boxes) -> None:
    """As many threads as CPUs, and no variable that says otherwise."""
    program = (
        "import os, torch; print(torch.get_num_threads(), "
        "[name for name in os.environ if name.startswith(('OMP_', 'MKL_', 'OPENBLAS_'))])"
    )
    for cpus, threads in (("0", 1), ("0,1", 2)):
        said = boxes.once("slim", "--cpuset-cpus", cpus, command=("python", "-c", program))
        assert (said.code, said.out) == (0, f"{threads} []"), said.err


@pytest.fixture(scope="module", params=["train", "dev"])
def child(
    request: pytest.FixtureRequest,
    engine: Engine,
    image: Image,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    """Build a child image, as a user's own Dockerfile does."""
    folder: Path = tmp_path_factory.mktemp("child")
    text = DOCKERFILE.format(parent=image(request.param))
    (folder / "Dockerfile").write_text(text)
    built = call("docker", "build", "--no-cache", "--tag", CHILD, str(folder), env=engine.env)
    assert built.code == 0, built.err
    yield CHILD
    removed = call("docker", "image", "rm", "--force", CHILD, env=engine.env)
    assert removed.code == 0, removed.err


def test_child_dockerfile(boxes: Boxes, child: str) -> None:
    """A child's RUN, by sh, by strict bash and by a login shell, finds what a container finds."""
    seen = boxes.once(child, command=("cat", "/tmp/sh", "/tmp/bash", "/tmp/login"))  # noqa: S108
    assert seen.code == 0, seen.err
    inside = boxes.once(child, "--env", "PATH=/opt/env/bin:/bin", command=("python", "-c", PROGRAM))
    by_run = [line.split() for line in seen.out.splitlines()]
    assert [line[:2] for line in by_run] == [inside.out.split()[:2]] * 3
    assert {line[2].split(":")[0] for line in by_run} == {"/opt/env/bin"}


def test_childs_path(boxes: Boxes, child: str) -> None:
    """What a child image puts onto PATH is first in a container, in exec and in a login shell."""
    said = {
        boxes.once(child, command=command).out
        for command in (("printenv", "PATH"), ("bash", "-lc", "printenv PATH"))
    }
    assert len(said) == 1
    assert said.pop().split(":")[:2] == ["/app/bin", "/opt/env/bin"]


def test_exit_codes_and_signals_pass(boxes: Boxes) -> None:
    """A command's exit code is the container's, and a signal reaches the command."""
    assert boxes.once("train", command=("sh", "-c", "exit 41")).code == 41
    script = "trap 'exit 17' TERM; echo ready; while :; do sleep 0.1; done"
    box = boxes.start("train", command=("bash", "-c", script))
    until(lambda: "ready" in box.logs or None, "the command's start")
    code, seconds = box.stop()
    assert code == 17
    assert seconds < 5
