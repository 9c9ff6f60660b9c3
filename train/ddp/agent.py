"""torchrun's elastic agent on this host: starts ranks, waits for them, tells how they ended.

python -m ddp.agent FOLDER        runs the job that FOLDER/job.json describes
"""

from __future__ import annotations

import json
import os
import socket
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from ddp.addresses import interface_of, own_address
from ddp.cores import usable_cores
from ddp.nodes import ONE_HOST, Nodes
from ddp.processes import module_argv

if TYPE_CHECKING:
    from collections.abc import Sequence

# Seconds in which the agents of all hosts must have come together.
JOIN_TIME = 30


def launch(
    module: str,
    words: Sequence[str],
    *,
    nproc: int,
    folder: Path,
    threads: int,
    port: int = 0,
    max_restarts: int = 0,
    nodes: Nodes = ONE_HOST,
    logs: Path | None = None,
) -> dict[int, int]:
    """Run `nproc` ranks of a module to their end; return the exit codes of those that failed.

    A negative code is the signal that ended the rank, the agent's own SIGTERM
    and SIGKILL included.  `port` 0 takes a free one.  With several `nodes`, this
    is the part of one of them, and somebody has a store where they meet.  What
    each rank writes is kept below `logs`, too, in attempt_N/LOCAL_RANK.

    Raises torch's `RendezvousError` when the other nodes can't be reached.
    """
    interface, place = _among(nodes) if nodes.count > 1 else ("lo", _alone(folder.name, port))
    os.environ.update(_environment(threads, interface))
    if max_restarts > 0:
        # Else a restarted rank may find the addresses that others had before, in the
        # agent's store: "Connection refused" (pytorch/pytorch#135712 and #167288).
        os.environ.setdefault("TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "1")
    config = LaunchConfig(
        min_nodes=nodes.count,
        max_nodes=nodes.count,
        nproc_per_node=nproc,
        rdzv_backend="c10d",
        **place,
        max_restarts=max_restarts,
        logs_specs=DefaultLogsSpecs(
            log_dir=str(logs or folder / "logs"), tee=Std.ALL if logs else Std.NONE
        ),
    )
    program, *arguments = module_argv(module, *words)
    try:
        elastic_launch(config, program)(*arguments)
    except ChildFailedError as failed:
        return {rank: failure.exitcode for rank, failure in failed.failures.items()}
    return {}


def _alone(run_id: str, port: int) -> dict[str, Any]:
    # Port 0: the agent's store takes a free one and tells the ranks, so no
    # number can be in use.  The address spares any look-up of this host's name.
    address = loopback()
    return {
        "run_id": run_id,
        "rdzv_endpoint": f"{address}:{port}",
        # Ours is the only agent: whoever listens on the port is not of this job.
        "rdzv_configs": {"is_host": True},
        "local_addr": address,
    }


def _among(nodes: Nodes) -> tuple[str, dict[str, Any]]:
    # The address, not the name: a host's own name often means 127.0.1.1 there.
    address = own_address(nodes.host or "", nodes.port)
    place = {
        "run_id": "ddp-check",
        "rdzv_endpoint": nodes.endpoint,
        "rdzv_configs": {"is_host": False, "join_timeout": JOIN_TIME},
        "local_addr": address,
    }
    return interface_of(address), place


def loopback() -> str:
    """Return the loopback interface's name, or its address where the name doesn't resolve."""
    # torch looks the address up in reverse, in its IPv6 form, and warns when there
    # is no answer, as for 127.0.0.1 under --network none; for the name there is one.
    try:
        socket.getaddrinfo("localhost", None)
    except OSError:
        return "127.0.0.1"
    return "localhost"


def _environment(threads: int, interface: str) -> dict[str, str]:
    """Return what the ranks' environment needs beyond what torchrun sets."""
    # Where all ranks are on this host, the loopback interface reaches them, and
    # is the only one under --network none; among hosts, the one that leads to
    # node 0.  Who names another one is obeyed.
    chosen = {
        "GLOO_SOCKET_IFNAME": interface,
        "NCCL_SOCKET_IFNAME": f"={interface}",  # without it, eth1 would mean eth10 too
        # The report names the rank; a dump would need a writable home and time.
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
        # Also without a dump, NCCL's watchdog of torch 2.8 and later sleeps four times
        # this long (15 s) before it ends a rank that waited in vain.
        "TORCH_NCCL_WAIT_TIMEOUT_DUMP_MILSEC": "250",
    }
    return {
        **{name: os.environ.get(name, value) for name, value in chosen.items()},
        "OMP_NUM_THREADS": str(threads),
        # cuBLAS gives the same bits twice only with a fixed workspace.
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    }


def main(folder_name: str) -> None:
    """Run the job that `jobs.run_job` has written; leave `ends.json`."""
    folder = Path(folder_name)
    job = json.loads((folder / "job.json").read_text())
    threads = max(1, usable_cores() // job["nproc"])
    (folder / "ends.json").write_text(json.dumps(launch(**job, folder=folder, threads=threads)))


if __name__ == "__main__":
    main(*sys.argv[1:])
