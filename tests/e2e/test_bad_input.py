"""Bad input on the real command line: place, reason, fix and exit code, before Docker is called.

A stub takes the place of the docker client and tells whether it was called;
DOCKER_HOST points nowhere, so that asking the engine itself would end with 8.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.projects import NOWHERE, SmallProject, make_project

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

STUB = '#!/bin/sh\necho "$@" >> "$STUB_CALLS"\nexit 1\n'
BUILD = ("build",)
CASES = {
    "unknown key": (
        ("images/pair.toml", "layers =", "layres ="),
        2,
        'error: images/pair.toml: unknown key "layres" (did you mean "layers"?)',
    ),
    "unknown layer": (
        ("images/pair.toml", "20-two", "20-tow"),
        2,
        'error: images/pair.toml: layers[1]: no layer "20-tow" (did you mean "20-two"?)',
    ),
    "layers out of order": (
        ("images/whole.toml", '"30-env", "40-top"', '"40-top", "30-env"'),
        2,
        'error: images/whole.toml: layers[3]: "30-env" does not climb above "40-top"',
    ),
    "missing requires": (
        ("images/pair.toml", '"10-one", ', ""),
        2,
        'error: images/pair.toml: layers[0]: "20-two" requires "10-one", which is not below it',
    ),
    "FROM something else": (
        ("layers/20-two/Dockerfile", "FROM parent", "FROM debian:12"),
        2,
        "error: layers/20-two/Dockerfile: does not start with `FROM parent`",
    ),
    "ARG of nobody": (
        ("layers/20-two/Dockerfile", "ARG COLOUR", "ARG COLOR"),
        2,
        ("error: layers/20-two/Dockerfile: ARG COLOR is supplied by nobody in the variant embedded"
        ' (did you mean "COLOUR"?)'),
    ),
    "invalid TOML": (
        ("images/pair.toml", "layers = [", "layers = = ["),
        2,
        "error: images/pair.toml: invalid TOML: Invalid value (at line 2, column 10)",
    ),
    "invalid YAML": (
        ("layers/30-env/environment.yml", "- tool", "- [tool"),
        2,
        "error: layers/30-env/environment.yml:3: invalid YAML",
    ),
    "invalid YAML in the pins": (
        ("locks/embedded/pins.yml", "accelerator: cpu", "accelerator: cpu: 1"),
        2,
        "error: locks/embedded/pins.yml:1: invalid YAML",
    ),
    "stale lock": (
        ("locks/embedded/pins.yml", "tool: 1.*", "tool: 2.*"),
        3,
        'error: locks/embedded/pins.yml:6: the lock is stale: pins.tool was "1.*" and is "2.*"',
    ),
    "lock of another environment": (
        ("layers/30-env/environment.yml", "- tool", "- tool\n- library"),
        3,
        ("error: layers/30-env/environment.yml:3: the lock is stale:"
        ' environment.env.library "*" is new'),
    ),
    "lock with a wrong hash": (
        ("locks/embedded/conda-lock.yml", "74" * 32, "74" * 31),
        3,
        "error: locks/embedded/conda-lock.yml: tool 1.0 (linux-64) has no sha256",
    ),
    "lock with another hash": (
        ("locks/embedded/conda-lock.yml", "74" * 32, "75" * 32),
        3,
        "error: locks/embedded/conda-lock.yml: its packages are not those that were solved",
    ),
    "lock edited by hand": (
        ("locks/embedded/conda-lock.yml", '"strata-input.pins.tool": "1.*"',
         '"strata-input.pins.tool": "2.*"'),
        3,
        "error: locks/embedded/conda-lock.yml: its record of what it was solved for was edited",
    ),
    "broken lock": (
        ("locks/embedded/conda-lock.yml", '"version": 1,', '"version": ['),
        3,
        "error: locks/embedded/conda-lock.yml:",
    ),
}  # fmt: skip


class CommandLine:
    """The command line of a small project, with a docker client that only counts."""

    def __init__(self, folder: Path) -> None:
        """Write the project and the stub."""
        self.project: SmallProject = make_project(folder / "project")
        self.calls = folder / "calls"
        stub = folder / "bin" / "docker"
        stub.parent.mkdir()
        stub.write_text(STUB)
        stub.chmod(0o755)
        self.env = {
            "PATH": f"{stub.parent}{os.pathsep}{os.environ['PATH']}",
            "STUB_CALLS": str(self.calls),
            "DOCKER_HOST": NOWHERE,
        }

    def refuses(self, *argv: str) -> tuple[int, str]:
        """Run a task that ends before Docker is called; return its code and what it said."""
        done = self.project.inv(*argv, env=self.env)
        assert not self.calls.exists(), self.calls.read_text()
        assert "Traceback" not in done.stderr
        assert done.stdout == ""
        assert "  fix: " in done.stderr
        return done.returncode, done.stderr


@pytest.fixture
def command(tmp_path: Path) -> CommandLine:
    """Return a command line that is at nobody's but the test's."""
    return CommandLine(tmp_path)


@pytest.mark.parametrize("name", CASES)
def test_a_fault_is_refused(command: CommandLine, name: str) -> None:
    """With its place, its reason and its exit code, by `build` as by everyone."""
    change, code, message = CASES[name]
    command.project.replace(*change)
    found, said = command.refuses(*BUILD)
    assert message in said.splitlines() or message in said
    assert found == code


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ("build", "--image", "pear"),
            'error: --image pear: no image "pear" (did you mean "pair"?)',
        ),
        (
            ("plan", "--image", "pear"),
            'error: --image pear: no image "pear" (did you mean "pair"?)',
        ),
        (
            ("check", "--variant", "embeded"),
            'error: --variant embeded: no variant "embeded" (did you mean "embedded"?)',
        ),
        (("check", "--nproc", "two"), "error: --nproc: 'two' is no number of ranks"),
        (("check", "--gpus", "some"), "error: --gpus: 'some' is unknown"),
    ],
)
def test_what_is_not_there_is_refused(
    command: CommandLine, argv: tuple[str, ...], message: str
) -> None:
    """The closest match is named."""
    code, said = command.refuses(*argv)
    assert said.splitlines()[0] == message
    assert code == 2


def test_a_missing_lock_is_refused(command: CommandLine) -> None:
    """With the command that writes one."""
    command.project.lock.unlink()
    assert command.refuses("build") == (
        3,
        (
            "error: locks/embedded/conda-lock.yml: there is no lock\n"
            "  fix: ./inv lock --variant embedded\n"
        ),
    )


def test_an_image_name_that_no_registry_takes_is_refused(command: CommandLine) -> None:
    """Before anything is built under it."""
    text = 'summary = "s"\nlayers = ["10-one"]\n'
    for name in ("MyOrg", "renovate x@1", "x" * 200):
        command.project.write(f"images/{name}.toml", text)
    code, said = command.refuses("build")
    assert code == 2
    assert [line.partition(": ")[2].partition(":")[0] for line in said.splitlines()[::2]] == [
        "images/MyOrg.toml",
        "images/renovate x@1.toml",
        f"images/{'x' * 200}.toml",
    ]
    assert said.count("no registry takes") == 3


def test_everything_that_is_wrong_is_told_at_once(command: CommandLine) -> None:
    """Five faults in five files are five messages, each with its fix."""
    for name in ("unknown key", "FROM something else", "invalid YAML"):
        command.project.replace(*CASES[name][0])
    command.project.replace("images/whole.toml", '"ddp"', '"dpp"')
    command.project.replace("locks/embedded/sources.toml", "epoch", "epock")
    code, said = command.refuses("build")
    assert code == 2
    places = [line.split(": ")[1] for line in said.splitlines() if line.startswith("error: ")]
    assert places == [
        "layers/20-two/Dockerfile",
        "layers/30-env/environment.yml:3",
        "images/pair.toml",
        "images/pair.toml",
        "images/whole.toml",
        "locks/embedded/sources.toml",
        "locks/embedded/sources.toml",
    ]
    assert said.count("\n  fix: ") == len(places)


@pytest.mark.parametrize("task", ["build", "plan", "check", "list", "lock"])
def test_no_task_goes_on_with_a_broken_definition(command: CommandLine, task: str) -> None:
    """They all load the project, and end alike."""
    command.project.replace(*CASES["unknown key"][0])
    code, said = command.refuses(task)
    assert code == 2
    assert CASES["unknown key"][2] in said


@pytest.mark.parametrize("task", ["build", "build --no-check"])
def test_what_is_not_pinned_needs_no_engine_to_be_told(command: CommandLine, task: str) -> None:
    """A dead engine does not come first: exit 3, with the command that pins."""
    base = 'suite = "bookworm"\ninclude = ["python3"]\n'
    unset = 'image = "docker.io/library/ubuntu:24.04"\ndigest = "unset"\n'
    command.project.replace("locks/embedded/sources.toml", base, unset)
    code, said = command.refuses(*task.split())
    assert code == 3
    assert "error: locks/embedded/sources.toml: not pinned yet: base.digest\n" in said
    assert "fix: ./inv pin --variant embedded\n" in said


@pytest.fixture
def say() -> Callable[[str], str]:
    """Return the first line of what was said."""
    return lambda said: said.splitlines()[0]


def test_an_engine_that_is_not_reachable_is_an_unfit_host(
    command: CommandLine, say: Callable[[str], str]
) -> None:
    """The same project without a fault gets as far as the engine: exit 8, with its address."""
    code, said = command.refuses("build")
    assert code == 8
    assert say(said) == (
        f"error: Docker engine at {NOWHERE} (DOCKER_HOST): it does not answer:"
        " there is no such socket"
    )
