"""Connections of a crowd, over a real metastore."""

from __future__ import annotations

import itertools
import random
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select

from hms_bridge.backend.schema.txn_tables import COMPLETED_TXN_COMPONENTS
from hms_bridge.client.caller import CallSettings
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import EventSettings
from hms_bridge.errors import NoSuchTxnError
from hms_bridge.model.ids import LockId, TxnId
from hms_bridge.model.lock import DataOperation, LockState, LockType
from hms_bridge.model.txn import TxnState
from hms_bridge.server.crowd import STREAK
from hms_bridge.server.serve import MetastoreServer
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
from tests.support.guests import CROWD, OWN, opened, opening
from tests.support.installation import Installation
from tests.support.raw_thrift import RawClient


@contextmanager
def _real(folder: Path, **settings: Any) -> Iterator[tuple[MetastoreServer, Any, list[str]]]:
    """A server, its metastore, and on which thread each call was answered."""
    threads: list[str] = []
    world = Installation(folder, clock=SystemClock(), **settings)
    try:
        with MetastoreServer(
            0, world.metastore, watch=lambda _: threads.append(threading.current_thread().name)
        ) as server:
            yield server, world.metastore, threads
    finally:
        world.close()


def _open(client: RawClient, count: int = 1) -> list[int]:
    client.send(opening(count))
    return opened(client)


def test_what_shares_nothing_is_made_on_its_own_thread_and_not_tried_again_soon(
    tmp_path: Path,
) -> None:
    with _real(tmp_path) as (server, metastore, threads), RawClient(server.port) as client:
        assert [_open(client) for _ in range(STREAK + 2)] == [[1], [2], [3], [4], [5], [6]]
        assert threads == [OWN] * STREAK + [CROWD] * 2
        assert _open(client, 100) == list(range(7, 107))
        assert [_open(client) for _ in range(50)] == [[one] for one in range(107, 157)]
        assert threads[STREAK + 2 :] == [OWN] * 51
        assert len(events_after(metastore, 0)) == STREAK + 2 + 51


def test_who_was_tried_with_others_is_soon_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _real(tmp_path) as (server, metastore, threads), RawClient(server.port) as client:
        for _ in range(STREAK + 1):
            _open(client)
        assert threads[-1] == CROWD
        dialect = metastore._transactions.database.engine.dialect
        do_commit, numbers = dialect.do_commit, itertools.count(1)

        def fails_once(connection: Any) -> None:
            if next(numbers) == 1:
                connection.rollback()
                raise dialect.loaded_dbapi.OperationalError("database is locked")
            do_commit(connection)

        monkeypatch.setattr(dialect, "do_commit", fails_once)
        assert [_open(client) for _ in range(STREAK + 2)][0] == [STREAK + 2]
        assert threads[STREAK + 1 :] == [OWN] * STREAK + [CROWD] * 2


def test_where_hooks_stand_inside_each_is_tried_once_in_a_long_while(tmp_path: Path) -> None:
    asked = EventSettings(pre_listeners=("tests.service.test_shared_writes:Watching",))
    with (
        _real(tmp_path, events=asked) as (server, metastore, threads),
        RawClient(server.port) as client,
    ):
        assert [_open(client) for _ in range(50)] == [[one] for one in range(1, 51)]
        assert threads == [OWN] * 50
        assert len(metastore.get_open_txns().txns) == 50


class _History:
    """What clients of one server did together."""

    def __init__(self, port: int, database: str) -> None:
        self.port = port
        self.database = database
        self.committed: list[int] = []
        self.aborted: list[int] = []
        self.writes: list[tuple[int, int]] = []
        self.failures: list[BaseException] = []

    def run(self, clients: int, rounds: int) -> None:
        threads = [
            threading.Thread(target=self._client, args=(number, rounds), daemon=True)
            for number in range(clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
            assert not thread.is_alive()
        assert self.failures == []

    def _client(self, number: int, rounds: int) -> None:
        dice = random.Random(number)
        try:
            with ThriftMetastoreClient(f"127.0.0.1:{self.port}", CallSettings(attempts=1)) as asked:
                for _ in range(rounds):
                    self._transaction(asked, dice)
        except BaseException as error:
            self.failures.append(error)

    def _transaction(self, asked: ThriftMetastoreClient, dice: random.Random) -> None:
        txn = open_txn(asked)
        if dice.random() < 0.7:
            self.writes.append((txn, write_id(asked, txn, self.database)))
            part = component(self.database, "t", LockType.SHARED_WRITE, DataOperation.INSERT)
            assert asked.lock(request(part, txn=txn)).state is LockState.ACQUIRED
        if dice.random() < 0.3:
            asked.heartbeat(txn, LockId(0))
        if dice.random() < 0.1:
            assert txn in [one.id for one in asked.get_open_txns().txns]
        with pytest.raises(NoSuchTxnError):
            commit(asked, TxnId(999_999))
        if dice.random() < 0.2:
            abort(asked, txn)
            self.aborted.append(txn)
        else:
            commit(asked, txn)
            self.committed.append(txn)


def test_a_history_of_many_clients_has_each_verb_once(tmp_path: Path) -> None:
    clients, rounds = 8, 40
    with _real(tmp_path) as (server, metastore, threads):
        database = new_database(metastore)
        new_table(metastore, database)
        known = metastore.get_current_event_id()
        history = _History(server.port, database)
        history.run(clients, rounds)
        assert threads.count(CROWD) > len(threads) / 2
        txns = history.committed + history.aborted
        assert sorted(txns) == list(range(1, clients * rounds + 1))
        assert sorted(given for _, given in history.writes) == list(
            range(1, len(history.writes) + 1)
        )
        infos = metastore.get_open_txns_info()
        assert {info.id for info in infos if info.state is TxnState.OPEN} == set()
        assert {info.id for info in infos} <= set(history.aborted)
        with metastore._transactions.database.transaction(write=False) as connection:
            completed = connection.scalars(select(COMPLETED_TXN_COMPONENTS.c.CTC_TXNID)).all()
        written = {txn for txn, _ in history.writes}
        assert sorted(completed) == sorted(written & set(history.committed))
        assert metastore.show_locks() == ()
        events = events_after(metastore, known)
        assert [one.id for one in events] == list(range(known + 1, known + 1 + len(events)))
        assert Counter(one.type for one in events) == {
            "OPEN_TXN": len(txns), "COMMIT_TXN": len(history.committed),
            "ABORT_TXN": len(history.aborted), "ALLOC_WRITE_ID_EVENT": len(history.writes),
        }  # fmt: skip
