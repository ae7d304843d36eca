"""Hive 4.2's Cleaner removes nothing that a reader of ours may still read; ours removes nothing
that a reader of Hive's looks at.

Hive's Cleaner trusts MIN_HISTORY_WRITE_ID alone by default (metastore.txn.use.minhistorywriteid).
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import CompactorSettings, Settings
from hms_bridge.connect import connected, open_local
from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.lock import DataOperation, LockComponent, LockLevel, LockType
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import (
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    OpenTxnsRequest,
    TxnType,
)
from hms_bridge.session.locked_transaction import locked_transaction
from hms_bridge.session.transaction import Client
from integration.comparison.cases import ACID
from integration.referees.beside import Beside
from integration.referees.errors import StatementError
from integration.referees.hive42 import HiveSession, table_folder
from integration.referees.java_metastore import JavaMetastore

NUMBERS = itertools.count(1)
CLIENT = Client(user="reader", host="127.0.0.1")
DELTAS = {f"delta_{number:07d}_{number:07d}_0000" for number in (1, 2, 3)}


def _open(metastore: Metastore, kind: TxnType = TxnType.DEFAULT) -> TxnId:
    (txn_id,) = metastore.open_txns(OpenTxnsRequest(user="x", host="127.0.0.1", type=kind))
    return txn_id


@dataclass
class Compacted:
    """A table of three rows in three deltas; an aborted write id, and one that is open."""

    beside: Beside
    name: str
    folder: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder = table_folder(self.beside.hive.warehouse, self.name)
        hive = self.beside.hive.main
        hive.sql(f"create table {self.name} (id int, v string) {ACID}")
        for number in range(3):
            hive.sql(f"insert into {self.name} values ({number}, 'v{number}')")
        with connected(self.beside.store.sqlalchemy_url) as metastore:
            aborted, self.writer = _open(metastore), _open(metastore)
            database, _, table = self.name.partition(".")
            for txn_id in (aborted, self.writer):
                metastore.allocate_table_write_ids(
                    AllocateWriteIdsRequest(
                        database_name=database, table_name=table, txn_ids=(txn_id,)
                    )
                )
            metastore.abort_txn(AbortTxnRequest(txn_id=aborted))

    def end_writer(self) -> None:
        """After that nothing is open."""
        with connected(self.beside.store.sqlalchemy_url) as metastore:
            metastore.commit_txn(CommitTxnRequest(txn_id=self.writer))

    def compact(self) -> None:
        """A major compaction by Hive's Worker, and Hive's Cleaner."""
        hive = self.beside.hive.main
        hive.sql(f"alter table {self.name} compact 'major'")
        hive.run("Worker")
        assert any(name.startswith("base_") for name in self.names())
        hive.run("Cleaner")

    def names(self) -> set[str]:
        """Directories of the table."""
        return {path.name for path in self.folder.iterdir()}


@pytest.fixture
def table(hive42_beside: Beside) -> Iterator[Compacted]:
    database = f"readers_{next(NUMBERS)}"
    hive42_beside.hive.main.sql(f"create database {database}")
    yield Compacted(hive42_beside, f"{database}.t")
    hive42_beside.hive.main.sql(f"drop database {database} cascade")


@pytest.fixture(scope="module")
def hive_metastore(hive42_beside: Beside) -> Iterator[JavaMetastore]:
    """Hive's own metastore server on the same database."""
    server = hive42_beside.metastore_server()
    yield server
    server.stop()


@contextmanager
def _reading(metastore: Metastore, name: str) -> Iterator[None]:
    """As `sql` reads: a read-only transaction with a shared lock."""
    database, _, table = name.partition(".")
    lock = LockComponent(
        type=LockType.SHARED_READ,
        level=LockLevel.TABLE,
        scope=Scope(database, table),
        operation=DataOperation.SELECT,
        is_transactional=True,
    )
    with locked_transaction(metastore, CLIENT, SystemClock(), [lock], kind=TxnType.READ_ONLY):
        yield


@pytest.mark.parametrize("way", ["database", "our server", "Hive's own server"])
def test_hives_cleaner_waits_for_a_reader_of_ours(
    table: Compacted, hive_metastore: JavaMetastore, way: str
) -> None:
    url = {
        "database": table.beside.store.sqlalchemy_url,
        "our server": table.beside.ours.uri,
        "Hive's own server": hive_metastore.uri,
    }[way]
    with connected(url) as metastore, _reading(metastore, table.name):
        assert table.beside.count("MIN_HISTORY_WRITE_ID") == 1
        table.end_writer()
        table.compact()
        assert table.names() >= DELTAS
    assert table.beside.count("MIN_HISTORY_WRITE_ID") == 0
    table.beside.hive.main.run("Cleaner")
    assert not table.names() & DELTAS


@pytest.mark.parametrize("is_writer_open", [True, False])
def test_hives_cleaner_waits_for_a_hive_on_our_server(
    table: Compacted, is_writer_open: bool
) -> None:
    """Where nothing is open that Hive asks for the id after its last, and would get no more."""
    if not is_writer_open:
        table.end_writer()
    session = table.beside.hive.session_at(table.beside.ours.uri)
    found: list[tuple[str, ...]] = []

    def read() -> None:
        slow = "reflect('java.lang.Thread', 'sleep', cast(5000 as bigint))"
        found.extend(session.sql(f"select id, v, {slow} from {table.name}"))

    reader = threading.Thread(target=read)
    reader.start()
    while not table.beside.count("MIN_HISTORY_WRITE_ID"):
        reader.join(0.05)
    if is_writer_open:
        table.end_writer()
    table.compact()
    assert reader.is_alive()
    assert table.names() >= DELTAS
    reader.join()
    session.close()
    assert sorted(row[:2] for row in found) == [("0", "v0"), ("1", "v1"), ("2", "v2")]


def test_our_cleaner_waits_for_a_reader_of_hives(table: Compacted) -> None:
    """Hive's reader registered nothing that would hold Hive's own Cleaner."""
    from cleaner.daemon import make_cleaner

    session = table.beside.hive.session()
    slow = "reflect('java.lang.Thread', 'sleep', cast(4000 as bigint))"
    reader = threading.Thread(target=lambda: session.sql(f"select id, {slow} from {table.name}"))
    table.end_writer()
    reader.start()
    while not table.beside.count("MIN_HISTORY_WRITE_ID"):
        reader.join(0.05)
    hive = table.beside.hive.main
    hive.sql(f"alter table {table.name} compact 'major'")
    hive.run("Worker")
    store = open_local(table.beside.store.sqlalchemy_url)
    cleaner = make_cleaner(store)
    cleaner.run_once()
    assert reader.is_alive()
    assert table.names() >= DELTAS
    reader.join()
    session.close()
    cleaner.run_once()
    store.metastore.close()
    assert not table.names() & DELTAS


MANY = 300
ROUNDS = 3
SECONDS_OF_LOOKS = 60


def _write_ids(table: Compacted) -> list[WriteId]:
    """Of transactions that have committed."""
    database, _, name = table.name.partition(".")
    with connected(table.beside.store.sqlalchemy_url) as metastore:
        txns = metastore.open_txns(OpenTxnsRequest(user="x", host="127.0.0.1", count=MANY))
        given = metastore.allocate_table_write_ids(
            AllocateWriteIdsRequest(database_name=database, table_name=name, txn_ids=txns)
        )
        for txn_id in txns:
            metastore.commit_txn(CommitTxnRequest(txn_id=txn_id))
    return [pair.write_id for pair in given]


def _compacted_again(table: Compacted, write_ids: Sequence[WriteId]) -> list[Path]:
    """A new base, and directories that it covers for every reader there is."""
    hive = table.beside.hive.main
    hive.sql(f"update {table.name} set v = 'new' where id = 0")
    hive.sql(f"alter table {table.name} compact 'major'")
    hive.run("Worker")
    covered = [table.folder / f"delta_{number:07d}_{number:07d}_0000" for number in write_ids]
    for directory in covered:
        directory.mkdir()
        (directory / "bucket_00000").write_bytes(b"in the base")
    return covered


class _Looks:
    """A Hive session that counts a table's rows, again and again, as a person's SELECT would."""

    def __init__(self, session: HiveSession, name: str) -> None:
        self._session, self._name = session, name
        self.found: Counter[int] = Counter()
        self.errors: list[StatementError] = []
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> _Looks:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
        self._session.close()

    def _look(self) -> None:
        while not self._stopping.is_set():
            try:
                self.found[len(self._session.sql(f"select id, v from {self._name}"))] += 1
            except StatementError as error:
                self.errors.append(error)


@pytest.mark.parametrize("is_on_ours", [True, False])
def test_our_cleaner_takes_no_directory_from_under_a_listing(
    table: Compacted, is_on_ours: bool
) -> None:
    """But for one look in twenty: on a machine that stands still for a moment between the question
    who lists and the deletion. Without the question, every third finds no rows."""
    from cleaner.daemon import make_cleaner

    write_ids = _write_ids(table)
    table.end_writer()
    hive, url = table.beside.hive, table.beside.store.sqlalchemy_url
    found: Counter[int] = Counter()
    errors: list[StatementError] = []
    store = open_local(url, Settings(compactor=CompactorSettings(cleaner_interval_ms=10)))
    cleaner = make_cleaner(store)
    for _ in range(ROUNDS):
        covered = _compacted_again(table, write_ids)
        session = hive.session_at(table.beside.ours.uri) if is_on_ours else hive.session()
        with _Looks(session, table.name) as looks:
            end = time.monotonic() + SECONDS_OF_LOOKS
            while any(map(Path.exists, covered)) and time.monotonic() < end:
                cleaner.run_once()
                time.sleep(0.02)
        assert not any(map(Path.exists, covered))
        found += looks.found
        errors += looks.errors
    store.metastore.close()
    assert set(found) <= {0, 3}
    assert found[0] + len(errors) <= 1 + found[3] // 20, (found, errors)
    assert not table.names() & DELTAS


def test_hive_takes_a_directory_that_goes_for_an_empty_table(table: Compacted) -> None:
    """Whoever removes it, and however long it has been useless. If this fails, Hive is mended, and
    our cleaner need not give way any more."""
    write_ids = _write_ids(table)
    table.end_writer()
    covered = _compacted_again(table, write_ids)[:20]
    table.beside.hive.main.run("Cleaner")
    with _Looks(table.beside.hive.session(), table.name) as looks:
        end = time.monotonic() + SECONDS_OF_LOOKS
        while not (looks.found[0] and looks.found[3]) and time.monotonic() < end:
            for directory in covered:
                directory.mkdir()
            for directory in covered:
                directory.rmdir()
    assert set(looks.found) == {0, 3}
    assert looks.errors == []
