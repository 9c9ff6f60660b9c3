"""Jobs of a phase's own: real ranks that an elastic agent starts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.train.conftest import Trainer

# Ends as its rank's word says; the first attempt of rank 1 fails with `again`.
RANK = """
import os, signal, sys, time
rank, words = int(os.environ["RANK"]), sys.argv[1:]
print("rank", rank, "of", os.environ["WORLD_SIZE"], os.environ["FLAVOUR"], flush=True)
word = words[rank]
if word == "kill":
    os.kill(os.getpid(), signal.SIGKILL)
if word == "hang":
    time.sleep(300)
if word == "again":
    sys.exit(0 if os.environ["TORCHELASTIC_RESTART_COUNT"] == "1" else 3)
sys.exit(int(word))
"""
# What a phase of the supervisor does.
CALL = """
import json, sys, tempfile
from dataclasses import asdict
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from ddp.jobs import run_job
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    (folder / "as_told.py").write_text(sys.argv[2])
    for line in json.loads(sys.argv[3]):
        words, timeout, restarts = line
        result = run_job(
            "as_told", words, nproc=len(words), folder=folder, timeout=timeout,
            max_restarts=restarts, env={"FLAVOUR": "sour", "PYTHONPATH": name},
        )
        print(json.dumps({**asdict(result), "has_passed": result.has_passed}))
"""


@pytest.fixture(scope="module")
def ended(trainer: Trainer) -> list[dict[str, object]]:
    """Run four jobs: one that ends well, and with a kill, a hang and a restart."""
    jobs = [
        (["0", "0"], 60, 0),
        (["0", "kill"], 60, 0),
        (["0", "hang"], 8, 0),
        (["0", "again"], 60, 1),
    ]
    result = trainer.python("-c", CALL, "{train}", RANK, json.dumps(jobs))
    assert (result.code, result.left) == (0, [])
    return [json.loads(line) for line in result.out.splitlines()]


def test_a_job_that_ends_well_passes_and_tells_what_it_wrote(
    ended: list[dict[str, object]],
) -> None:
    """Its ranks have their numbers and the given environment."""
    job = ended[0]
    assert (job["code"], job["ends"], job["has_passed"]) == (0, {}, True)
    assert sorted(str(job["output"]).splitlines()) == ["rank 0 of 2 sour", "rank 1 of 2 sour"]


def test_a_killed_rank_is_told_by_number_and_signal(ended: list[dict[str, object]]) -> None:
    """The job has not passed."""
    job = ended[1]
    ends = job["ends"]
    assert isinstance(ends, dict)
    assert (ends["1"], job["has_passed"]) == (-9, False)


def test_a_hanging_job_is_ended_when_its_time_is_up(ended: list[dict[str, object]]) -> None:
    """There is no exit code, and no process is left."""
    job = ended[2]
    assert (job["code"], job["left"], job["has_passed"]) == (None, [], False)
    assert 8 <= float(str(job["seconds"])) < 10


def test_with_restarts_a_job_goes_on_after_a_failure(ended: list[dict[str, object]]) -> None:
    """All ranks are started again, and the second attempt counts."""
    job = ended[3]
    assert (job["code"], job["ends"], job["has_passed"]) == (0, {}, True)
    assert str(job["output"]).count("rank 1 of 2 sour") == 2
