"""The hosts of one check: which of them this is, and where they meet."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ddp.errors import Refused

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from ddp.journal import RankState

HIGHEST_PORT = 65535


@dataclass(frozen=True)
class Nodes:
    """How many hosts there are, and which one this is.

    `host` and `port` are where node 0 listens for the others; on one host, None
    and the port to take there (0: a free one).
    """

    count: int = 1
    rank: int = 0
    host: str | None = None
    port: int = 0

    @property
    def endpoint(self) -> str:
        """Where the nodes meet, as --rdzv takes it."""
        return f"{self.host}:{self.port}"


ONE_HOST = Nodes()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that are about hosts."""
    parser.add_argument(
        "--nnodes",
        default="1",
        metavar="M",
        help="hosts (default 1); start ddp-check on each of them, with the same arguments",
    )
    parser.add_argument(
        "--node-rank", default=None, metavar="R", help="this host's number, from 0 to M - 1"
    )
    parser.add_argument(
        "--rdzv",
        default=None,
        metavar="HOST:PORT",
        help="where the hosts meet (c10d): a name of node 0 and a free port there",
    )


def take_nodes(values: dict[str, Any]) -> Nodes:
    """Take the values of our arguments out of `values`; raises `Refused` for nonsense."""
    count = _number("--nnodes", values.pop("nnodes"), "a number of hosts", least=1)
    given, rdzv = values.pop("node_rank"), values.pop("rdzv")
    host, port = _endpoint(rdzv) if rdzv is not None else (None, 0)
    if count == 1 and given not in (None, "0"):
        raise Refused(
            "--node-rank", f"{given!r} is not the number of the only host", "leave it out"
        )
    if count == 1:
        return Nodes(port=port)
    if given is None:
        raise Refused("--node-rank", f"is missing for {count} hosts", f"give 0 to {count - 1}")
    rank = _number("--node-rank", given, "a host's number", least=0)
    if rank >= count:
        raise Refused(
            "--node-rank", f"there is no host {rank} among {count}", f"give 0 to {count - 1}"
        )
    if host is None or port == 0:
        raise Refused(
            "--rdzv",
            f"is missing for {count} hosts",
            "give a name of node 0 and a free port there, such as --rdzv node0:29400",
        )
    return Nodes(count, rank, host, port)


def _number(where: str, text: str, what: str, *, least: int) -> int:
    if text.isascii() and text.isdecimal() and int(text) >= least:
        return int(text)
    raise Refused(where, f"{text!r} is not {what}", f"give a number from {least} on")


def _endpoint(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if host and port.isascii() and port.isdecimal() and 0 < int(port) <= HIGHEST_PORT:
        return host.strip("[]"), int(port)
    raise Refused("--rdzv", f"{text!r} is not HOST:PORT", "give a host and a port, as node0:29400")


@dataclass(frozen=True)
class Hello:
    """What a node says of itself before the ranks start."""

    node: int
    host: str
    nproc: int
    is_full: bool
    torch: str
    unfit: str | None


@dataclass(frozen=True)
class Meeting:
    """What a node knows of the others when the ranks have ended.

    `hosts` holds the name of every node, `ranks` the ranks of each node that has
    told how its ranks ended: of the others nothing came back.
    """

    hosts: Mapping[int, str]
    ranks: Mapping[int, Sequence[int]]

    @property
    def lost(self) -> list[int]:
        """The nodes of which nothing came back."""
        return [node for node in self.hosts if node not in self.ranks]

    def node_of(self, rank: int) -> int | None:
        """Return the node of a rank; None where that can't be told."""
        node = next((node for node, ranks in self.ranks.items() if rank in ranks), None)
        return self.lost[0] if node is None and len(self.lost) == 1 else node

    def facts(self) -> list[dict[str, Any]]:
        """Return number, name and ranks of every node; no ranks where nothing came back."""
        return [
            {"node": node, "host": host, "ranks": sorted(self.ranks.get(node, ()))}
            for node, host in self.hosts.items()
        ]

    def write(self, file: Path) -> None:
        """Write to `file`."""
        file.write_text(json.dumps([list(self.hosts.items()), list(self.ranks.items())]))

    @classmethod
    def read(cls, file: Path) -> Meeting:
        """Return what `write` has written to `file`."""
        hosts, ranks = json.loads(file.read_text())
        return cls(dict(hosts), dict(ranks))


def place_ranks(states: Sequence[RankState], meeting: Meeting) -> list[RankState]:
    """Return the states with their hosts; those of a lost node are marked as lost."""
    placed = []
    for state in states:
        node = meeting.node_of(state.rank)
        host = None if node is None else f"{meeting.hosts[node]} (node {node})"
        is_lost = bool(meeting.lost) and (node is None or node in meeting.lost)
        placed.append(replace(state, host=host, is_lost=is_lost))
    return placed


def disagreement(hellos: Sequence[Hello]) -> str | None:
    """Say how the nodes don't fit together, or which is not fit; None when all is well."""
    for hello in hellos:
        if hello.unfit is not None:
            return f"node {hello.node} ({hello.host}): {hello.unfit}"
    first = hellos[0]
    for hello in hellos[1:]:
        for name in ("nproc", "is_full", "torch"):
            ours, theirs = getattr(first, name), getattr(hello, name)
            if ours != theirs:
                return (
                    f"node {hello.node} ({hello.host}) has {name} {theirs}, node {first.node} "
                    f"({first.host}) has {ours}; start all of them alike"
                )
    return None
