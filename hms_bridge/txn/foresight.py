"""What a process expects of transactions: which id the next one gets, and what those wrote that it
opened.

A verb whose outcome is known before can send its rows, its event and the commit in one message,
instead of waiting for the rows first. Nothing rests on it: each statement that was made from what
is expected here fails, and with it all that is in the message, unless it is so; the verb is then
done as it is without.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.txn import TxnToWriteId, TxnType

KINDS = frozenset({TxnType.DEFAULT, TxnType.READ_ONLY})
"""Of which it is known what their begin and their end do: of others they do more."""

REMEMBERED_MAX = 10_000
"""How many open transactions are remembered; the oldest ones are forgotten."""

PAUSE_MAX = 1024
"""For how many turns no id is expected, at most, after others that open came between; doubled each
time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedWrites:
    """An open transaction: its kind, and its write ids by database and table, in lower case."""

    kind: TxnType
    written: tuple[tuple[str, str, WriteId], ...] = ()


class Foresight:
    """Of one database. Used by many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_id: TxnId | None = None
        self._pause = 0
        self._turns_left = 0
        self._open: OrderedDict[TxnId, ExpectedWrites] = OrderedDict()

    def next_id(self) -> TxnId | None:
        """The id that the next transaction gets if nobody else opens any; None without a guess."""
        with self._lock:
            if self._turns_left > 0:
                self._turns_left -= 1
                return None
            return None if self._last_id is None else TxnId(self._last_id + 1)

    def writes_of(self, txn_ids: Sequence[TxnId]) -> Sequence[ExpectedWrites] | None:
        """What these wrote; None if one of them is not known."""
        with self._lock:
            expected = [self._open.get(txn_id) for txn_id in txn_ids]
        known = [writes for writes in expected if writes is not None]
        return known if len(known) == len(expected) else None

    def opened(self, txn_ids: Iterable[TxnId], kind: TxnType, *, was_expected: bool) -> None:
        """These were."""
        with self._lock:
            for txn_id in txn_ids:
                self._open[txn_id] = ExpectedWrites(kind=kind)
                self._last_id = max(self._last_id or txn_id, txn_id)
            while len(self._open) > REMEMBERED_MAX:
                self._open.popitem(last=False)
            if was_expected:
                self._pause = 0

    def wrote(self, database: str, table: str, pairs: Iterable[TxnToWriteId]) -> None:
        """They have write ids of a table."""
        with self._lock:
            for pair in pairs:
                expected = self._open.get(pair.txn_id)
                new = (database, table, pair.write_id)
                if expected is not None and new not in expected.written:
                    written = tuple(sorted((*expected.written, new)))
                    self._open[pair.txn_id] = replace(expected, written=written)

    def forget(self, txn_ids: Iterable[TxnId]) -> None:
        """They have ended, or do what cannot be foreseen."""
        with self._lock:
            for txn_id in txn_ids:
                self._open.pop(txn_id, None)

    def fail(self) -> None:
        """Something was not as expected: expect nothing of what is open, and no id for a while."""
        with self._lock:
            self._open.clear()
            self._pause = min(max(1, self._pause * 2), PAUSE_MAX)
            self._turns_left = self._pause
