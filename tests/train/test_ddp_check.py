"""ddp-check as a whole: real gloo ranks on the CPU, and every fault seen failing."""

from __future__ import annotations

import signal
import socket
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.train.conftest import Result, Trainer

PHASES = ["facts", "rendezvous", "collectives", "gradients", "training"]


@pytest.fixture(scope="session")
def passed(trainer: Trainer) -> Result:
    """Return one run without a fault."""
    return trainer.check("--json")


def test_two_ranks_pass_on_a_cpu(passed: Result) -> None:
    """Without arguments two gloo ranks go through all phases and exit 0."""
    document = passed.document
    assert [(phase["name"], phase["outcome"]) for phase in document["phases"]] == [
        (name, "pass") for name in PHASES
    ]
    assert (passed.code, document["verdict"]) == (0, "pass")
    assert (document["world_size"], document["backend"]) == (2, "gloo")


def test_a_cpu_run_is_labelled_as_one(passed: Result) -> None:
    """A run without GPU is never to be taken for a GPU's."""
    assert passed.document["label"] == "CPU, gloo"
    assert passed.document["facts"]["gpus"] == 0
    assert passed.document["facts"]["devices"] == []


def test_a_pass_is_silent(passed: Result) -> None:
    """Neither torch nor Python warns of anything, and no process is left."""
    assert passed.err == ""
    assert passed.left == []


def test_people_get_a_table(trainer: Trainer) -> None:
    """Three ranks pass too, and the table has a line for every phase and the verdict."""
    result = trainer.check("--nproc", "3", "--timeout", "150")
    lines = result.out.splitlines()
    assert result.code == 0
    assert lines[0] == "ddp-check: CPU, gloo, 3 ranks"
    assert [line.split()[:2] for line in lines[3:8]] == [[name, "pass"] for name in PHASES]
    assert lines[-1] == "verdict: pass (CPU, gloo)"


@pytest.mark.parametrize(
    ("fault", "phase", "reason"),
    [
        ("raise", "training", "rank 1: InjectedError"),
        ("exit", "training", "rank 1: exited early"),
        ("kill", "training", "rank 1: was killed by SIGKILL"),
        ("hang", "training", "rank 1: hangs"),
        ("wrong-sum", "collectives", "rank 1: all_reduce of float32 is wrong in 1 of 65536"),
        ("wrong-gradient", "gradients", "rank 1: DDP's gradient of 0.weight differs"),
        ("diverge", "training", "rank 1: after training, 1 of 321 parameters are not bit-equal"),
    ],
)
def test_a_fault_is_found_and_its_rank_named(
    trainer: Trainer, fault: str, phase: str, reason: str
) -> None:
    """A fault in one rank fails its phase within 60 s, names the rank, and leaves nothing."""
    result = trainer.check("--json", "--inject", f"1:{fault}")
    document = result.document
    before = PHASES.index(phase)
    assert result.code == 6
    assert (document["verdict"], document["failed_rank"]) == ("fail", 1)
    assert [found["outcome"] for found in document["phases"]] == [
        *["pass"] * before,
        "fail",
        *["not run"] * (len(PHASES) - before - 1),
    ]
    assert result.phase(phase)["reason"].startswith(reason)
    assert document["seconds"] < 61  # the watchdog's 60, and the ending
    assert result.left == []


def test_a_network_interface_that_is_not_there_fails_the_rendezvous(trainer: Trainer) -> None:
    """Ranks that can't form a group fail, and the cause is named."""
    result = trainer.check("--json", env={"GLOO_SOCKET_IFNAME": "nowhere0"})
    assert (result.code, result.phase("rendezvous")["outcome"]) == (6, "fail")
    assert "nowhere0" in result.phase("rendezvous")["reason"]
    assert result.left == []


def test_the_watchdog_ends_a_check_that_does_not_end(trainer: Trainer) -> None:
    """After --timeout seconds everything is ended, whatever it was doing."""
    result = trainer.check("--json", "--inject", "0:hang", "--timeout", "3")
    reasons = " ".join(phase["reason"] or "" for phase in result.document["phases"])
    assert result.code == 6
    assert "did not end within 3 s" in reasons
    assert result.document["seconds"] < 10
    assert result.left == []


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, 137)]
)
def test_an_interrupt_ends_every_rank(trainer: Trainer, sent: int, code: int) -> None:
    """Ctrl-C, a stopped container and even SIGKILL leave no launcher and no rank."""
    result = trainer.check("--inject", "0:hang", sent=sent, processes=4)
    assert (result.code, result.out, result.left) == (code, "", [])


def test_a_required_gpu_fails_a_host_without_one(trainer: Trainer) -> None:
    """With --require-gpu a CPU run fails before any rank starts, and says why."""
    result = trainer.check("--json", "--require-gpu")
    assert (result.code, result.document["verdict"]) == (6, "fail")
    assert "--require-gpu" in result.phase("facts")["reason"]
    assert [phase["outcome"] for phase in result.document["phases"]] == [
        "fail",
        *["not run"] * 4,
    ]


@pytest.mark.parametrize("argv", [["--nproc", "gpu"], ["--nproc", "0"], ["--inject", "2:kill"]])
def test_bad_arguments_are_refused(trainer: Trainer, argv: list[str]) -> None:
    """What can't be done is refused with exit code 2, by name, with a fix and no traceback."""
    result = trainer.check("--json", *argv)
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith(f"error: {argv[0]}: ")
    assert result.err.splitlines()[1].startswith("  fix: ")
    assert len(result.err.splitlines()) == 2


def test_two_checks_and_busy_ports_do_not_matter(trainer: Trainer) -> None:
    """Side by side on one host's network, with torchrun's usual ports taken, both pass."""
    with ExitStack() as listeners:
        for port in (29400, 29500):
            listener = listeners.enter_context(socket.socket())
            with suppress(OSError):  # somebody else listens there: as good
                listener.bind(("", port))
                listener.listen()
        runs = [trainer.start("--json", "--timeout", "150", network="host") for _ in range(2)]
        results = [trainer.finish(run) for run in runs]
    assert [(result.code, result.document["verdict"]) for result in results] == [(0, "pass")] * 2
