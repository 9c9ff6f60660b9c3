"""Interrupts the elastic agent when what its ranks wait for won't come."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

from torch.distributed.elastic.multiprocessing.api import SignalException

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

INTERVAL = 0.5
# Seconds from the alarm to the interrupt: our own ranks may notice it as well,
# and what they say is worth more.
GRACE = 3.0


class Alarm:
    """While it is entered, asks every `INTERVAL` seconds whether it is time to end.

    Then torch's `SignalException` is raised in the main thread, which makes the
    agent end its ranks.
    """

    def __init__(self, must_end: Callable[[], bool]) -> None:
        """Ask `must_end`, in a thread."""
        self._must_end = must_end
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.has_rung = False

    def __enter__(self) -> None:
        """Start to ask."""
        # The agent does so too, when it has started its ranks.
        signal.signal(signal.SIGTERM, _raise)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        """Stop to ask; a signal that is on its way comes before this returns."""
        with self._lock:
            self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(INTERVAL):
            if self._must_end():
                break
        if self._is_over.wait(GRACE):
            return
        with self._lock:
            if not self._is_over.is_set():
                self.has_rung = True
                os.kill(os.getpid(), signal.SIGTERM)


def _raise(number: int, _frame: FrameType | None) -> None:
    name = signal.Signals(number)
    raise SignalException(f"interrupted by {name.name}", name)
