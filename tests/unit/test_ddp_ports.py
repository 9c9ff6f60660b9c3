"""A port of the rendezvous that somebody has named."""

import socket

import pytest

from ddp.arguments import parse
from ddp.errors import Refused
from ddp.plan import Machine, Plan, make_plan
from ddp.ports import is_taken, with_port

CPU = Machine(gpus=0, cores=8, has_nccl=False, has_gloo=True)


def plan(*argv: str) -> Plan:
    """Plan for a machine without GPU."""
    return make_plan(parse(argv), CPU, {})


def test_nobody_names_a_port() -> None:
    """Then the agent takes a free one."""
    assert with_port(plan(), {}) == plan()


def test_a_port_with_a_listener_fails_the_rendezvous_by_name() -> None:
    """Case D3: whoever named it, the port is in the reason."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        by_variable = with_port(plan(), {"MASTER_PORT": str(port)})
        by_argument = with_port(plan("--rdzv", f"localhost:{port}"), {"MASTER_PORT": "1"})
        assert is_taken(port)
    assert by_variable.unfit_phase == "rendezvous"
    assert f"MASTER_PORT names port {port}, on which another" in (by_variable.unfit or "")
    assert f"--rdzv names port {port}, on which another" in (by_argument.unfit or "")
    free = with_port(plan(), {"MASTER_PORT": str(port)})
    assert (free.unfit, free.nodes.port) == (None, port)


def test_a_port_without_a_listener_is_free() -> None:
    """A bound port of which nobody listens any more is one."""
    with socket.socket() as once:
        once.bind(("127.0.0.1", 0))
        port = once.getsockname()[1]
    assert not is_taken(port)


@pytest.mark.parametrize("text", ["http", "0", "65536", "-1", "²"])
def test_a_master_port_that_is_none_is_refused(text: str) -> None:
    """With the variable's name."""
    with pytest.raises(Refused) as refused:
        with_port(plan(), {"MASTER_PORT": text})
    assert refused.value.where == "MASTER_PORT"
