"""How ddp-check decides on backend, ranks and threads."""

from dataclasses import replace
from pathlib import Path

import pytest

from ddp.arguments import parse
from ddp.errors import Refused
from ddp.plan import Machine, Plan, make_plan

CPU = Machine(gpus=0, cores=8, has_nccl=False, has_gloo=True)
GPU = Machine(gpus=4, cores=8, has_nccl=True, has_gloo=True)


def plan(machine: Machine, *argv: str) -> Plan:
    """Plan for a machine and a command line."""
    return make_plan(parse(argv), machine, {})


@pytest.mark.parametrize(
    ("machine", "argv", "expected"),
    [
        (CPU, [], ("gloo", 2, 4, "CPU, gloo")),
        (CPU, ["--nproc", "auto"], ("gloo", 2, 4, "CPU, gloo")),
        (CPU, ["--nproc", "3"], ("gloo", 3, 2, "CPU, gloo")),
        (CPU, ["--nproc", "16"], ("gloo", 16, 1, "CPU, gloo")),
        (GPU, [], ("nccl", 4, 2, "4 GPU, nccl")),
        (GPU, ["--nproc", "1"], ("nccl", 1, 8, "1 GPU, nccl")),
    ],
)
def test_the_machine_decides_what_was_left_open(
    machine: Machine, argv: list[str], expected: tuple[str, int, int, str]
) -> None:
    """NCCL with one rank a GPU where there are GPUs, else gloo with two ranks."""
    made = plan(machine, *argv)
    assert made.unfit is None
    assert (made.backend, made.world_size, made.threads, made.label) == expected


@pytest.mark.parametrize("argv", [["--nproc", "5"], ["--inject", "4:kill"]])
def test_ranks_that_cannot_be_are_refused(argv: list[str]) -> None:
    """More ranks than GPUs, and a fault in a rank that isn't there, are bad arguments."""
    with pytest.raises(Refused) as refused:
        plan(GPU, *argv)
    assert refused.value.where == argv[0]


def test_a_required_gpu_that_is_not_there_makes_the_machine_unfit() -> None:
    """With --require-gpu a CPU never stands in for a GPU."""
    assert "a GPU is required" in (plan(CPU, "--require-gpu").unfit or "")
    assert plan(GPU, "--require-gpu").unfit is None


def test_fewer_gpus_than_demanded_make_the_machine_unfit() -> None:
    """Both numbers are told."""
    assert plan(GPU, "--min-gpus", "5").unfit == "--min-gpus asks for 5 GPU, torch sees 4"
    assert plan(GPU, "--min-gpus", "4").unfit is None


def test_what_is_not_as_the_manifest_says_makes_the_machine_unfit() -> None:
    """What was tested is not what is here."""
    changed = replace(CPU, disagreements=("numpy is 1.26.4, the manifest says 2.4.6",))
    assert (plan(changed).unfit or "").startswith("numpy is 1.26.4, the manifest says 2.4.6: what")


def test_a_torch_without_the_backend_is_unfit() -> None:
    """GPUs without NCCL don't fall back to gloo, and a CPU needs gloo."""
    no_nccl = Machine(gpus=1, cores=1, has_nccl=False, has_gloo=True)
    no_gloo = Machine(gpus=0, cores=1, has_nccl=False, has_gloo=False)
    assert "without NCCL" in (plan(no_nccl).unfit or "")
    assert "without gloo" in (plan(no_gloo).unfit or "")


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    """What the launcher writes is what the ranks read."""
    written = plan(CPU, "--inject", "1:hang", "--full")
    written.write(tmp_path / "plan.json")
    assert Plan.read(tmp_path / "plan.json") == written
