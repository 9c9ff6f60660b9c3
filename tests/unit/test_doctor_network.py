"""RDMA devices, interfaces, and the settings that choose among them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from doctor.facts import HOST, Facts, Network
from doctor.judge_network import (
    judge_infiniband,
    judge_interfaces,
    judge_rdma_settings,
    matching,
)
from tests.unit.doctor_machines import ACTIVE, DGX, LAPTOP, with_settings

NAMES = ("docker0", "eth0", "eth01", "lo")
DOWN = replace(ACTIVE, device="mlx5_1", state="DOWN")


@pytest.mark.parametrize(
    ("value", "chosen"),
    [
        ("eth", ("eth0", "eth01")),
        ("=eth0", ("eth0",)),
        ("=eth", ()),
        ("ib,lo", ("lo",)),
        ("^docker", ("eth0", "eth01", "lo")),
        ("^=eth0", ("docker0", "eth01", "lo")),
        ("^docker,lo", ("eth0", "eth01")),
        ("^docker,eth,lo", ()),
        ("ib", ()),
    ],
)
def test_names_are_chosen_as_nccl_does(value: str, chosen: tuple[str, ...]) -> None:
    """Prefixes, exact names after =, and exclusion after ^."""
    assert matching(value, NAMES) == chosen


def test_a_port_after_a_colon_is_not_part_of_a_device() -> None:
    """NCCL_IB_HCA may name a port."""
    assert matching("=mlx5_0:1", ("mlx5_0", "mlx5_1")) == ("mlx5_0",)


@pytest.mark.parametrize(
    ("settings", "severity"),
    [
        ({}, "ok"),
        ({"NCCL_SOCKET_IFNAME": "eth"}, "ok"),
        ({"NCCL_SOCKET_IFNAME": "lo"}, "info"),
        ({"NCCL_SOCKET_IFNAME": "ens5"}, "error"),
        ({"GLOO_SOCKET_IFNAME": "eth0"}, "ok"),
        ({"GLOO_SOCKET_IFNAME": "eth"}, "error"),
        ({"TP_SOCKET_IFNAME": "eth0,ib9"}, "error"),
    ],
)
def test_interfaces_that_are_named_exist(settings: dict[str, str], severity: str) -> None:
    """NCCL's prefixes and Gloo's whole names must be among the interfaces."""
    assert judge_interfaces(with_settings(LAPTOP, **settings)).severity == severity


def test_a_wrong_interface_is_named_with_those_there() -> None:
    """The evidence says the variable, its value, its source, and what there is."""
    finding = judge_interfaces(with_settings(LAPTOP, NCCL_SOCKET_IFNAME="ens5"))
    assert finding.evidence == (
        "NCCL_SOCKET_IFNAME=ens5 (the environment) names no interface; there are eth0, lo"
    )
    assert finding.fix == "unset NCCL_SOCKET_IFNAME, or name one of those"


def fabric(*ports: object, verbs: tuple[str, ...] = ("uverbs0",)) -> Facts:
    """Return a machine with these RDMA ports."""
    return replace(DGX, network=Network(("eth0",), ports, verbs))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("machine", "severity", "words"),
    [
        (LAPTOP, "ok", "there is no RDMA device"),
        (DGX, "ok", "mlx5_0 port 1 ACTIVE (InfiniBand)"),
        (fabric(ACTIVE, verbs=()), "warning", "no /dev/infiniband/uverbs*"),
        (fabric(DOWN), "warning", "no port is active"),
        (fabric(ACTIVE, DOWN), "info", "some ports are not active"),
    ],
)
def test_rdma_devices(machine: Facts, severity: str, words: str) -> None:
    """Devices that the kernel knows must be given to the container, and have a link."""
    finding = judge_infiniband(machine)
    assert finding.severity == severity
    assert words in finding.evidence


def test_a_container_is_given_its_devices_and_a_host_its_module() -> None:
    """The fix for missing device files fits the place."""
    hidden = fabric(ACTIVE, verbs=())
    assert judge_infiniband(hidden).fix == "docker run --device /dev/infiniband --ulimit memlock=-1"
    assert "modprobe ib_uverbs" in (judge_infiniband(replace(hidden, scope=HOST)).fix or "")


@pytest.mark.parametrize(
    ("machine", "severity"),
    [
        (with_settings(DGX, NCCL_IB_DISABLE="1"), "warning"),
        (with_settings(DGX, NCCL_IB_DISABLE="0"), "ok"),
        (with_settings(LAPTOP, NCCL_IB_DISABLE="1"), "ok"),
        (with_settings(DGX, NCCL_IB_HCA="mlx5_7"), "error"),
        (with_settings(DGX, NCCL_IB_HCA="mlx5"), "ok"),
        (with_settings(LAPTOP, NCCL_IB_HCA="mlx5"), "warning"),
        (with_settings(LAPTOP, NCCL_NET="IB"), "error"),
        (with_settings(DGX, NCCL_NET="IB"), "ok"),
        (with_settings(DGX, NCCL_NET="Socket"), "warning"),
        (with_settings(LAPTOP, NCCL_NET="Socket"), "ok"),
    ],
)
def test_rdma_settings_fit_the_devices(machine: Facts, severity: str) -> None:
    """Turning InfiniBand off matters where it is; asking for it, where it is not."""
    assert judge_rdma_settings(machine).severity == severity
