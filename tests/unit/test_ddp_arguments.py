"""The command line of ddp-check."""

import pytest

from ddp.arguments import Arguments, Injection, parse
from ddp.errors import Refused
from ddp.phases import FAULTS


def test_nothing_given_leaves_the_ranks_to_the_machine() -> None:
    """Without arguments the number of ranks is open and the check has 120 seconds."""
    assert parse([]) == Arguments(
        nproc=None, as_json=False, require_gpu=False, is_full=False, timeout=120.0, inject=None
    )


def test_everything_given() -> None:
    """Every argument ends in its own field."""
    argv = ["--nproc", "3", "--json", "--require-gpu", "--full", "--timeout", "7.5"]
    assert parse([*argv, "--inject", "1:kill"]) == Arguments(
        nproc=3,
        as_json=True,
        require_gpu=True,
        is_full=True,
        timeout=7.5,
        inject=Injection(1, "kill"),
    )


def test_the_full_check_has_more_time() -> None:
    """600 s unless said otherwise; --quick is what happens anyway."""
    assert parse(["--full"]).timeout == 600.0
    assert parse(["--full", "--timeout", "9"]).timeout == 9.0
    assert parse(["--quick"]) == parse([])


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_can_be_injected(fault: str) -> None:
    """Each documented fault is taken."""
    assert parse(["--inject", f"0:{fault}"]).inject == Injection(0, fault)


@pytest.mark.parametrize(
    ("argv", "where"),
    [
        (["--nproc", "gpu"], "--nproc"),
        (["--nproc", "0"], "--nproc"),
        (["--nproc=-1"], "--nproc"),
        (["--nproc", "2.5"], "--nproc"),
        (["--nproc", "²"], "--nproc"),
        (["--timeout", "0"], "--timeout"),
        (["--timeout", "inf"], "--timeout"),
        (["--timeout", "soon"], "--timeout"),
        (["--inject", "kill"], "--inject"),
        (["--inject", "1:explode"], "--inject"),
        (["--inject=-1:kill"], "--inject"),
        (["--js"], "ddp-check"),
        (["--quick", "--full"], "ddp-check"),
        (["more"], "ddp-check"),
    ],
)
def test_nonsense_is_refused_by_name(argv: list[str], where: str) -> None:
    """What makes no sense is refused, and the error names the argument and a fix."""
    with pytest.raises(Refused) as refused:
        parse(argv)
    assert refused.value.where == where
    assert str(refused.value).splitlines()[1].startswith("  fix: ")
