"""ddp-check as a whole: real gloo ranks on the CPU, and every fault seen failing."""

from __future__ import annotations

import signal
import socket
import xml.etree.ElementTree as ET
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.train.conftest import Result, Trainer

PHASES = [
    "facts",
    "rendezvous",
    "memory",
    "collectives",
    "gradients",
    "data",
    "training",
    "checkpoint",
    "scaling",
]


@pytest.fixture(scope="session")
def passed(trainer: Trainer) -> Result:
    """Return one run without a fault."""
    return trainer.check("--json")


def test_two_ranks_pass_on_a_cpu(passed: Result) -> None:
    """Without arguments two gloo ranks go through all phases and exit 0."""
    document = passed.document
    assert [(phase["name"], phase["outcome"]) for phase in document["phases"]] == [
        *((name, "pass") for name in PHASES),
        ("faults", "not run"),  # only with --full
    ]
    assert (passed.code, document["verdict"]) == (0, "pass")
    assert (document["world_size"], document["backend"]) == (2, "gloo")


def test_a_cpu_run_is_labelled_as_one(passed: Result) -> None:
    """A run without GPU is never to be taken for a GPU's."""
    assert passed.document["label"] == "CPU, gloo"
    assert passed.document["facts"]["gpus"] == 0
    assert passed.document["facts"]["devices"] == []


def test_the_host_is_named_also_where_it_is_the_only_one(passed: Result) -> None:
    """With the ranks that were on it."""
    (host,) = passed.document["facts"]["hosts"]
    assert (host["node"], host["ranks"]) == (0, [0, 1])
    assert host["host"] != ""


def test_a_pass_is_silent(passed: Result) -> None:
    """Neither torch nor Python warns of anything, and no process is left."""
    assert passed.err == ""
    assert passed.left == []


def test_ranks_are_told_how_nccl_shall_meet_and_give_up(passed: Result) -> None:
    """By an interface's whole name; its watchdog sleeps four times the wait before it ends one."""
    settings = passed.phase("rendezvous")["data"]["settings"]
    assert settings["NCCL_SOCKET_IFNAME"] == "=lo"
    assert settings["TORCH_NCCL_DUMP_ON_TIMEOUT"] == "0"
    assert settings["TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC"] == "250"


def test_people_get_a_table_and_a_plot(trainer: Trainer) -> None:
    """Three ranks pass too; a line for every phase and the verdict, a dot for every number."""
    result = trainer.check("--nproc", "3", "--timeout", "150", "--plot", "/dev/stderr")
    lines = result.out.splitlines()
    assert result.code == 0
    assert lines[0] == "ddp-check: CPU, gloo, 3 ranks"
    assert [line.split()[:2] for line in lines[3 : 3 + len(PHASES)]] == [
        [name, "pass"] for name in PHASES
    ]
    assert lines[-1] == "verdict: pass (CPU, gloo)"
    # Six collectives at five sizes, and the throughput of 1, 2 and 3 ranks.
    assert len(ET.fromstring(result.err).findall(".//{*}circle")) == 6 * 5 + 3  # noqa: S314


@pytest.mark.parametrize(
    ("fault", "phase", "reason"),
    [
        ("raise", "training", "rank 1: InjectedError"),
        ("exit", "training", "rank 1: exited early"),
        ("kill", "training", "rank 1: was killed by SIGKILL"),
        ("hang", "training", "rank 1: hangs"),
        ("small-shm", "memory", "rank 1: /dev/shm has 64 MiB free; 2 ranks with 2 workers"),
        ("wrong-sum", "collectives", "rank 1: all_reduce (sum) of float32 is wrong in 1 of 256"),
        ("wrong-gradient", "gradients", "rank 1: DDP's gradient of embedding.weight differs"),
        ("lost-unused", "gradients", "rank 1: DDP's gradient of side.weight with unused"),
        ("drift", "gradients", "rank 1: after 3 steps, 1 of 1000 parameters are not bit-equal"),
        ("diverge", "training", "rank 1: after training, 1 of 67329 parameters are not bit-equal"),
    ],
)
def test_a_fault_is_found_and_its_rank_named(
    trainer: Trainer, fault: str, phase: str, reason: str
) -> None:
    """A fault in one rank fails its phase within 60 s, names the rank, and leaves nothing."""
    result = trainer.check("--json", "--inject", f"1:{fault}")
    document = result.document
    assert result.code == 6
    assert (document["verdict"], document["failed_rank"]) == ("fail", 1)
    assert [found["name"] for found in document["phases"] if found["outcome"] == "fail"] == [phase]
    assert [found["name"] for found in document["phases"] if found["outcome"] == "pass"] == [
        "facts",
        "rendezvous",
    ]
    assert result.phase(phase)["reason"].startswith(reason)
    assert document["seconds"] < 61  # the watchdog's 60, and the ending
    assert result.left == []


@pytest.mark.parametrize(
    ("fault", "wrong"),
    [
        ("unweighted", "parameter of embedding.weight after uneven"),
        ("sync-early", "gradient of embedding.weight accumulated under no_sync"),
    ],
)
def test_what_averaging_spreads_to_all_ranks_fails(
    trainer: Trainer, fault: str, wrong: str
) -> None:
    """A rank's wrong weight, or a part that it has not sent: the first to compare is named."""
    result = trainer.check("--json", "--inject", f"1:{fault}")
    rank = result.document["failed_rank"]
    assert (result.code, result.phase("gradients")["outcome"]) == (6, "fail")
    assert rank in (0, 1)
    assert result.phase("gradients")["reason"].startswith(f"rank {rank}: DDP's {wrong}")
    assert result.left == []


def test_a_network_interface_that_is_not_there_fails_the_rendezvous(trainer: Trainer) -> None:
    """Ranks that can't form a group fail, and the cause is named."""
    result = trainer.check("--json", env={"GLOO_SOCKET_IFNAME": "nowhere0"})
    assert (result.code, result.phase("rendezvous")["outcome"]) == (6, "fail")
    assert "nowhere0" in result.phase("rendezvous")["reason"]
    assert result.document["seconds"] < 30
    assert result.left == []


def test_a_port_that_is_taken_fails_fast_and_is_named(trainer: Trainer) -> None:
    """A MASTER_PORT on which somebody listens is no port to wait on (case D3)."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        result = trainer.check("--json", env={"MASTER_PORT": str(port)}, network="host")
    assert (result.code, result.phase("facts")["outcome"]) == (6, "pass")
    assert result.phase("rendezvous")["outcome"] == "fail"
    assert f"MASTER_PORT names port {port}" in result.phase("rendezvous")["reason"]
    assert result.document["seconds"] < 30


def test_a_slow_rank_is_seen_in_efficiency_and_imbalance(trainer: Trainer) -> None:
    """A rank that takes five times as long misses --min-efficiency, and the imbalance shows."""
    result = trainer.check("--json", "--inject", "1:slow", "--min-efficiency", "0.5")
    scaling = result.phase("scaling")
    assert (result.code, scaling["outcome"]) == (6, "fail")
    assert scaling["reason"].startswith("--min-efficiency demands 0.5: ")
    assert scaling["data"]["rows"][1]["imbalance"] > 2
    assert scaling["data"]["efficiency"] < 0.5


def test_a_slow_data_loader_is_seen(passed: Result, trainer: Trainer) -> None:
    """A rank that waits for its batches most of the time is told apart from one that doesn't."""
    slow = trainer.check("--json", "--inject", "1:slow-loader").phase("scaling")
    assert slow["outcome"] == "pass"
    assert slow["data"]["loader_wait_share"] > 0.5
    assert passed.phase("scaling")["data"]["loader_wait_share"] < 0.5


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
        *["not run"] * len(PHASES),  # faults, too
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
