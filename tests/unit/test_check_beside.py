"""Checks side by side, and what an interrupt leaves of them."""

from __future__ import annotations

import os
import threading
import time
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from strata.check.beside import run_beside
from strata.check.container import PID

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

PATIENCE = 5.0


class Engine:
    """An engine's containers, as far as checks look at them; each piece of work has one."""

    def __init__(self) -> None:
        """Hold none."""
        self.running: dict[str, threading.Event] = {}
        self.containers = SimpleNamespace(list=self._list)

    def _list(self, **_: object) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(
                labels={PID: str(os.getpid())}, remove=lambda ended=ended, **_: ended.set()
            )
            for ended in self.running.values()
        ]

    def work(self, name: str) -> str:
        """Work until the container is removed, as a layer's tests do."""
        self.running[name] = threading.Event()
        if not self.running[name].wait(PATIENCE):
            raise TimeoutError(name)
        return f"{name} has ended"


def test_two_pieces_run_at_a_time() -> None:
    """Each waits for the other, so neither could end alone."""
    both = threading.Barrier(2, timeout=PATIENCE)
    sdk: Any = Engine()
    with run_beside(sdk, {"a": both.wait, "b": both.wait}) as running:
        assert {running["a"].result(), running["b"].result()} == {0, 1}


def test_the_reason_of_a_piece_that_fails_goes_on() -> None:
    """To whoever asks for its result."""

    def fail() -> None:
        raise ValueError("no such image")

    sdk: Any = Engine()
    with (
        pytest.raises(ValueError, match="no such image"),
        run_beside(sdk, {"a": fail}) as running,
    ):
        running["a"].result()


def test_an_interrupt_ends_what_runs_and_starts_nothing_more() -> None:
    """The containers are removed, what waits is called off, and the interrupt goes on."""
    engine: Any = Engine()
    began = time.monotonic()
    work = {name: partial(engine.work, name) for name in ("a", "b", "c")}
    futures = _interrupted(engine, work)
    assert [futures[name].result() for name in ("a", "b")] == ["a has ended", "b has ended"]
    assert futures["c"].cancelled()
    assert sorted(engine.running) == ["a", "b"]
    assert time.monotonic() - began < PATIENCE


def _interrupted(engine: Any, work: Mapping[str, Callable[[], str]]) -> Mapping[str, Future[str]]:  # noqa: ANN401 - an engine
    try:
        with run_beside(engine, work) as running:
            while len(engine.running) < 2:
                time.sleep(0.01)
            raise KeyboardInterrupt  # noqa: TRY301 - the block is what is tested
    except KeyboardInterrupt:
        return running
    pytest.fail("the interrupt was kept")
