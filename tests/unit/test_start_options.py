"""What the command line says of a container: validated at once, words kept apart."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from strata.cli import make_namespace
from strata.cli.words import with_image_flags
from strata.errors import DefinitionError, HostError
from strata.run import become
from strata.start.command import foreground, words_after_dashes
from strata.start.options import StartOptions, start_options

ROOT = Path(__file__).parents[2]
PLAIN = {
    "image": "train",
    "variant": "embedded",
    "port": "",
    "public": False,
    "gpus": "auto",
    "work": "",
    "user": "",
    "shm": "",
    "name": "",
    "env": [],
}


def parse(cwd: Path, **given: Any) -> StartOptions:  # noqa: ANN401 - values of every kind
    """Parse the plain options with some of them changed."""
    return start_options(cwd=cwd, **{**PLAIN, **given})


def test_without_flags_the_current_folder_is_worked_on(tmp_path: Path) -> None:
    """Nothing but the image is needed."""
    assert parse(tmp_path) == StartOptions(image="train", work=tmp_path)


def test_every_flag_is_read(tmp_path: Path) -> None:
    """Numbers become numbers, a relative folder a whole path."""
    (tmp_path / "data").mkdir()
    found = parse(
        tmp_path,
        port="8888",
        public=True,
        gpus="none",
        work="data",
        user="12:34",
        shm="8g",
        name="mine",
        env=["A=b=c", "B=", "C"],
    )
    assert found == StartOptions(
        image="train",
        port=8888,
        is_public=True,
        gpus="none",
        work=tmp_path / "data",
        user=(12, 34),
        shm="8g",
        name="mine",
        env=("A=b=c", "B=", "C"),
    )
    assert parse(tmp_path, work="none").work is None


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    """Each flag that is wrong is named, with its fix, and no value of a variable is shown."""
    with pytest.raises(DefinitionError) as caught:
        parse(
            tmp_path,
            port="70000",
            gpus="some",
            work="nowhere",
            user="me",
            shm="much",
            name="-",
            env=["no name=secret"],
        )
    where = [problem.where for problem in caught.value.problems]
    assert where == [
        "--port 70000",
        "--gpus some",
        "--work nowhere",
        "--user me",
        "--shm much",
        "--name -",
        "--env no name",
    ]
    assert all(problem.fix for problem in caught.value.problems)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("port", ["0", "65536", "-1", "http"])
def test_a_port_is_a_number(tmp_path: Path, port: str) -> None:
    """Ports are 1 to 65535."""
    with pytest.raises(DefinitionError, match="is no port"):
        parse(tmp_path, port=port)


def test_words_after_the_dashes_stay_apart() -> None:
    """A command keeps its words, spaces, quotes and later dashes."""
    argv = ["inv", "run", "train", "--", "sh", "-c", "echo 'a  b'", "--", ""]
    assert words_after_dashes(argv) == ("sh", "-c", "echo 'a  b'", "--", "")
    assert words_after_dashes(["inv", "run", "train"]) == ()


def test_a_command_is_run_in_the_foreground() -> None:
    """Stdin is always passed on, a terminal where there is one; without a command it is a shell."""
    assert foreground(["IMAGE"], ["true"], has_terminal=False) == [
        *("docker", "run", "--rm", "--interactive"),
        *("IMAGE", "true"),
    ]
    assert foreground(["IMAGE"], [], has_terminal=True) == [
        *("docker", "run", "--rm", "--interactive", "--tty"),
        *("IMAGE", "bash"),
    ]


def test_a_program_that_is_missing_is_an_error() -> None:
    """Who can't become it stays, and says what is missing."""
    with pytest.raises(HostError, match="'no-such-program': No such file or directory"):
        become(["no-such-program"], where="docker run", fix="install it", env={})


@pytest.mark.parametrize(
    ("words", "placed"),
    [
        (["jupyter"], ["jupyter"]),
        (["jupyter", "dev"], ["jupyter", "--image", "dev"]),
        (
            ["ssh", "--port", "2222", "--config", "dev", "--stop"],
            ["ssh", "--port", "2222", "--config", "--image", "dev", "--stop"],
        ),
        (["ssh", "--image", "dev"], ["ssh", "--image", "dev"]),
        (["ssh", "--key=a.pub", "dev"], ["ssh", "--key=a.pub", "--image", "dev"]),
        (["run", "train", "list"], ["run", "train", "list"]),
        (["jupyter", "list"], ["jupyter", "list"]),
    ],
)
def test_the_image_may_be_left_out(words: list[str], placed: list[str]) -> None:
    """`jupyter IMAGE` and `ssh IMAGE` are read wherever the image stands."""
    assert with_image_flags(words, make_namespace(ROOT).to_contexts()) == placed


COMMON = {
    *("image", "variant", "port", "public", "gpus", "work", "user", "shm", "env", "name"),
    "dry-run",
}


@pytest.mark.parametrize(
    ("task", "more"),
    [("run", set()), ("jupyter", {"stop"}), ("ssh", {"stop", "key", "config"})],
)
def test_a_task_has_the_flags_of_the_guide(task: str, more: set[str]) -> None:
    """Each takes exactly its flags, and docs/run.md has a line for each of them."""
    (context,) = [c for c in make_namespace(ROOT).to_contexts() if c.name == task]
    flags = {argument.name.replace("_", "-") for argument in context.args.values()}
    assert flags == COMMON | more
    table = (ROOT / "docs/run.md").read_text().split("## With ./inv")[1]
    rows = set(re.findall(r"^\| `--([a-z-]+)", table, flags=re.MULTILINE))
    assert flags - {"image", "stop"} <= rows
    assert "`--stop`" in table
