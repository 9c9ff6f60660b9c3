"""The network of a private engine: a bridge and rules of its own, beside any other engine's."""

from __future__ import annotations

import shlex
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING

from strata.engine.daemon import SYSTEM_PATH
from strata.errors import HostError
from strata.run import run

if TYPE_CHECKING:
    from collections.abc import Iterable

FORWARDING = Path("/proc/sys/net/ipv4/ip_forward")
ROUTES = Path("/proc/net/route")
# Private ranges that few local networks and no Docker default use.
RANGES = (IPv4Network("172.30.0.0/15"), IPv4Network("10.192.0.0/12"))
POOL_PREFIX = 20
BRIDGE_PREFIX = 24
TABLES = ("filter", "nat")


def used_networks(routes: str) -> tuple[IPv4Network, ...]:
    """Read the networks that are routed from the text of /proc/net/route (RFC 1812 terms).

    Addresses and masks stand there as little-endian hexadecimal numbers; the
    default route is left out.
    """
    rows = [line.split() for line in routes.splitlines()[1:]]
    pairs = [(bytes.fromhex(row[1])[::-1], bytes.fromhex(row[7])[::-1]) for row in rows]
    return tuple(
        IPv4Network((target, int.from_bytes(mask).bit_count()))
        for target, mask in pairs
        if any(mask)
    )


def free_pool(used: Iterable[IPv4Network], seed: int) -> IPv4Network:
    """Return a network of 4096 addresses that overlaps none of `used`.

    Two engines that start at the same time have different seeds, and so
    seldom try the same one.  Raises `HostError` when all are taken.
    """
    taken = tuple(used)
    pools = [pool for wide in RANGES for pool in wide.subnets(new_prefix=POOL_PREFIX)]
    start = seed % len(pools)
    for pool in (*pools[start:], *pools[:start]):
        if not any(pool.overlaps(network) for network in taken):
            return pool
    raise HostError.at(
        "private engine",
        "this machine routes every private network that it might use",
        "look at `ip route`, or use an engine that is there (unset STRATA_ENGINE)",
    )


def bridge_network(pool: IPv4Network) -> IPv4Network:
    """Return the part of the pool that the bridge itself takes; the rest is for user networks."""
    return next(pool.subnets(new_prefix=BRIDGE_PREFIX))


def rules(pool: IPv4Network, tag: str) -> tuple[tuple[str, ...], ...]:
    """Return the iptables arguments that let a pool out, each rule marked with `tag`.

    They are put before all others, so that they hold where another engine
    drops what is forwarded, and touch no chain of its.
    """
    mark = ("-m", "comment", "--comment", tag)
    answers = ("-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED")
    net = str(pool)
    return (
        ("-t", "nat", "-I", "POSTROUTING", "-s", net, "!", "-d", net, *mark, "-j", "MASQUERADE"),
        ("-t", "filter", "-I", "FORWARD", "-d", net, *answers, *mark, "-j", "ACCEPT"),
        ("-t", "filter", "-I", "FORWARD", "-s", net, *mark, "-j", "ACCEPT"),
    )


def removals(listing: str, table: str, tag: str) -> tuple[tuple[str, ...], ...]:
    """Return the iptables arguments that delete the rules of `tag` from `iptables -S`'s listing."""
    words = [shlex.split(line) for line in listing.splitlines()]
    ours = [rule for rule in words if rule[:1] == ["-A"] and tag in rule]
    return tuple(("-t", table, "-D", *rule[1:]) for rule in ours)


def hardware_address(gateway: IPv4Address) -> str:
    """Return the MAC address of a bridge: one of our own, told from others by its IP address.

    A bridge that was given none takes another whenever a container comes or goes, and the
    containers that are there don't find their gateway for 10 to 30 s (Docker does the same).
    """
    return ":".join(f"{byte:02x}" for byte in (0x02, 0x42, *gateway.packed))


def make_network(bridge: str, pool: IPv4Network, tag: str) -> None:
    """Make the bridge, let its packets out.  Raises `HostError` when that fails."""
    gateway = bridge_network(pool)[1]
    _root("ip", "link", "add", bridge, "address", hardware_address(gateway), "type", "bridge")
    _root("ip", "address", "add", f"{gateway}/{BRIDGE_PREFIX}", "dev", bridge)
    _root("ip", "link", "set", bridge, "up")
    for rule in rules(pool, tag):
        _root("iptables", "-w", "10", *rule)
    # As every Docker engine does; it is not set back, for others may rely on it by then.
    if FORWARDING.read_text().strip() == "0":
        FORWARDING.write_text("1")


def remove_network(bridge: str, tag: str) -> None:
    """Remove the bridge and the rules, as far as they are there."""
    for table in TABLES:
        listing = _root("iptables", "-w", "10", "-t", table, "-S")
        for rule in removals(listing, table, tag):
            _root("iptables", "-w", "10", *rule)
    if Path("/sys/class/net", bridge).exists():
        _root("ip", "link", "delete", bridge)


def _root(*argv: str) -> str:
    fix = "it needs root, and a kernel with bridges and iptables (not all containers may use them)"
    where = "network of the private engine"
    return run(argv, error=HostError, where=where, fix=fix, env=SYSTEM_PATH, quiet=True)
