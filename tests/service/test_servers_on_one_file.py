"""Processes that share only a SQLite file are one metastore: two servers, or two of one server.
What their clients do at once is a history that one client could have made.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from itertools import cycle
from pathlib import Path
from typing import Any, cast

import pytest

from hms_bridge.client.thrift_metastore import ThriftMetastoreClient
from hms_bridge.errors import AlreadyExistsError, NoSuchObjectError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Database
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.ids import EventId
from tests.conformance.objects import DS, acid_table, partition
from tests.service.test_histories import History, one_history
from tests.support.program import Program, serving

pytestmark = pytest.mark.process

CLIENTS = 8
TABLES = 5


class Spread:
    """The metastore that several servers are, each thread a client of one of them."""

    def __init__(self, clients: list[ThriftMetastoreClient]) -> None:
        self._following = cycle(clients)
        self._lock = threading.Lock()
        self._mine = threading.local()

    def __getattr__(self, name: str) -> Any:
        if not hasattr(self._mine, "client"):
            with self._lock:
                self._mine.client = next(self._following)
        return getattr(self._mine.client, name)


@pytest.fixture(params=["two servers", "two processes"])
def metastore(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Metastore]:
    """Started at the same moment, on a file that is not there yet."""
    words = [()] * 2 if request.param == "two servers" else [("--processes", "2")]
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serving(Program(tmp_path), "--port", "0", *more)) for more in words
        ]
        clients = [
            stack.enter_context(ThriftMetastoreClient(server.wait_until_ready()))
            for server in servers
        ]
        yield cast("Metastore", Spread(clients))
        for server in servers:
            assert server.stop() == 0
            assert not [line for line in server.lines if " ERROR " in line or "Traceback" in line]


def at_once(work: Callable[[int], None]) -> None:
    with ThreadPoolExecutor(CLIENTS) as pool:
        for done in [pool.submit(work, number) for number in range(CLIENTS)]:
            done.result(300)


def test_transactions_of_all_clients_are_one_history(metastore: Metastore) -> None:
    for seed in (0, 1000):
        one_history(metastore, History(metastore), seed)


def test_definitions_are_made_whole_and_once(metastore: Metastore) -> None:
    """Each by two clients at once, who ask different servers: one makes it, the other is told."""
    metastore.create_database(Database(name="d"))
    made: list[str] = []

    def make(number: int) -> None:
        for table in range(TABLES):
            name = f"t{number // 2}_{table}"
            try:
                metastore.create_table(acid_table("d", name, partition_columns=DS))
                made.append(name)
            except AlreadyExistsError:
                pass
            for ds in ("a", "b"):
                try:
                    metastore.add_partitions("d", name, [partition("d", name, ds)])
                    made.append(f"{name}/{ds}")
                except AlreadyExistsError:
                    pass

    at_once(make)
    names = [f"t{pair}_{table}" for pair in range(CLIENTS // 2) for table in range(TABLES)]
    assert sorted(made) == sorted([*names, *(f"{n}/{ds}" for n in names for ds in ("a", "b"))])
    assert sorted(metastore.get_tables("d")) == sorted(names)

    dropped: list[str] = []

    def drop(number: int) -> None:
        for table in range(TABLES):
            name = f"t{number // 2}_{table}"
            try:
                assert [p.values for p in metastore.get_partitions("d", name)] == [("a",), ("b",)]
                metastore.drop_table("d", name)
                dropped.append(name)
            except NoSuchObjectError:
                pass

    at_once(drop)
    assert sorted(dropped) == sorted(names)
    assert metastore.get_tables("d") == ()
    events = metastore.get_next_notification(
        NotificationRequest(last_event_id=EventId(0), max_events=None)
    )
    assert [event.id for event in events] == list(range(1, len(events) + 1))
    told = [event.table_name for event in events if event.type == "DROP_TABLE"]
    assert sorted(told) == sorted(names)
