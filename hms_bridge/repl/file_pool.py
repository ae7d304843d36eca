"""Small steps on files, side by side: on a cluster each of them mostly waits.

Order is what a dump or load is safe by, so it is kept where it counts: results come in the order of
the items, and who writes a marker first waits for all that it speaks of.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from types import TracebackType
from typing import TypeVar

WORKERS = 96
"""How many steps wait at once. HDFS takes 0.2 to 0.5 s to close a small file."""
_AHEAD = 4 * WORKERS

Item = TypeVar("Item")
Result = TypeVar("Result")


class FilePool:
    """Threads for steps that touch files only. Left, it waits for those that have begun."""

    def __init__(self, workers: int = WORKERS) -> None:
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="files")
        self._begun: deque[Future[None]] = deque()

    def __enter__(self) -> FilePool:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)

    def each(self, step: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """The result of a step for each item, in order. ``items`` are taken by the caller's thread,
        at most :data:`_AHEAD` before their results.

        Raises what the first failing step raised; no further step begins then.
        """
        waiting: deque[Future[Result]] = deque()
        try:
            for item in items:
                waiting.append(self._threads.submit(step, item))
                if len(waiting) >= _AHEAD:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()

    def as_done(
        self, step: Callable[[Item], Result], items: Iterable[Item]
    ) -> Iterator[tuple[Item, Result]]:
        """Each item with the result of a step for it, as they come: a slow one holds up no other.
        ``items`` are taken by the caller's thread, while fewer than :data:`_AHEAD` wait.

        Raises what the first failing step raised; no further step begins then.
        """
        done: SimpleQueue[Future[Result]] = SimpleQueue()
        waiting: dict[Future[Result], Item] = {}

        def next_done() -> tuple[Item, Result]:
            future = done.get()
            return waiting.pop(future), future.result()

        try:
            for item in items:
                future = self._threads.submit(step, item)
                waiting[future] = item
                future.add_done_callback(done.put)
                while len(waiting) >= _AHEAD or not done.empty():
                    yield next_done()
            while waiting:
                yield next_done()
        finally:
            for future in waiting:
                future.cancel()

    def begin(self, step: Callable[[Item], None], item: Item) -> None:
        """Begin a step; :meth:`finish` waits for it. May raise what an earlier one raised."""
        self._begun.append(self._threads.submit(step, item))
        if len(self._begun) >= _AHEAD:
            self._begun.popleft().result()

    def finish(self) -> None:
        """Wait for all that was begun. Raises what the first failing step raised."""
        while self._begun:
            self._begun.popleft().result()

    def all(self, step: Callable[[Item], object], items: Iterable[Item]) -> None:
        """The same for steps without a result; all have ended. Raises as :meth:`each`."""
        for _ in self.each(step, items):
            pass
