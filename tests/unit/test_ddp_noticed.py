"""Which ranks fail in the phase `faults`."""

from __future__ import annotations

import pytest

from ddp.arguments import parse
from ddp.faults import GROUP_TIMEOUT, plan_noticed
from ddp.plan import Machine, make_plan

CPU = Machine(gpus=0, cores=8, has_nccl=False, has_gloo=True)
GPUS = Machine(gpus=2, cores=8, has_nccl=True, has_gloo=True)
TWO_HOSTS = ["--nnodes", "2", "--node-rank", "1", "--rdzv", "alpha:29400"]


@pytest.mark.parametrize(
    ("machine", "argv", "backend"),
    [
        (CPU, ["--nproc", "1"], "gloo"),
        (CPU, ["--nproc", "4"], "gloo"),
        (CPU, [*TWO_HOSTS, "--nproc", "1"], "gloo"),
        (GPUS, [], "nccl"),
        (GPUS, ["--nproc", "1"], "gloo"),
        (GPUS, [*TWO_HOSTS, "--nproc", "1"], "gloo"),
    ],
)
def test_one_of_two_ranks_on_this_host_fails(
    machine: Machine, argv: list[str], backend: str
) -> None:
    """On the CPU where the host has one rank: alone, nobody would wait for it."""
    plan = plan_noticed(make_plan(parse([*argv, "--full"]), machine, {}))
    assert (plan.backend, plan.world_size, plan.nproc) == (backend, 2, 2)
    assert (plan.nodes.count, plan.is_full, plan.group_timeout) == (1, False, GROUP_TIMEOUT)
