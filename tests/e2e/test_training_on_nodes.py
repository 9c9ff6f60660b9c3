"""docs/training.md, "On two containers": as it stands there, with a node that dies."""

from __future__ import annotations

import csv
import re
import uuid
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.e2e.boxes import ROOT, Box, call, until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.e2e.boxes import Boxes

SHOWN, STEPS = 50, 150  # the page's, and so many that no machine is done before the kill
# So that there is a checkpoint to go on from, and every step can be counted; and small:
# two containers that each take all cores of one host are in each other's way.
OFTEN = (
    f"--max-steps {STEPS} --save-every 5 --log-every 1 "
    "--threads 1 --batch-size 8 --length 16 --warmup 2"
)
PATIENCE = 180  # seconds


@pytest.fixture
def nodes(boxes: Boxes, tmp_path: Path) -> Iterator[tuple[Box, Box]]:
    """Start the page's two containers, under names of their own; the work is in `tmp_path`."""
    name = f"strata-test-{uuid.uuid4().hex[:8]}"
    tmp_path.chmod(0o777)  # the image's user has another number
    page = (ROOT / "docs/training.md").read_text().partition("## On two containers")[2]
    block = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)[0]
    commands, last = block.rsplit("\n", 2)[:2]
    assert last == "docker logs -f node0"
    for shown, ours in (
        ("REGISTRY/OWNER/train", boxes.image("train")),
        ("network create train", f"network create {name}"),
        ("--network train", f"--network {name}"),
        ('"node$node"', f'"{name}-$node"'),
        ("node0:29400", f"{name}-0:29400"),
        (f"--max-steps {SHOWN}", OFTEN),
    ):
        assert shown in commands
        commands = commands.replace(shown, ours)
    boxes.names += [f"{name}-0", f"{name}-1"]
    started = call("bash", "-euc", f'cd "$1"\n{commands}', "bash", str(tmp_path), env=boxes.env)
    try:
        assert started.code == 0, started.err
        yield Box(f"{name}-0", boxes.env), Box(f"{name}-1", boxes.env)
    finally:
        boxes.close()
        boxes.names.clear()
        call("docker", "network", "rm", name, env=boxes.env)


def steps(work: Path) -> list[int]:
    """Return the steps that the run has logged, in the file's order."""
    file = work / "shared/log.csv"
    if not file.exists():
        return []
    with file.open(newline="") as stream:
        return [int(line["step"]) for line in csv.DictReader(stream) if line["part"] == "train"]


def test_a_node_that_dies_comes_back_and_the_run_goes_on(
    nodes: tuple[Box, Box], tmp_path: Path
) -> None:
    """Its container is started again, both go on from the checkpoint, and no step is missing.

    `docker kill` would count as a wish that it stays away: so torchrun is killed inside.
    """
    until(lambda: (6 in steps(tmp_path)) or None, "step 6", PATIENCE)
    killed = nodes[1].run("sh", "-c", "kill -9 $(cat /proc/1/task/1/children)")
    assert killed.code in (0, 137), killed.err
    assert STEPS not in steps(tmp_path)
    ended = [until(partial(_end, box), f"the end of {box.name}", PATIENCE) for box in nodes]
    logs = "\n".join(box.logs for box in nodes)
    assert [code for code, _ in ended] == [0, 0], logs
    assert ended[1][1] >= 1, logs
    assert steps(tmp_path) == list(range(1, STEPS + 1))
    assert re.findall(r"goes on after step \d*[05], from shared/checkpoint\.pt", logs)


def _end(box: Box) -> tuple[int, int] | None:
    """Return the exit code and how often it was started again, once it stays away."""
    said = box.docker(
        *("inspect", "--format"),
        "{{.State.Status}} {{.State.ExitCode}} {{.RestartCount}}",
        box.name,
    )
    status, code, restarts = said.out.split()
    return (int(code), int(restarts)) if status == "exited" else None
