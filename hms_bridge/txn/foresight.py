"""What a process expects of transactions: which ids the next one and the next write get, what those
wrote that it opened, and where no lock is in the way.

A verb whose outcome is known before can send its rows, its event and the commit in one message,
instead of waiting for the rows first. Nothing rests on it: each statement that was made from what
is expected here fails, and with it all that is in the message, unless it is so; the verb is then
done as it is without.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.lock import LockType
from hms_bridge.model.txn import TxnToWriteId, TxnType
from hms_bridge.txn.lock_rules import BLOCKERS

T = TypeVar("T")

KINDS = frozenset({TxnType.DEFAULT, TxnType.READ_ONLY})
"""Of which it is known what their begin and their end do: of others they do more."""

SHARING = frozenset({LockType.SHARED_READ, LockType.SHARED_WRITE})
"""Locks that are not in the way of each other."""

REMEMBERED_MAX = 10_000
"""How many open transactions, and of how many tables what, are remembered; the oldest ones are
forgotten."""

PAUSE_MAX = 1024
"""For how many turns nothing is expected, at most, after others came between; doubled each time."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ExpectedWrites:
    """An open transaction: its kind, and its write ids by database and table, in lower case."""

    kind: TxnType
    written: tuple[tuple[str, str, WriteId], ...] = ()


class _Guess(Generic[T]):
    """Something that is likely to be so until it is not. Whoever holds the lock may use it."""

    def __init__(self) -> None:
        self.value: T | None = None
        self._pause = 0
        self._turns_left = 0

    def look(self) -> T | None:
        """None without a guess. Each look is a turn: it counts towards the end of a pause."""
        if self._turns_left > 0:
            self._turns_left -= 1
            return None
        return self.value

    def hold(self) -> None:
        """It was so."""
        self._pause = 0

    def fail(self) -> None:
        """It was not, and may not be for a while."""
        self._pause = min(max(1, self._pause * 2), PAUSE_MAX)
        self._turns_left = self._pause


K = TypeVar("K", bound=Hashable)


class _Guesses(Generic[K, T]):
    """One for each of the keys that were asked for last."""

    def __init__(self) -> None:
        self._by_key: OrderedDict[K, _Guess[T]] = OrderedDict()

    def of(self, key: K) -> _Guess[T]:
        """Made when it is asked for."""
        guess = self._by_key.get(key)
        if guess is None:
            guess = self._by_key[key] = _Guess()
            if len(self._by_key) > REMEMBERED_MAX:
                self._by_key.popitem(last=False)
        return guess

    def known(self) -> Sequence[tuple[K, _Guess[T]]]:
        """All of them."""
        return tuple(self._by_key.items())


class Foresight:
    """Of one database. Used by many threads; what is expected, and whether it was so, by one at a
    time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last_id: _Guess[TxnId] = _Guess()
        self._last_write_ids: _Guesses[tuple[str, str], WriteId] = _Guesses()
        self._is_free: _Guesses[tuple[str, str, LockType], bool] = _Guesses()
        self._open: OrderedDict[TxnId, ExpectedWrites] = OrderedDict()
        self._expected: list[_Guess[Any]] = []
        self._expects_writes = False
        self._expected_ids = 0
        self._has_drawn = False
        self._is_id_wrong = False

    def next_id(self, count: int = 1) -> TxnId | None:
        """The first of ``count`` ids that the next transactions get, after those that are expected
        since it began, if nobody else opens any; None without a guess."""
        with self._lock:
            last = None if self._has_drawn else self._look(self._last_id)
            if last is None:
                return None
            first = TxnId(last + 1 + self._expected_ids)
            self._expected_ids += count
            return first

    def draw(self) -> None:
        """Ids are drawn that are not expected: until it begins anew, none is."""
        with self._lock:
            self._has_drawn = True

    def next_write_id(self, database: str, table: str) -> WriteId | None:
        """As :meth:`next_id`, for a write of a table, in lower case."""
        with self._lock:
            last = self._look(self._last_write_ids.of((database, table)))
            return None if last is None else WriteId(last + 1)

    def is_free(self, database: str, table: str, types: Iterable[LockType]) -> bool:
        """Whether locks of a table, of types that share it, are likely to be granted at once."""
        with self._lock:
            guesses = [self._is_free.of((database, table, kind)) for kind in types]
            return all(self._look(guess) is True for guess in guesses)

    def writes_of(self, txn_ids: Sequence[TxnId]) -> Sequence[ExpectedWrites] | None:
        """What these wrote; None if one of them is not known."""
        with self._lock:
            self._expects_writes = True
            expected = [self._open.get(txn_id) for txn_id in txn_ids]
        known = [writes for writes in expected if writes is not None]
        return known if len(known) == len(expected) else None

    def opened(self, txn_ids: Iterable[TxnId], kind: TxnType) -> None:
        """These were."""
        with self._lock:
            if self._is_id_wrong:
                # They may also be lower: of a database that was restored.
                self._last_id.value, self._is_id_wrong = None, False
            for txn_id in txn_ids:
                self._open[txn_id] = ExpectedWrites(kind=kind)
                self._last_id.value = max(self._last_id.value or txn_id, txn_id)
            while len(self._open) > REMEMBERED_MAX:
                self._open.popitem(last=False)

    def wrote(self, database: str, table: str, pairs: Sequence[TxnToWriteId]) -> None:
        """They have new write ids of a table, the last that were given."""
        with self._lock:
            last = max(pair.write_id for pair in pairs)
            self._last_write_ids.of((database, table)).value = last
            for pair in pairs:
                expected = self._open.get(pair.txn_id)
                new = (database, table, pair.write_id)
                if expected is not None and new not in expected.written:
                    written = tuple(sorted((*expected.written, new)))
                    self._open[pair.txn_id] = replace(expected, written=written)

    def locked(self, database: str, table: str | None, kind: LockType, *, is_granted: bool) -> None:
        """A lock was asked for; without a table, of the whole database."""
        with self._lock:
            if kind in SHARING:
                if table is not None:
                    self._is_free.of((database, table, kind)).value = is_granted
                return
            kept_out = [other for other in SHARING if kind in BLOCKERS[other]]
            for key, guess in self._is_free.known():
                if key[0] == database and table in (None, key[1]) and key[2] in kept_out:
                    guess.value = False

    def forget(self, txn_ids: Iterable[TxnId]) -> None:
        """They have ended, or do what cannot be foreseen."""
        with self._lock:
            for txn_id in txn_ids:
                self._open.pop(txn_id, None)

    def begin(self) -> None:
        """Nothing is expected yet."""
        with self._lock:
            self._expected.clear()
            self._expects_writes = False
            self._expected_ids = 0
            self._has_drawn = False

    def hold(self) -> None:
        """All was as expected since it began."""
        with self._lock:
            for guess in self._expected:
                guess.hold()

    def fail(self) -> None:
        """Some of what was expected since it began was not so: expect none of that for a while."""
        with self._lock:
            if self._expects_writes:
                self._open.clear()
            self._is_id_wrong = self._is_id_wrong or self._last_id in self._expected
            for guess in self._expected:
                guess.fail()

    def _look(self, guess: _Guess[T]) -> T | None:
        value = guess.look()
        if value:
            self._expected.append(guess)
        return value
