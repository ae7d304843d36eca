"""A server of several processes on PostgreSQL, whose processes are killed under load."""

from __future__ import annotations

import os
import re
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from hms_bridge.client.caller import CallSettings
from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.errors import (
    MetastoreUnavailableError,
)
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.txn import TxnState
from integration.referees.ours import OurServer
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace
from tests.conformance.objects import (
    commit,
    component,
    events_after,
    new_database,
    new_table,
    open_txn,
    request,
    write_id,
)
from tests.service.test_histories import History, one_history
from tests.support.event_messages import read_message
from tests.support.server_processes import until

CLIENTS = 8
VICTIMS = ("client process 1", "client process 2", "background process") * 2
TIMEOUT_SECONDS = 20
WORDS = re.compile(r"(background process|client process \d+) is there, as process (\d+)")


_until = partial(until, seconds=120)


class Load:
    """Clients that write transactions, and what they were answered."""

    def __init__(self, uri: str, database: str) -> None:
        self._uri, self._database = uri, database
        self.is_over = threading.Event()
        self.opened: list[TxnId] = []
        self.given: list[tuple[WriteId, TxnId]] = []
        self.committed: list[TxnId] = []
        self.lost = 0

    def run(self, _: int) -> None:
        with ThriftMetastoreClient(self._uri, CallSettings(attempts=1)) as client:
            while not self.is_over.is_set():
                try:
                    self._write(client)
                except MetastoreUnavailableError:  # its process is gone
                    self.lost += 1

    def _write(self, client: ThriftMetastoreClient) -> None:
        txn = open_txn(client)
        self.opened.append(txn)
        self.given.append((write_id(client, txn, self._database, "t"), txn))
        wanted = component(self._database, "t", LockType.SHARED_WRITE, DataOperation.INSERT)
        client.lock(request(wanted, txn=txn))
        commit(client, txn)
        self.committed.append(txn)


def _processes(server: OurServer) -> dict[str, int]:
    log = server._server.log_path.read_text()
    return {found[1]: int(found[2]) for found in WORDS.finditer(log)}


def _kill(server: OurServer, name: str) -> None:
    number = _processes(server)[name]
    os.kill(number, signal.SIGKILL)
    _until(lambda: _processes(server)[name] != number)


@pytest.mark.timeout(600)
def test_kills_under_load_lose_and_double_nothing(
    workplace: Workplace, postgresql: PostgreSql
) -> None:
    server = OurServer(
        workplace,
        postgresql.database("processes").sqlalchemy_url,
        settings={
            "hms.bridge.server.processes": "2",
            "metastore.txn.timeout": f"{TIMEOUT_SECONDS}s",
        },
    )
    _until(lambda: len(_processes(server)) == 3)
    with ThriftMetastoreClient(server.uri) as client:
        database = new_database(client)
        new_table(client, database)
        first = client.get_current_event_id()
        load = Load(server.uri, database)
        with ThreadPoolExecutor(CLIENTS) as pool:
            clients = [pool.submit(load.run, number) for number in range(CLIENTS)]
            try:
                for name in VICTIMS:
                    count = len(load.committed)
                    _until(lambda count=count: len(load.committed) > count + 50)
                    _kill(server, name)
            finally:
                load.is_over.set()
            for done in clients:
                done.result(120)
        assert load.lost
        # What nobody ends is ended by the background process that came last.
        _until(lambda: not _open_txns(client))
        _assert_nothing_is_lost(client, load, first)
        one_history(client, History(client), 0)
    server.stop()
    assert "Traceback" not in server._server.log_path.read_text()


def _open_txns(client: ThriftMetastoreClient) -> list[TxnId]:
    txns = client.get_open_txns().txns
    return [txn.id for txn in txns if txn.state is TxnState.OPEN]


def _assert_nothing_is_lost(client: ThriftMetastoreClient, load: Load, first: int) -> None:
    events = list(events_after(client, first))
    while more := events_after(client, events[-1].id):
        events += more
    ids = [event.id for event in events]
    assert ids == list(range(first + 1, first + 1 + len(ids)))
    ends: Counter[TxnId] = Counter()
    committed, given = set(), []
    for event in events:
        message = read_message(event)
        if event.type == "ALLOC_WRITE_ID_EVENT":
            given += zip(message["writeIdList"], message["txnIdList"], strict=True)
        elif event.type in ("COMMIT_TXN", "ABORT_TXN"):
            ends[message["txnid"]] += 1
            committed |= {message["txnid"]} if event.type == "COMMIT_TXN" else set()
    assert set(load.committed) <= committed
    assert set(ends.values()) == {1}
    assert len(set(load.opened)) == len(load.opened), "a transaction's id was given twice"
    assert [number for number, _ in given] == list(range(1, len(given) + 1))
    assert set(load.given) <= set(given)
