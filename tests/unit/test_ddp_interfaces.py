"""Names of network interfaces, as gloo and NCCL read them."""

import pytest

from ddp.interfaces import wrong_interface

PRESENT = ["lo", "eth0", "ib0", "ib1"]


@pytest.mark.parametrize(
    ("backend", "value"),
    [
        ("gloo", ""),
        ("gloo", "eth0"),
        ("gloo", "ib0,ib1"),
        ("nccl", "ib"),
        ("nccl", "eth,ib"),
        ("nccl", "wlan,ib"),
        ("nccl", "=ib0"),
        ("nccl", "^lo,docker"),
        ("nccl", "^=ib0"),
    ],
)
def test_an_interface_that_is_there_is_fine(backend: str, value: str) -> None:
    """Names for gloo; prefixes, exact names and exclusions for NCCL."""
    assert wrong_interface(backend, value, PRESENT) is None


@pytest.mark.parametrize(
    ("backend", "value"),
    [
        ("gloo", "eth1"),
        ("gloo", "ib"),
        ("gloo", "ib0,ib2"),
        ("gloo", "^lo"),
        ("nccl", "wlan"),
        ("nccl", "=ib"),
        ("nccl", "^lo,eth,ib"),
    ],
)
def test_an_interface_that_is_not_there_is_named(backend: str, value: str) -> None:
    """With the variable, and with those that are."""
    reason = wrong_interface(backend, value, PRESENT) or ""
    assert reason.startswith(f"{backend.upper()}_SOCKET_IFNAME={value}: there is no interface ")
    assert reason.endswith("this host has lo, eth0, ib0, ib1")


def test_the_missing_one_of_several_is_named() -> None:
    """Gloo needs all of its interfaces."""
    reason = wrong_interface("gloo", "ib0,ib2", PRESENT) or ""
    assert "there is no interface ib2;" in reason
