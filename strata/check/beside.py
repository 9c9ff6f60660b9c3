"""Several checks at a time: one keeps about one core busy, so two images share the wait."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from strata.check.container import remove_own

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future

    import docker

WORKERS = 2
PAUSE = 0.2  # seconds

T = TypeVar("T")


@contextmanager
def run_beside(
    sdk: docker.DockerClient, work: Mapping[str, Callable[[], T]]
) -> Iterator[Mapping[str, Future[T]]]:
    """Start pieces of work in their order, two at a time, and yield their futures by name.

    When the block raises, as by an interrupt, nothing more is started, and the
    containers of what runs are removed until nothing does: it fails fast then.
    """
    pool = ThreadPoolExecutor(WORKERS)
    futures = {name: pool.submit(piece) for name, piece in work.items()}
    try:
        yield futures
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        while not all(future.done() for future in futures.values()):
            remove_own(sdk)
            time.sleep(PAUSE)
        raise
    finally:
        pool.shutdown()
