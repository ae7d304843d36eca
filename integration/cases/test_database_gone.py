"""The database server stands still, and is gone for longer than anybody waits for it, under verbs
of every family: who waits for it in vain hears so, nothing is done by halves, and the metastore's
process goes on.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hive_metastore import ttypes
from sqlalchemy import Connection, func, select
from thrift.Thrift import TApplicationException
from thrift.transport.TTransport import TTransportException

from hms_bridge.backend.engine import open_database
from hms_bridge.backend.schema.catalog_tables import CDS, PARTITIONS, SDS, SERDES, TBLS
from hms_bridge.backend.schema.txn_tables import HIVE_LOCKS, TXNS
from hms_bridge.config.settings import Settings
from hms_bridge.metastore import LocalMetastore
from hms_bridge.model.event import NotificationEvent
from hms_bridge.service.open import open_local_metastore
from integration.drivers.family_verbs import (
    CALLS_MAX,
    WritingVerb,
    open_txns,
    prepare,
    reading_verbs,
    writing_verbs,
)
from integration.referees.mariadb import MariaDb
from integration.referees.ours import OurServer
from integration.referees.outside import thrift_client
from integration.referees.postgresql import PostgreSql
from integration.referees.processes import Workplace
from tests.conformance.objects import events_after
from tests.support.event_messages import read_message

FROZEN_SECONDS = 11
"""Longer than a connection may take to be made."""
WAIT_SECONDS = 30
"""For how long a call waits for a database that is gone."""
LATE_SECONDS = 20
"""After which others come, for whom it is there again in time."""
SLACK_SECONDS = 20
"""A server that stops takes new connections for a while, and does not answer on them."""
LATE_CALLS = CALLS_MAX // 2
"""From which number on those that come late count theirs."""
PAUSE_SECONDS = 0.1
GONE = f"(it was gone for {WAIT_SECONDS} s)"
WHAT_NEXT = ("check the database server and try again", "check that the server runs there")
REFUSALS = (ttypes.MetaException, TApplicationException)


@pytest.fixture(params=["postgresql", "mariadb"])
def database_server(
    request: pytest.FixtureRequest, workplace: Workplace
) -> Iterator[PostgreSql | MariaDb]:
    """One of its own, whose commits outlive it."""
    own = (
        PostgreSql(workplace, is_durable=True)
        if request.param == "postgresql"
        else MariaDb(workplace)
    )
    yield own
    own.stop()


class Client:
    """Calls one verb again and again, until the database is gone for too long; remembers what it
    was answered."""

    def __init__(self, port: int, verb: WritingVerb, first: int = 0) -> None:
        self._port = port
        self.verb = verb
        self.calls = first
        self.done: dict[str, Any] = {}
        self.in_doubt: list[str] = []
        self.refusal = ""
        self.waited_seconds = 0.0

    def call_until_gone(self, _: object = None) -> None:
        with thrift_client(self._port) as client:
            while not self.refusal:
                self._call(client)
                time.sleep(PAUSE_SECONDS)

    def call_once(self, _: object = None) -> None:
        with thrift_client(self._port) as client:
            self._call(client)

    def _call(self, client: Any) -> None:
        name = f"{self.verb.name}_{self.calls}"
        self.calls += 1
        assert self.calls <= CALLS_MAX
        began = time.monotonic()
        try:
            self.done[name] = self.verb.call(client, name)
        except REFUSALS as error:
            self.in_doubt.append(name)
            if GONE in error.message:
                self.refusal = error.message
                self.waited_seconds = time.monotonic() - began
            elif "connection lost" not in error.message:  # while it committed
                raise


def test_a_database_that_is_gone_for_too_long_is_told_and_leaves_nothing_by_halves(
    database_server: PostgreSql | MariaDb, workplace: Workplace, tmp_path: Path
) -> None:
    url = database_server.database("gone").sqlalchemy_url
    ours = OurServer(workplace, url, warehouse=tmp_path / "warehouse")
    place = f"file:{tmp_path}/warehouse"
    with thrift_client(ours.port) as client:
        prepare(client, place)
        (unanswered,) = open_txns(client, "committed, and not answered")
    reads = [
        WritingVerb(name=read.name, call=lambda client, _, call=read.call: call(client))
        for read in reading_verbs()
    ]
    clients = [Client(ours.port, verb) for verb in (*writing_verbs(place), *reads)]
    with ThreadPoolExecutor(2 * len(clients) + 2) as pool:
        with _frozen(database_server):
            first = [pool.submit(client.call_once) for client in clients]
            time.sleep(FROZEN_SECONDS)
            assert [call for call in first if call.done()] == []
        for call in first:
            call.result(WAIT_SECONDS)
        under_way = [pool.submit(client.call_until_gone) for client in clients]
        time.sleep(1)
        database_server.drop_clients()
        time.sleep(LATE_SECONDS)
        others = [
            Client(ours.port, replace(client.verb, name=f"late_{client.verb.name}"), LATE_CALLS)
            for client in clients
        ]
        late = [pool.submit(client.call_once) for client in others]
        hung_up = [
            pool.submit(_hang_up, ours.port, lambda client: open_txns(client, "hung up")),
            pool.submit(_hang_up, ours.port, lambda client: _commit(client, unanswered)),
        ]
        for call in (*hung_up, *under_way):
            call.result(WAIT_SECONDS + SLACK_SECONDS)
        assert [call for call in late if call.done()] == []
        database_server.start_again()
        for call in late:
            call.result(WAIT_SECONDS)
    _all_were_told(clients)
    assert [client.verb.name for client in others if client.in_doubt] == []
    _goes_on(ours, clients, unanswered)
    ours.stop()
    metastore = open_local_metastore(url, warehouse=f"{tmp_path}/warehouse", settings=_impatient())
    try:
        _is_whole(url, metastore, [*clients, *others])
        _all_comes_to_an_end(url, metastore)
    finally:
        metastore.close()


@contextmanager
def _frozen(server: PostgreSql | MariaDb) -> Iterator[None]:
    """It has the connections, and answers nothing."""
    first = server._server.process.pid
    processes = [first, *map(int, Path(f"/proc/{first}/task/{first}/children").read_text().split())]
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGCONT)


def _commit(client: Any, txn: int) -> None:
    client.commit_txn(ttypes.CommitTxnRequest(txnid=txn))


def _hang_up(port: int, call: Callable[[Any], object]) -> None:
    """Call, and do not wait for the answer."""
    with thrift_client(port) as client, pytest.raises((TTransportException, TimeoutError)):
        client._iprot.trans._TBufferedTransport__trans.setTimeout(1000)
        call(client)


def _all_were_told(clients: list[Client]) -> None:
    for client in clients:
        name = client.verb.name
        assert any(text in client.refusal for text in WHAT_NEXT), (name, client.refusal)
        waited = client.waited_seconds
        assert WAIT_SECONDS - 1 < waited < WAIT_SECONDS + SLACK_SECONDS, (name, waited)


def _goes_on(ours: OurServer, clients: list[Client], unanswered: int) -> None:
    """Without a restart, what failed can be done, and what was not answered be asked again."""
    for client in clients:
        answered = len(client.done)
        client.call_once()
        assert len(client.done) == answered + 1, client.verb.name
    with thrift_client(ours.port) as client:
        open_txns(client, "hung up")
        with suppress(ttypes.NoSuchTxnException):
            _commit(client, unanswered)


def _impatient() -> Settings:
    settings = Settings()
    return replace(settings, txn=replace(settings.txn, timeout_ms=1000))


def _is_whole(url: str, metastore: LocalMetastore, clients: list[Client]) -> None:
    events: list[NotificationEvent] = []
    while page := events_after(metastore, events[-1].id if events else 0):
        events += page
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    database = open_database(url)
    with database.transaction(write=False) as connection:
        for client in clients:
            verb = client.verb
            if verb.names is not None:
                _is_done_or_not(client, connection)
            elif verb.event:
                ended = _txns_of(events, verb.event)
                assert len(set(ended)) == len(ended)
                assert set(client.done.values()) <= set(ended)
        open_ids = set(connection.scalars(select(TXNS.c.TXN_ID).where(TXNS.c.TXN_STATE == "o")))
        assert open_ids.isdisjoint(
            {*_txns_of(events, "COMMIT_TXN"), *_txns_of(events, "ABORT_TXN")}
        )
        assert set(connection.scalars(select(HIVE_LOCKS.c.HL_TXNID))) <= {0, *open_ids}
        _nothing_is_alone(connection)
    database.close()


def _is_done_or_not(client: Client, connection: Connection) -> None:
    """All rows of each call, or none of them; all of those that were answered."""
    verb = client.verb
    assert verb.names is not None
    there = Counter(
        name.partition("-")[0]
        for name in connection.scalars(verb.names)
        if name.rpartition("_")[0] == verb.name
    )
    assert set(there.values()) == {verb.rows}, (verb.name, there)
    assert client.done.keys() <= there.keys() <= {*client.done, *client.in_doubt}, verb.name


def _txns_of(events: list[NotificationEvent], kind: str) -> list[int]:
    return [read_message(event)["txnid"] for event in events if event.type == kind]


def _nothing_is_alone(connection: Connection) -> None:
    """Rows of nothing are what a half-made object leaves."""
    count = {table: connection.scalar(select(func.count()).select_from(table)) for table in (
        TBLS, PARTITIONS, SDS, SERDES
    )}  # fmt: skip
    assert count[SDS] == count[SERDES] == count[TBLS] + count[PARTITIONS], count
    used = select(SDS.c.CD_ID)
    assert connection.scalars(select(CDS.c.CD_ID).where(CDS.c.CD_ID.not_in(used))).all() == []


def _all_comes_to_an_end(url: str, metastore: LocalMetastore) -> None:
    """Nobody knows of what was opened and not answered, so it ends by itself."""
    time.sleep(1.5)
    metastore.run_housekeeping()
    database = open_database(url)
    with database.transaction(write=False) as connection:
        assert (
            connection.scalar(select(func.count()).select_from(TXNS).where(TXNS.c.TXN_STATE == "o"))
            == 0
        )
        assert connection.scalar(select(func.count()).select_from(HIVE_LOCKS)) == 0
    database.close()
