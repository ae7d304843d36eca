"""A question to HDFS that its client may never answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Generic, TypeVar

_Answer = TypeVar("_Answer")


class Question(Generic[_Answer]):
    """A call of the native client, on a thread of its own: it waits without end for a NameNode that
    takes a connection and keeps quiet, and may repeat its question once that is lost."""

    def __init__(self, call: Callable[[], _Answer]) -> None:
        self._call = call
        self._done: SimpleQueue[tuple[_Answer | None, Exception | None]] = SimpleQueue()
        # A daemon: a wait that never ends must not keep the program from ending.
        self._thread = threading.Thread(target=self._ask, name="hdfs", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        """Whether it may still be done."""
        return self._thread.is_alive()

    def answer(self, seconds: float) -> tuple[_Answer | None, Exception | None]:
        """What the native client answers or raises. Raises Empty if it does not within a time."""
        return self._done.get(timeout=seconds)

    def _ask(self) -> None:
        try:
            self._done.put((self._call(), None))
        except Exception as error:  # the caller's, on its own thread
            self._done.put((None, error))
