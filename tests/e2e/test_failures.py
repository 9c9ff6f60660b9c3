"""Failures while running, with a real engine: the right exit code, the reason, no leftovers."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from strata.check.container import PID
from strata.record import read_records
from tests.e2e.tiny import TinyProject, make_tiny_project, remove_images

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from docker import DockerClient

    from strata.engine import Engine

ONE = "layers/10-one/Dockerfile"
TWO = "layers/20-two/Dockerfile"
COMMAND = 'echo "$COLOUR" > /colour'
DDP = """\
summary = "Two layers, and a training check"
layers = ["10-one", "20-two"]
checks = ["ddp"]
"""
# Stands in the image where the real check would be.
CHECK = """\
FROM parent
SHELL ["/bin/bash", "-euo", "pipefail", "-c"]
ARG COLOUR
RUN <<'END'
cat > /bin/ddp-check <<'CHECK'
#!/bin/bash
{script}
CHECK
chmod 755 /bin/ddp-check
END
"""
PASSES = """echo '{"verdict": "pass", "label": "CPU, gloo", "world_size": 2, "phases": []}'"""
FAILS = """\
echo '{"verdict": "fail", "label": "CPU, gloo", "world_size": 2,
  "phases": [{"name": "all-reduce", "outcome": "fail", "reason": "rank 1: 2 is not 3"}]}'
echo "rank 1 said so" >&2
exit 6"""
SAYS_COLOUR = """\
def test_the_colour(host):
    assert host.check_output("cat /colour") == host.check_output("cat < /colour")
"""
DOCKER = """\
#!/bin/bash
# Counts its calls; fails in place of docker at the one that STUB_FAIL names.
echo "$*" >> "$STUB_CALLS"
count=0
while read -r _; do count=$((count + 1)); done < "$STUB_CALLS"
if [ "$count" = "${STUB_FAIL:-0}" ]; then
  echo "stub: call $count has failed" >&2
  exit 7
fi
exec "$REAL_DOCKER" "$@"
"""
PATIENCE = 60.0


@pytest.fixture
def project(tmp_path: Path, engine: Engine, docker_client: DockerClient) -> Iterator[TinyProject]:
    """Make the tiny project, and remove its images afterwards."""
    yield make_tiny_project(tmp_path, engine.env)
    remove_images(docker_client)


def wait_for(what: str, is_so: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait until something is so while a task runs; fail where it ends before."""
    deadline = time.monotonic() + PATIENCE
    while not is_so():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail(f"no {what}: {process.communicate()[0]}")
        time.sleep(0.05)


def containers_of(sdk: DockerClient, process: subprocess.Popen[str]) -> list[str]:
    """Return the states of the containers that a task has started."""
    found = sdk.containers.list(all=True, filters={"label": f"{PID}={process.pid}"})
    return [container.status for container in found]


def read(sdk: DockerClient, image: str, file: str) -> str:
    """Return what a file of an image holds."""
    return str(sdk.containers.run(image, ["cat", file], remove=True).decode().strip())


def test_a_change_of_the_base_reaches_every_image(
    project: TinyProject, docker_client: DockerClient
) -> None:
    """No child is built on an older parent, though that is still there (case I4).

    What a definition says arrives as it is, also where bake would see a template.
    """
    for text in (project.mark(), f"{project.mark()} ${{HOME}} %{{if}} $HOME"):
        project.replace("layers/10-one/layer.toml", project.marker, text)
        code, out, _ = project.build("--no-check", "--image", "small", "--image", "pair")
        assert code == 0
        assert "not checked" in out
        assert read(docker_client, "strata/small:embedded", "/colour") == text
        assert read(docker_client, "strata/pair:embedded", "/colour") == text
    code, _, err = project.build("--no-check", "--image", "small", "--image", "pair")
    assert (code, "buildx bake" in err) == (0, False)


@pytest.mark.parametrize(
    "lines",
    [
        ("no-such-program", "echo two", "echo three"),
        ("echo one", "no-such-program", "echo three"),
        ("echo one", "echo two", "no-such-program"),
        ("echo one", "cat < /dev/tcp/127.0.0.1/9 | cat > /page", "echo three"),
    ],
    ids=["first", "middle", "last", "download"],
)
def test_a_command_that_fails_stops_the_build(
    project: TinyProject, docker_client: DockerClient, lines: tuple[str, ...]
) -> None:
    """At any position and in a pipe: its layer is named, and nothing is built on it."""
    project.replace(ONE, COMMAND, "\n".join(lines))
    code, _, err = project.build("--image", "pair")
    assert code == 4
    log = project.root / "build/logs/bake-embedded.log"
    problem = err[err.index("\nerror: ") :]
    assert problem.startswith(f"\nerror: {ONE}: `docker buildx bake ")
    assert f"full log: {log}" in problem
    assert "did not complete successfully" in log.read_text()
    assert not docker_client.images.list("strata/pair")
    assert not project.record.exists()


def test_on_a_terminal_a_failure_is_told_as_well(project: TinyProject) -> None:
    """Bake draws its own display there; the layer is named all the same, and the log is text."""
    project.replace(TWO, "RUN echo", "RUN echo said; false && echo")
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (50, 150))
    with open(master, "rb", buffering=0) as screen:  # noqa: PTH123 - a descriptor
        process = subprocess.Popen(
            project.command("build", "--image", "pair"),
            cwd=project.root,
            env=project.environment(project.env),
            stdin=subprocess.DEVNULL,
            stdout=slave,
            stderr=slave,
        )
        os.close(slave)
        shown = b""
        with contextlib.suppress(OSError):  # EIO: so the terminal's other end is closed
            while chunk := screen.read(1 << 16):
                shown += chunk
        assert process.wait(PATIENCE) == 4
    drawn = shown.decode()
    assert "\x1b[1A" in drawn  # it has been drawn over
    assert "[+] Building" in drawn
    log = project.root / "build/logs/bake-embedded.log"
    problem = drawn[drawn.index("\nerror: ") :].replace("\r", "")
    assert problem.startswith(f"\nerror: {TWO}: `docker buildx bake "), problem
    assert f"full log: {log}" in problem
    kept = log.read_text()
    assert "\x1b" not in kept
    assert "said" in kept
    assert "did not complete successfully: exit code: 1" in kept


def test_a_failure_in_a_higher_layer_is_its_own(
    project: TinyProject, docker_client: DockerClient
) -> None:
    """What is below stays, and the next run carries on from there."""
    project.replace(TWO, "RUN echo", "RUN false && echo")
    code, _, err = project.build("--no-check", "--image", "pair")
    assert code == 4
    assert f"\nerror: {TWO}: " in err
    project.replace(TWO, "RUN false && echo", "RUN echo")
    code, _, _ = project.build("--no-check", "--image", "pair")
    assert code == 0
    assert read(docker_client, "strata/pair:embedded", "/colour") == project.marker


def test_a_layers_test_that_fails_is_told_and_recorded(project: TinyProject) -> None:
    """Exit 5, after all images were checked and the record was written."""
    project.write("tests/layers/10-one/test_one.py", SAYS_COLOUR)
    project.write("tests/layers/20-two/test_two.py", "def test_two():\n    assert 1 == 2\n")
    code, out, err = project.build("--image", "pair", "--image", "small")
    assert code == 5
    assert "error: strata/pair:embedded, layer 20-two: 1 failed" in err
    assert "✗ layer 20-two: 1 failed" in out
    verdicts = {
        (image, check.name): check.verdict
        for (_, image), record in read_records(project.record).items()
        for check in record.checks
    }
    assert verdicts == {
        ("pair", "layer 10-one"): "pass",
        ("pair", "layer 20-two"): "fail",
        ("small", "layer 10-one"): "pass",
    }


def test_a_container_that_dies_under_its_tests_is_blamed(
    project: TinyProject, docker_client: DockerClient
) -> None:
    """Exit 5, and the message says that it died, not that the layer is bad."""
    text = """\
import subprocess

def test_before(host):
    assert host.run("true").rc == 0

def test_kill(host):
    subprocess.run(["docker", "kill", host.backend.name], check=True, capture_output=True)

def test_after(host):
    assert host.run("true").rc == 0
"""
    project.write("tests/layers/10-one/test_one.py", text)
    code, _, err = project.build("--image", "small")
    assert code == 5
    assert (
        "error: strata/small:embedded, layer 10-one: the test container died in the middle"
        " (exit code 137)\n2 passed, 1 failed" in err
    )
    left = docker_client.containers.list(all=True, filters={"ancestor": "strata/small:embedded"})
    assert left == []


def test_a_training_check_that_fails_has_its_own_code(project: TinyProject) -> None:
    """Exit 6, with what the check said; once it passes, so does the build."""
    project.write("images/pair.toml", DDP)
    project.write(TWO, CHECK.format(script=FAILS))
    code, out, err = project.build("--image", "pair")
    assert code == 6
    assert "error: strata/pair:embedded, ddp: CPU, gloo, 2 ranks\nall-reduce: rank 1" in err
    assert "rank 1 said so" in err
    assert "✗ ddp: CPU, gloo, 2 ranks" in out
    project.write(TWO, CHECK.format(script=PASSES))
    code, out, _ = project.build("--image", "pair")
    assert code == 0
    assert "✓ ddp: CPU, gloo, 2 ranks" in out


def test_what_was_checked_is_not_checked_again(project: TinyProject) -> None:
    """A build repeats no check that passed, and one without checks keeps what the record says."""
    for layer in ("10-one", "20-two"):
        project.write(f"tests/layers/{layer}/test_{layer[3:]}.py", SAYS_COLOUR)
    project.write("images/pair.toml", DDP)
    project.write(TWO, CHECK.format(script=PASSES))
    assert project.build("--no-check", "--image", "pair")[0] == 0
    record = read_records(project.record)["embedded", "pair"]
    assert (record.checks, record.facts) == ((), {})
    assert record.not_run == {"checks": "--no-check was given"}
    took = record.resources
    assert took is not None
    assert 10_000_000 < took.memory < 2 << 30
    assert 10_000_000 < took.program_memory < 2 << 30
    assert 1_000_000 < took.cache < 6_000_000_000  # the tiny base
    assert took.engine > 1_000_000

    done = project.inv("check", "--gpus", "none", "--image", "pair", env=project.env)
    assert done.returncode == 0, done.stderr
    assert "-m pytest" in done.stderr
    record = read_records(project.record)["embedded", "pair"]
    assert [check.name for check in record.checks] == ["layer 10-one", "layer 20-two", "ddp"]
    assert record.has_passed
    assert record.facts == {"colour": project.marker}
    reason = "--gpus none was given; the training check ran on the CPU with gloo"
    assert record.not_run == {"training on GPUs": reason}

    done = project.inv("check", "--gpus", "none", "--image", "pair", env=project.env)
    assert done.returncode == 0, done.stderr
    assert "-m pytest" not in done.stderr
    # `small` is the lower half of it under another name, and another image.
    code, _, err = project.build("--image", "small")
    assert (code, "-m pytest" in err) == (0, True)
    code, _, err = project.build("--image", "small")
    assert (code, "-m pytest" in err) == (0, False)
    assert project.build("--no-check", "--image", "pair")[0] == 0
    kept = read_records(project.record)["embedded", "pair"]
    assert kept.resources == record.resources
    assert (kept.checks, kept.facts, kept.not_run) == (record.checks, record.facts, record.not_run)


def test_an_image_without_its_training_check_fails_it(project: TinyProject) -> None:
    """What cannot be started has not passed."""
    project.write("images/pair.toml", DDP)
    code, _, err = project.build("--image", "pair")
    assert code == 6
    assert "error: strata/pair:embedded, ddp: ddp-check did not start" in err


def test_an_interrupt_leaves_no_container_and_a_whole_record(
    project: TinyProject, docker_client: DockerClient
) -> None:
    """Ctrl-C while a check runs ends with 130; what was recorded before is still there."""
    assert project.build("--image", "small")[0] == 0
    before = project.record.read_bytes()
    project.write("images/pair.toml", DDP)
    project.write(TWO, CHECK.format(script="sleep 300"))
    process = project.start("build", "--image", "pair")

    def is_training() -> bool:
        running = docker_client.containers.list(filters={"label": f"{PID}={process.pid}"})
        return any("ddp-check" in str(c.attrs["Args"] + [c.attrs["Path"]]) for c in running)

    wait_for("training check", is_training, process)
    os.killpg(process.pid, signal.SIGINT)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert said.splitlines()[-1].startswith("interrupted")
    assert "Traceback" not in said
    assert containers_of(docker_client, process) == []
    assert project.record.read_bytes() == before


@pytest.mark.parametrize(("how", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_a_build_that_is_ended_leaves_everything_usable(
    project: TinyProject, docker_client: DockerClient, how: signal.Signals, code: int
) -> None:
    """Killed or by Ctrl-C in the middle of bake: images and record stay, the next run carries on.

    Nothing but a kill goes without a word.
    """
    assert project.build("--no-check", "--image", "small")[0] == 0
    before = project.record.read_bytes()
    project.replace(TWO, "RUN echo", "RUN echo begun && sleep 300 && echo")
    process = project.start("build", "--no-check", "--image", "pair")
    log = project.root / "build/logs/bake-embedded.log"
    wait_for("step", lambda: log.exists() and "begun\n" in log.read_text(), process)
    os.killpg(process.pid, how)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == code
    assert "Traceback" not in said
    assert said.splitlines()[-1].startswith("interrupted") == (how is signal.SIGINT)
    assert project.record.read_bytes() == before
    assert read(docker_client, "strata/small:embedded", "/colour") == project.marker
    project.replace(TWO, "sleep 300 && ", "")
    ended, _, err = project.build("--no-check", "--image", "pair")
    assert ended == 0
    assert "10-one" not in json.dumps(bake_targets(project)), err
    images = [image for _, image in read_records(project.record)]
    assert images == ["pair", "small"]


def bake_targets(project: TinyProject) -> list[str]:
    """Return what the last bake file was to build."""
    bake = json.loads((project.root / "build/bake-embedded.json").read_text())
    return [name.rpartition("_")[2] for name in bake["target"]]


def test_a_check_that_was_killed_leaves_no_container_for_long(
    project: TinyProject, docker_client: DockerClient
) -> None:
    """Nothing can remove it at once; the next run does."""
    project.write("images/pair.toml", DDP)
    project.write(TWO, CHECK.format(script="sleep 300"))
    process = project.start("build", "--image", "pair")
    wait_for("container", lambda: "running" in containers_of(docker_client, process), process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE)
    assert containers_of(docker_client, process) != []
    assert project.build("--image", "small")[0] == 0
    assert containers_of(docker_client, process) == []


@pytest.fixture
def stub(project: TinyProject, tmp_path: Path) -> dict[str, str]:
    """Put the stub before the real docker; return the environment that it needs."""
    path = tmp_path / "stub" / "docker"
    path.parent.mkdir()
    path.write_text(DOCKER)
    path.chmod(0o755)
    return {
        "PATH": f"{path.parent}{os.pathsep}{project.env['PATH']}",
        "STUB_CALLS": str(tmp_path / "calls"),
        "REAL_DOCKER": str(shutil.which("docker")),
    }


def test_no_call_of_docker_may_fail_unnoticed(project: TinyProject, stub: dict[str, str]) -> None:
    """Whichever call ends with 7, the build ends otherwise than well, and says why (case I10)."""
    project.write("tests/layers/10-one/test_one.py", SAYS_COLOUR)
    calls = Path(stub["STUB_CALLS"])
    assert project.build("--image", "small", env=stub)[0] == 0
    made = calls.read_text().splitlines()
    assert any(call.startswith("buildx bake ") for call in made)
    assert any(call.startswith("exec ") for call in made)
    for position, call in enumerate(made, start=1):
        calls.unlink()
        project.mark()  # so that all is built and checked anew
        code, out, err = project.build("--image", "small", env={**stub, "STUB_FAIL": str(position)})
        where = f"call {position}: docker {call}\n{err}"
        expected = {"buildx": 4, "exec": 5}.get(call.split()[0], 8)
        assert code == expected, where
        assert f"stub: call {position} has failed" in out + err, where


def test_no_call_of_docker_may_fail_unnoticed_afterwards(
    project: TinyProject, stub: dict[str, str]
) -> None:
    """Neither may one of plan or check of an image that is built; push makes none (case I10)."""
    project.write("tests/layers/10-one/test_one.py", SAYS_COLOUR)
    assert project.build("--image", "small")[0] == 0
    calls = Path(stub["STUB_CALLS"])
    for words in (("plan",), ("check", "--force")):
        task = (*words, "--image", "small")
        calls.unlink(missing_ok=True)
        done = project.inv(*task, env={**project.env, **stub})
        assert done.returncode == 0, done.stderr
        for position, call in enumerate(calls.read_text().splitlines(), start=1):
            calls.unlink()
            done = project.inv(*task, env={**project.env, **stub, "STUB_FAIL": str(position)})
            where = f"{words[0]}, call {position}: docker {call}\n{done.stderr}"
            assert done.returncode == (5 if call.startswith("exec ") else 8), where
            assert f"stub: call {position} has failed" in done.stdout + done.stderr, where
            assert "Traceback" not in done.stderr, where


# An old terminal, in which ✓ does not exist: Python's own ways around are closed.
ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def test_without_terminal_stdin_and_locale_nothing_hangs(project: TinyProject) -> None:
    """As cron starts it: no terminal, stdin closed, LANG=C; success and failure alike."""
    project.write("tests/layers/10-one/test_one.py", SAYS_COLOUR)
    project.replace("images/small.toml", "One layer", "Ein Gerät")
    argv = ["bash", "-c", 'exec "$@" <&-', "bash", *project.command("build", "--image", "small")]
    done = project.run(argv, env={**project.env, **ASCII})
    assert "Traceback" not in done.stderr
    assert done.returncode == 0, done.stderr
    assert "? layers 1/1" in done.stdout
    project.replace(ONE, COMMAND, "false 'ü'")
    done = project.run(argv, env={**project.env, "LANG": "C", "LC_ALL": "C"})
    assert "Traceback" not in done.stderr
    assert done.returncode == 4, done.stderr
