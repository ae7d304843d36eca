"""What many clients did at once is a history that one client could have made, and the log tells it.

A value of a table is kept here, by write id, as files would be: who commits has read the newest
one that its snapshot shows, and writes it plus one.

HMS_BRIDGE_HISTORY_OPERATIONS (0) is how many calls of the metastore there are at least: one short
history after the other, each on tables of its own (`make histories`). HMS_BRIDGE_TEST_METASTORES
(thrift://HOST:PORT, with blanks between them) names servers whose clients do the same.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.errors import TxnAbortedError
from hms_bridge.metastore import Metastore
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.ids import LockId, TxnId, WriteId
from hms_bridge.model.lock import (
    DataOperation,
    LockFilter,
    LockResponse,
    LockState,
    LockType,
)
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import TxnState
from hms_bridge.service.open import open_local_metastore
from tests.conformance.objects import (
    abort,
    commit,
    component,
    events_after,
    new_database,
    new_table,
    open_txn,
    request,
    write_id,
)
from tests.support.databases import OTHER_URLS
from tests.support.event_messages import read_message

OPERATIONS = int(os.environ.get("HMS_BRIDGE_HISTORY_OPERATIONS", "0"))
THREADS = 8
ROUNDS = 40 if OPERATIONS else 4
TABLES = ("a", "b")
PATIENCE_SECONDS = 60


SERVERS = os.environ.get("HMS_BRIDGE_TEST_METASTORES", "").split()


@pytest.fixture(params=["sqlite", *OTHER_URLS, *SERVERS])
def metastore(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Metastore]:
    if request.param in SERVERS:
        with ThriftMetastoreClient(request.param) as client:
            yield client
        return
    url = f"sqlite:///{tmp_path}/metastore.db" if request.param == "sqlite" else request.param
    service = open_local_metastore(url, warehouse=str(tmp_path / "warehouse"))
    yield service
    service.close()


class Counted:
    """A metastore that counts how often it is called."""

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore
        self._numbers = itertools.count(1)
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        self.calls = next(self._numbers)  # a count of threads at once
        return getattr(self._metastore, name)


class History:
    """What the clients did, as they were answered."""

    def __init__(self, metastore: Metastore) -> None:
        self._metastore = metastore
        self.database = new_database(metastore)
        for table in TABLES:
            new_table(metastore, self.database, table)
        self.given: dict[str, dict[WriteId, TxnId]] = {table: {} for table in TABLES}
        self.values: dict[str, dict[WriteId, int]] = {table: {} for table in TABLES}
        self.committed: set[TxnId] = set()
        self.aborted: set[TxnId] = set()

    def newest(self, table: str) -> int:
        """The value that a snapshot of now shows."""
        return self.shown(table, self._metastore.get_open_txns().snapshot())

    def shown(self, table: str, snapshot: str) -> int:
        """The value that a snapshot shows; no values that are missing between."""
        full_name = f"{self.database}.{table}"
        (seen,) = self._metastore.get_valid_write_ids([full_name], snapshot)
        written = sorted(self.values[table].items())
        shown = [value for number, value in written if seen.is_valid(number)]
        assert shown == list(range(1, len(shown) + 1))
        return len(shown)

    def write(self, table: str, *, is_kept: bool, is_alone: bool) -> None:
        """One transaction that adds one: under a lock that keeps others out, or by the check at
        its commit."""
        metastore = self._metastore
        txn = open_txn(metastore)
        if is_alone:
            self._lock(table, txn, LockType.EXCL_WRITE)
            number, snapshot = self._allocate(table, txn), metastore.get_open_txns().snapshot()
            value = self.shown(table, snapshot)
        else:
            snapshot = metastore.get_open_txns().snapshot()
            value, number = self.shown(table, snapshot), self._allocate(table, txn)
            self._lock(table, txn, LockType.SHARED_WRITE)
        assert self.shown(table, snapshot) == value, "a snapshot has moved"
        self.values[table][number] = value + 1
        try:
            if is_kept:
                commit(metastore, txn, is_exclusive_write_enabled=is_alone)
                self.committed.add(txn)
                return
            abort(metastore, txn)
        except TxnAbortedError:
            assert is_kept
            assert not is_alone
        self.aborted.add(txn)

    def _allocate(self, table: str, txn: TxnId) -> WriteId:
        number = write_id(self._metastore, txn, self.database, table)
        assert self.given[table].setdefault(number, txn) == txn, "given twice"
        return number

    def _lock(self, table: str, txn: TxnId, kind: LockType) -> None:
        wanted = component(self.database, table, kind, DataOperation.UPDATE)
        answer: LockResponse = self._metastore.lock(request(wanted, txn=txn))
        until = time.monotonic() + PATIENCE_SECONDS
        while answer.state is not LockState.ACQUIRED:
            assert answer.state is LockState.WAITING
            assert time.monotonic() < until
            time.sleep(0.01)
            answer = self._metastore.check_lock(LockId(answer.lock_id))


def follow(metastore: Metastore, last: int, is_over: threading.Event) -> list[NotificationEvent]:
    """All events up to the end, by the pages that a follower gets meanwhile."""
    seen: list[NotificationEvent] = []
    while not is_over.is_set() or metastore.get_current_event_id() > last:
        for event in events_after(metastore, last):
            seen.append(event)
            last = event.id
        is_over.wait(0.02)
    return seen


def test_a_history_of_many_clients_is_one_of_a_single_one(metastore: Metastore) -> None:
    counted = Counted(metastore)
    seed = 0
    while seed == 0 or counted.calls < OPERATIONS:
        seen = counted.calls
        one_history(metastore, History(cast("Metastore", counted)), seed)
        seed += THREADS
        assert counted.calls > seen
        sys.stdout.write(f"{counted.calls} calls in {seed // THREADS} histories\n")
        sys.stdout.flush()


def one_history(metastore: Metastore, history: History, seed: int) -> None:
    """All clients at once, on tables of their own, and what they leave."""
    first = metastore.get_current_event_id()
    is_over = threading.Event()

    def work(number: int) -> None:
        dice = Random(seed + number)
        for _ in range(ROUNDS):
            history.write(
                dice.choice(TABLES), is_kept=dice.random() < 0.8, is_alone=dice.random() < 0.5
            )

    with ThreadPoolExecutor(THREADS + 1) as pool:
        follower = pool.submit(follow, metastore, first, is_over)
        workers = [pool.submit(work, number) for number in range(THREADS)]
        try:
            for worker in workers:
                worker.result(300)
        finally:
            is_over.set()
        events = follower.result(60)
    assert len(history.committed) + len(history.aborted) == THREADS * ROUNDS
    assert_no_update_is_lost(history)
    assert_the_log_tells(history, events, first, metastore.get_current_event_id())
    scope = Scope(history.database, None, None)
    assert metastore.show_locks(LockFilter(scope=scope)) == ()
    left = {txn.id: txn.state for txn in metastore.get_open_txns().txns}
    assert not history.committed & left.keys()
    assert {left[txn] for txn in history.aborted} <= {TxnState.ABORTED}


def assert_no_update_is_lost(history: History) -> None:
    """Each commit has raised the value of its table by one, in the order of write ids."""
    total = 0
    for table in TABLES:
        kept = [
            history.values[table][number]
            for number, txn in sorted(history.given[table].items())
            if txn in history.committed
        ]
        assert kept == list(range(1, len(kept) + 1))
        assert history.newest(table) == len(kept)
        assert sorted(history.given[table]) == list(range(1, len(history.given[table]) + 1))
        total += len(kept)
    assert total == len(history.committed)


def assert_the_log_tells(
    history: History, events: list[NotificationEvent], first: int, last: int
) -> None:
    """No id is missing; each end of a transaction once; write ids in the order of the log."""
    assert [event.id for event in events] == list(range(first + 1, last + 1))
    ours = history.committed | history.aborted
    ends: Counter[tuple[str, int]] = Counter()
    given: dict[str, list[tuple[int, int]]] = {table: [] for table in TABLES}
    for event in events:
        message = read_message(event)
        if event.type == EventType.ALLOC_WRITE_ID.value:
            pairs = zip(message["writeIdList"], message["txnIdList"], strict=True)
            given[message["tableName"]] += pairs
        elif event.type in ("COMMIT_TXN", "ABORT_TXN") and message["txnid"] in ours:
            ends[event.type, message["txnid"]] += 1
    wanted = [("COMMIT_TXN", txn) for txn in history.committed]
    assert ends == Counter(wanted + [("ABORT_TXN", txn) for txn in history.aborted])
    assert given == {table: sorted(history.given[table].items()) for table in TABLES}
