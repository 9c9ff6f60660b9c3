"""What the nodes of a check tell each other, through a store that node 0 holds."""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
import time
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from torch import distributed

from ddp.journal import journal_file, journal_files, read_journal
from ddp.nodes import Hello, Meeting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from ddp.nodes import Nodes

# Seconds for all nodes to come: containers that start together import torch
# together.
JOIN_TIME = 45.0
# Seconds in which a store answers who has reached it: what doesn't is no store of ours.
ANSWER_TIME = 10.0
# Seconds after its own end that a node waits for what the others have to tell.
PATIENCE = 10.0
FAILED = "failed"  # the key that says that some node's ranks have failed


class NotJoinedError(Exception):
    """The nodes could not come together; its text says why."""


@dataclass(frozen=True)
class Exchange:
    """Our connection to the others."""

    nodes: Nodes
    store: Any
    hellos: tuple[Hello, ...]

    @classmethod
    def join(cls, nodes: Nodes, hello: Hello) -> Exchange:
        """Come together with the other nodes, within `JOIN_TIME` seconds.

        Raises `NotJoinedError` when that fails, with the node that is missing.
        """
        deadline = time.monotonic() + JOIN_TIME
        store = _open(nodes)
        try:
            if store.add(f"claim/{nodes.rank}", 1) > 1:
                raise NotJoinedError(f"another host is node {nodes.rank} too; see --node-rank")
            store.set(f"hello/{nodes.rank}", json.dumps(asdict(hello)))
            hellos = [_hello(store, node, nodes, deadline) for node in range(nodes.count)]
        except distributed.DistError as gone:
            raise NotJoinedError(f"node 0 at {nodes.endpoint} is gone: {gone}") from None
        return cls(nodes, store, tuple(hellos))

    def must_end(self) -> bool:
        """Whether another node's ranks have failed, or node 0 is gone: ours wait in vain then."""
        try:
            return bool(self.store.check([FAILED]))
        except distributed.DistError:
            return True

    def finish(self, folder: Path, ends: Mapping[int, int]) -> tuple[Meeting, dict[int, int]]:
        """Give the others our ranks' journals, take theirs, and return who told what.

        `ends` are the exit codes of our ranks that failed.  The other nodes'
        journals are in `folder` afterwards, in our clock's time.
        """
        deadline = time.monotonic() + PATIENCE
        ours = read_result(folder, ends)
        hosts = {hello.node: hello.host for hello in self.hellos}
        told = {self.nodes.rank: ours}
        try:
            if ends or unfinished_ranks(folder):
                self.store.set(FAILED, b"")
            self.store.set(f"result/{self.nodes.rank}", json.dumps(ours))
            for node in hosts:
                text = _wait(self.store, f"result/{node}", deadline)
                if text is not None:
                    told[node] = json.loads(text)
            self.part(told, deadline)
        except distributed.DistError as gone:
            print(f"node 0 is gone: {gone}", file=sys.stderr)  # what was told till then counts
        for node, result in told.items():
            if node != self.nodes.rank:
                write_result(folder, result)
        codes = {int(r): code for result in told.values() for r, code in result["ends"].items()}
        ranks = {node: [int(rank) for rank in result["journals"]] for node, result in told.items()}
        return Meeting(hosts, ranks), codes

    def part(self, told: Iterable[int], deadline: float) -> None:
        """Have node 0, which holds the store, leave after the nodes in `told`."""
        self.store.set(f"parted/{self.nodes.rank}", b"")
        if self.nodes.rank == 0:
            for node in told:
                _wait(self.store, f"parted/{node}", deadline)


def read_result(folder: Path, ends: Mapping[int, int]) -> dict[str, Any]:
    """Return our ranks' journals and exit codes; `clock` leads from our times to the calendar's."""
    journals = {str(rank): file.read_text() for rank, file in journal_files(folder).items()}
    clock = time.time() - time.monotonic()
    return {"ends": dict(ends), "journals": journals, "clock": clock}


def unfinished_ranks(folder: Path) -> dict[int, int]:
    """Return our ranks that have neither failed nor come to their end, as ended by SIGTERM."""
    states = [read_journal(file, rank) for rank, file in journal_files(folder).items()]
    open_ranks = [state.rank for state in states if not state.is_done and state.failure is None]
    return dict.fromkeys(open_ranks, -signal.SIGTERM)


def write_result(folder: Path, result: Mapping[str, Any]) -> None:
    """Write another node's journals as if its ranks had run here, at the same moments."""
    shift = result["clock"] - (time.time() - time.monotonic())
    for rank, text in result["journals"].items():
        whole = text.split("\n")[:-1]  # what follows the last line end was cut short
        entries = [json.loads(line) for line in whole]
        lines = [json.dumps({**entry, "t": entry["t"] + shift}) + "\n" for entry in entries]
        journal_file(folder, int(rank)).write_text("".join(lines))


def _open(nodes: Nodes) -> Any:  # noqa: ANN401 - torch's store
    if nodes.rank > 0:
        _wait_for_node_0(nodes)
    found: list[Any] = []
    # In a thread: torch's store waits without end for a listener that says nothing.
    asking = threading.Thread(target=lambda: found.append(_ask(nodes)), daemon=True)
    asking.start()
    asking.join(ANSWER_TIME)
    answer = found[0] if found else f"what listens there says nothing for {ANSWER_TIME:.0f} s"
    if isinstance(answer, str):
        what = "listen on" if nodes.rank == 0 else "reach node 0 at"
        raise NotJoinedError(f"node {nodes.rank} can't {what} {nodes.endpoint}: {answer}")
    return distributed.PrefixStore("ddp-check", answer)


def _ask(nodes: Nodes) -> Any:  # noqa: ANN401 - torch's store
    """Return the store of node 0, or why there is none."""
    try:
        return distributed.TCPStore(
            nodes.host,
            nodes.port,
            is_master=nodes.rank == 0,
            timeout=timedelta(seconds=JOIN_TIME),
            wait_for_workers=False,
        )
    except (distributed.DistError, OSError, ValueError) as error:
        return (str(error).splitlines() or [""])[0]


def _hello(store: Any, node: int, nodes: Nodes, deadline: float) -> Hello:  # noqa: ANN401 - torch's store
    text = _wait(store, f"hello/{node}", deadline)
    if text is None:
        raise NotJoinedError(
            f"node {node} did not come to {nodes.endpoint} within {JOIN_TIME:.0f} s; "
            "start ddp-check there too"
        )
    return Hello(**json.loads(text))


def _wait_for_node_0(nodes: Nodes) -> None:
    # torch's store writes pages about every attempt that fails.
    deadline = time.monotonic() + JOIN_TIME
    while True:
        try:
            socket.create_connection((nodes.host, nodes.port), timeout=1).close()
        except OSError as error:
            if time.monotonic() > deadline:
                raise NotJoinedError(
                    f"node {nodes.rank} can't reach node 0 at {nodes.endpoint}: {error}"
                ) from None
            time.sleep(0.2)
        else:
            return


def _wait(store: Any, key: str, deadline: float) -> str | None:  # noqa: ANN401 - torch's store
    """Return the key's value, or None when it isn't there in time."""
    left = timedelta(seconds=max(0.01, deadline - time.monotonic()))
    try:
        store.wait([key], left)
    except distributed.DistStoreError:
        return None
    text: str = store.get(key).decode()
    return text
