"""Clients on threads of their own, whose calls meet: one holds the turn until all have come."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from hms_bridge.model.ids import LockId, TxnId
from hms_bridge.service.metastore_service import MetastoreService

LONG_SECONDS = 30.0


class Crowd:
    """Over one metastore; ``batches`` says how many verbs were done at once."""

    def __init__(self, metastore: MetastoreService) -> None:
        shared = metastore._transactions._shared
        assert shared is not None
        self._metastore = metastore
        self._turns = shared._turns
        self._turns._patience_seconds = LONG_SECONDS
        self._do = self._turns._do
        self._turns._do = self._gated
        self._gate: threading.Event | None = None
        self.batches: list[int] = []

    def _gated(self, steps: Sequence[Any]) -> None:
        gate, self._gate = self._gate, None
        if gate is not None:
            assert gate.wait(LONG_SECONDS)
        else:
            self.batches.append(len(steps))
        self._do(steps)

    def together(self, *calls: Callable[[], object]) -> list[object]:
        """What each call returned or raised; all are part of one batch."""
        self.batches.clear()
        self._gate = gate = threading.Event()
        outcomes: list[object] = [None] * len(calls)
        nothing = functools.partial(self._metastore.heartbeat, TxnId(0), LockId(0))
        holder = threading.Thread(target=_note, args=([None], 0, nothing), daemon=True)
        holder.start()
        wait_until(lambda: self._gate is None)
        threads = []
        for place, call in enumerate(calls):
            thread = threading.Thread(target=_note, args=(outcomes, place, call), daemon=True)
            threads.append(thread)
            thread.start()
            wait_until(lambda place=place: len(self._turns._waiting) == place + 1)  # type: ignore[misc]
        gate.set()
        for thread in (holder, *threads):
            thread.join(LONG_SECONDS)
            assert not thread.is_alive()
        return outcomes


def _note(outcomes: list[object], place: int, call: Callable[[], object]) -> None:
    try:
        outcomes[place] = call()
    except BaseException as error:  # noqa: BLE001
        outcomes[place] = error


def wait_until(condition: Callable[[], bool]) -> None:
    """Returns as soon as it holds."""
    deadline = time.monotonic() + LONG_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)
