"""The private engine's addresses and firewall rules."""

from ipaddress import IPv4Address, IPv4Network

import pytest

from strata.engine.network import (
    RANGES,
    bridge_network,
    free_pool,
    hardware_address,
    removals,
    rules,
    used_networks,
)
from strata.errors import HostError

ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
br0\t00FA1FAC\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""
POOL = IPv4Network("172.30.16.0/20")


def test_routes_are_read_as_networks() -> None:
    """The kernel's little-endian numbers are read the right way round, without the default."""
    assert used_networks(ROUTES) == (IPv4Network("172.31.250.0/24"), IPv4Network("192.0.2.0/24"))


def test_a_pool_overlaps_no_route() -> None:
    """A pool that is routed already is passed over, be the route wider or narrower."""
    assert free_pool((), seed=0) == IPv4Network("172.30.0.0/20")
    assert free_pool((IPv4Network("172.30.3.0/24"),), seed=0) == POOL
    assert free_pool((IPv4Network("172.16.0.0/12"),), seed=0) == IPv4Network("10.192.0.0/20")


def test_engines_with_other_seeds_take_other_pools() -> None:
    """Two engines that start at once do not both try the first pool."""
    assert free_pool((), seed=1) != free_pool((), seed=2)


def test_a_machine_without_a_free_pool_is_told() -> None:
    """When every range is routed there is an error, not a clash."""
    with pytest.raises(HostError, match="every private network"):
        free_pool(RANGES, seed=7)


def test_the_bridge_takes_the_first_part_of_the_pool() -> None:
    """User networks find room in the rest of it."""
    assert bridge_network(POOL) == IPv4Network("172.30.16.0/24")


def test_every_rule_is_marked_and_bound_to_the_pool() -> None:
    """No rule lets through, or hides, packets of anybody else."""
    for rule in rules(POOL, "strata1"):
        assert str(POOL) in rule
        assert "strata1" in rule


def test_only_marked_rules_are_removed() -> None:
    """Rules of other engines, even about the same addresses, stay."""
    listing = (
        "-P FORWARD ACCEPT\n"
        '-A FORWARD -s 172.30.16.0/20 -m comment --comment "strata1" -j ACCEPT\n'
        "-A FORWARD -s 172.30.16.0/20 -m comment --comment strata12 -j ACCEPT\n"
        "-A FORWARD -s 172.30.16.0/20 -j DROP\n"
    )
    assert removals(listing, "filter", "strata1") == (
        (
            *("-t", "filter", "-D", "FORWARD", "-s", "172.30.16.0/20"),
            *("-m", "comment", "--comment", "strata1", "-j", "ACCEPT"),
        ),
    )


def test_a_bridge_has_an_address_of_its_own() -> None:
    """It is one that nobody sells (its second bit is set), and no group's."""
    assert hardware_address(IPv4Address("172.31.192.1")) == "02:42:ac:1f:c0:01"
