"""The process that holds torchrun's elastic agent: plans, then launches the ranks."""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
from pathlib import Path
from typing import Any

import torch
from torch import distributed
from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
from torch.distributed.launcher.api import LaunchConfig, elastic_launch

from ddp.arguments import parse
from ddp.cores import usable_cores
from ddp.errors import Refused
from ddp.plan import Machine, Plan, make_plan
from ddp.processes import module_argv


def launch(plan: Plan, folder: Path) -> dict[int, int]:
    """Run the ranks to their end; return the exit codes of those that failed.

    A negative code is the signal that ended the rank, the agent's own SIGTERM
    and SIGKILL included.
    """
    os.environ.update(_environment(plan))
    address = _loopback()
    config = LaunchConfig(
        min_nodes=1,
        max_nodes=1,
        nproc_per_node=plan.world_size,
        run_id=folder.name,
        # Port 0: the agent's store takes a free one and tells the ranks, so no
        # number can be in use.  The address spares any look-up of this host's name.
        rdzv_backend="c10d",
        rdzv_endpoint=f"{address}:0",
        local_addr=address,
        max_restarts=0,
        logs_specs=DefaultLogsSpecs(log_dir=str(folder / "logs")),
    )
    program, *words = module_argv("ddp.rank", str(folder))
    try:
        elastic_launch(config, program)(*words)
    except ChildFailedError as failed:
        return {rank: failure.exitcode for rank, failure in failed.failures.items()}
    return {}


def _loopback() -> str:
    # torch looks the address up in reverse, in its IPv6 form, and warns when there
    # is no answer, as for 127.0.0.1 under --network none; for the name there is one.
    try:
        socket.getaddrinfo("localhost", None)
    except OSError:
        return "127.0.0.1"
    return "localhost"


def _environment(plan: Plan) -> dict[str, str]:
    """Return what the ranks' environment needs beyond what torchrun sets."""
    # All ranks are on this host: the loopback interface reaches them, and is
    # the only one under --network none.  Who names another one is obeyed.
    chosen = {
        "GLOO_SOCKET_IFNAME": "lo",
        "NCCL_SOCKET_IFNAME": "lo",
        # The report names the rank; a dump would need a writable home and time.
        "TORCH_NCCL_DUMP_ON_TIMEOUT": "0",
    }
    return {
        **{name: os.environ.get(name, value) for name, value in chosen.items()},
        "OMP_NUM_THREADS": str(plan.threads),
        # cuBLAS gives the same bits twice only with a fixed workspace.
        "CUBLAS_WORKSPACE_CONFIG": ":4096:8",
    }


def _look() -> tuple[Machine, dict[str, Any]]:
    has_nccl = distributed.is_available() and distributed.is_nccl_available()
    machine = Machine(
        gpus=torch.cuda.device_count() if torch.cuda.is_available() else 0,
        cores=usable_cores(),
        has_nccl=has_nccl,
        has_gloo=distributed.is_available() and distributed.is_gloo_available(),
    )
    facts = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": torch.backends.cudnn.version() if torch.version.cuda else None,
        "nccl": ".".join(map(str, torch.cuda.nccl.version())) if has_nccl else None,
        "gpus": machine.gpus,
    }
    return machine, facts


def main(folder_name: str, *argv: str) -> None:
    """Leave `plan.json` and `ends.json` in the folder, or `refused.json`."""
    folder = Path(folder_name)
    machine, facts = _look()
    try:
        plan = make_plan(parse(argv), machine, facts)
    except Refused as refused:
        (folder / "refused.json").write_text(json.dumps(refused.args))
        return
    plan.write(folder / "plan.json")
    if plan.unfit is None:
        ends = launch(plan, folder)
        (folder / "ends.json").write_text(json.dumps(ends))


if __name__ == "__main__":
    main(*sys.argv[1:])
