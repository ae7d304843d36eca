"""A pool of threads that has none."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class InlineThreads:
    """Threads of a pool that work where they are given something to do, one after the other: so a
    seed, or the number of a step, decides how far each has come."""

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def submit(self, work: Callable[..., Any], *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(work(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def shutdown(self, **_: Any) -> None:
        pass
