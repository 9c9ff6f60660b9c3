"""One check over several hosts: here, several ddp-checks that meet on one."""

from __future__ import annotations

import signal
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.train.conftest import Result, Trainer


def start_both(
    trainer: Trainer,
    *argv: str,
    first: tuple[str, ...] = (),
    killed: int | None = None,
    port: int = 0,
    env: Mapping[str, str] | None = None,
) -> list[Result]:
    """Run two nodes of one rank each, to their end; `killed` dies when it has its rank."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = port or probe.getsockname()[1]
    place = ["--json", "--nnodes", "2", "--rdzv", f"localhost:{port}", "--node-rank"]
    started = []
    for node in (0, 1):
        more = first if node == 0 else ("--nproc", "1")
        sent, processes = (signal.SIGKILL, 3) if node == killed else (0, 0)
        started.append(
            trainer.start(
                *place,
                str(node),
                *more,
                *argv,
                env=env,
                network="host",
                sent=sent,
                processes=processes,
            )
        )
    return [trainer.finish(process) for process in started]


def test_a_rank_that_hangs_on_another_host_is_named_with_it(trainer: Trainer) -> None:
    """Both nodes report the same: the rank, its host, and where all the others were."""
    results = start_both(trainer, "--inject", "1:hang", first=("--nproc", "1"))
    hosts = results[0].document["facts"]["hosts"]
    assert [host["node"] for host in hosts] == [0, 1]
    assert sorted(rank for host in hosts for rank in host["ranks"]) == [0, 1]
    node = next(host for host in hosts if host["ranks"] == [1])
    for result in results:
        assert (result.code, result.left) == (6, [])
        assert (result.document["world_size"], result.document["failed_rank"]) == (2, 1)
        reason = result.phase("training")["reason"]
        assert reason.startswith(f"rank 1 on {node['host']} (node {node['node']}): hangs")
        assert result.document["seconds"] < 60


def test_the_others_end_when_a_host_dies(trainer: Trainer) -> None:
    """What is left of the check ends within 60 s, and says which host went (case D5)."""
    other, dead = start_both(trainer, first=("--nproc", "1"), killed=1)
    assert (dead.code, dead.out) == (137, "")
    assert (other.code, other.left) == (6, [])
    (reason,) = [
        phase["reason"] for phase in other.document["phases"] if phase["outcome"] == "fail"
    ]
    assert "(node 1): went with its host, of which nothing came back" in reason
    assert other.document["seconds"] < 75  # the start of torch, and 60


def test_hosts_that_were_started_differently_do_not_train(trainer: Trainer) -> None:
    """Both say what differs, and no rank is started."""
    results = start_both(trainer, first=("--nproc", "2"))
    for result in results:
        assert (result.code, result.left) == (6, [])
        assert "has nproc 1, node 0" in result.phase("facts")["reason"]
        assert result.phase("rendezvous")["outcome"] == "not run"


def test_a_port_that_is_taken_among_hosts_is_named(trainer: Trainer) -> None:
    """Host 0 says so at once; the other finds that no host 0 answers there (case D3)."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        results = start_both(trainer, first=("--nproc", "1"), port=port)
    for result in results:
        assert (result.code, result.left) == (6, [])
        assert result.phase("facts")["outcome"] == "pass"
        assert result.phase("rendezvous")["outcome"] == "fail"
        assert result.document["seconds"] < 60
        (host,) = result.document["facts"]["hosts"]
        assert host["ranks"] == []
    taken, lost = (result.phase("rendezvous")["reason"] for result in results)
    assert taken.startswith(f"node 0 can't listen on localhost:{port}: ")
    assert lost.startswith(f"node 1 can't reach node 0 at localhost:{port}: ")


def test_a_wrong_interface_among_hosts_is_named_within_30_seconds(trainer: Trainer) -> None:
    """By the ranks of every host, before they wait for each other."""
    env = {"GLOO_SOCKET_IFNAME": "nowhere0"}
    for result in start_both(trainer, first=("--nproc", "1"), env=env):
        assert (result.code, result.left) == (6, [])
        assert result.phase("rendezvous")["outcome"] == "fail"
        assert "nowhere0" in result.phase("rendezvous")["reason"]
        assert result.document["seconds"] < 30
