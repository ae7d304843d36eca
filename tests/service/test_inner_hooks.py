"""Hooks inside of a transaction: one that refuses leaves everything as it was, and is named."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from sqlalchemy import Column, Engine, MetaData, String, Table, delete, event, insert, select
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from hms_bridge.backend.engine import open_database
from hms_bridge.backend.schema.notification_tables import HMSB_HOOK_POINT
from hms_bridge.config.settings import EventSettings, Settings, TxnSettings
from hms_bridge.errors import BackendError, MetaError
from hms_bridge.hooks.port import Statements, VetoError
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.event import EventType
from hms_bridge.model.hook import Change, HookEvent, PointType
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import LockComponent, LockLevel, LockRequest, LockType
from hms_bridge.model.target import Scope, Target
from hms_bridge.model.txn import AbortTxnRequest, CommitTxnRequest
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.open import open_local_metastore
from tests.conformance.objects import (
    acid_table,
    commit,
    events_after,
    new_database,
    new_table,
    open_txn,
)
from tests.support.databases import fresh_url

HERE = "tests.service.test_inner_hooks"
AUDIT = Table(
    "AUDIT", MetaData(), Column("KEY", String(40), primary_key=True), Column("TYPE", String(40))
)


class Guard:
    """Refuses what the tests write here; fails on what they write there."""

    refused: frozenset[str] = frozenset()
    failing: frozenset[str] = frozenset()
    asked: list[str] = []

    def before_change(self, change: Change) -> None:
        self.asked.append(change.described)
        if change.type in self.refused:
            raise VetoError("not on a Sunday")
        if change.type in self.failing:
            raise KeyError("a fault of its own")


class Audit:
    """Writes beside the events, and fails after that where it is told to."""

    failing: frozenset[str] = frozenset()
    fault: type[BaseException] = ValueError
    deadlocks: list[str] = []
    swallowed: frozenset[str] = frozenset()

    def in_transaction(self, events: Sequence[HookEvent], statements: Statements) -> None:
        for told in events:
            statements.execute(insert(AUDIT).values(KEY=told.key, TYPE=told.type))
            if told.type in self.swallowed:
                with suppress(SQLAlchemyError):
                    statements.execute(insert(AUDIT).values(KEY=told.key, TYPE="once more"))
            if told.type in self.failing:
                raise self.fault("no ink")
            if told.type in self.deadlocks:
                self.deadlocks.remove(told.type)
                raise OperationalError("x", {}, Exception("database is locked"))


@pytest.fixture(autouse=True)
def forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Guard, "asked", [])
    monkeypatch.setattr(Audit, "deadlocks", [])


@pytest.fixture
def url(tmp_path: Path) -> str:
    return fresh_url(tmp_path)


@pytest.fixture
def metastore(url: str, tmp_path: Path) -> Iterator[MetastoreService]:
    database = open_database(url)
    with database.transaction(write=True) as connection:
        AUDIT.create(connection, checkfirst=True)
        connection.execute(delete(AUDIT))
    database.close()
    events = EventSettings(
        pre_listeners=(f"{HERE}:Guard",), transactional_listeners=(f"{HERE}:Audit",)
    )
    opened = open_local_metastore(
        url, settings=Settings(warehouse=str(tmp_path / "warehouse"), events=events)
    )
    yield opened
    opened.close()


def audited(url: str) -> list[tuple[str, str]]:
    database = open_database(url)
    with database.transaction(write=False) as connection:
        rows = connection.execute(select(AUDIT).order_by(AUDIT.c.KEY)).all()
    database.close()
    return [tuple(row) for row in rows]


def test_a_veto_names_the_hook_and_changes_nothing(
    metastore: MetastoreService, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_database(metastore)
    table = acid_table(name)
    monkeypatch.setattr(Guard, "refused", frozenset({EventType.CREATE_TABLE.value}))
    with pytest.raises(
        MetaError,
        match=f"pre-event hook {HERE}:Guard refuses CREATE_TABLE {name}.{table.name}: not on a Sun",
    ):
        metastore.create_table(table)
    assert metastore.get_tables(name) == ()
    assert [told.type for told in events_after(metastore, 0)] == ["CREATE_DATABASE"]
    assert audited(url) == [("1", "CREATE_DATABASE")]
    monkeypatch.setattr(Guard, "refused", frozenset())
    metastore.create_table(table)
    assert [told.id for told in events_after(metastore, 0)] == [1, 2], "no id is lost"


def test_a_hook_with_a_fault_refuses(
    metastore: MetastoreService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Guard, "failing", frozenset({EventType.CREATE_DATABASE.value}))
    with pytest.raises(MetaError, match=r"Guard failed, so CREATE_DATABASE .* is refused: KeyErr"):
        new_database(metastore)
    assert metastore.get_databases() == ("default",)


def test_a_veto_of_a_commit_leaves_the_transaction_open_and_its_end_is_never_asked(
    metastore: MetastoreService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else nobody could ever end it."""
    every = frozenset(kind.value for kind in EventType)
    txn = open_txn(metastore)
    monkeypatch.setattr(Guard, "refused", every)
    with pytest.raises(MetaError, match="refuses COMMIT_TXN"):
        metastore.commit_txn(CommitTxnRequest(txn_id=txn))
    assert [info.id for info in metastore.get_open_txns_info()] == [txn]
    metastore.abort_txn(AbortTxnRequest(txn_id=TxnId(txn)))
    assert [told.type for told in events_after(metastore, 0)][-1] == "ABORT_TXN"


def test_what_is_no_change_of_a_client_cannot_be_refused(
    metastore: MetastoreService, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That a worker takes a compaction, as the others that only tell how far something is."""
    monkeypatch.setattr(Guard, "refused", frozenset(kind.value for kind in PointType))
    work_of_a_day(metastore)
    metastore.run_housekeeping()
    assert "REQUEST_COMPACTION" in {described.split()[0] for described in Guard.asked}
    assert not {described.split()[0] for described in Guard.asked} & {*PointType}


def test_what_a_transactional_hook_writes_is_there_with_the_events_or_neither_is(
    metastore: MetastoreService, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = new_database(metastore)
    monkeypatch.setattr(Audit, "failing", frozenset({EventType.CREATE_TABLE.value}))
    with pytest.raises(MetaError, match=f"transactional hook {HERE}:Audit failed, so CREATE_TABLE"):
        metastore.create_table(acid_table(name))
    assert metastore.get_tables(name) == ()
    assert audited(url) == [("1", "CREATE_DATABASE")]
    assert len(events_after(metastore, 0)) == 1


def test_a_deadlock_of_a_transactional_hook_is_tried_again(
    metastore: MetastoreService, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Audit, "deadlocks", [EventType.CREATE_DATABASE.value] * 2)
    new_database(metastore)
    assert audited(url) == [("1", "CREATE_DATABASE")]


def test_a_failure_that_a_transactional_hook_catches_undoes_all_the_same(
    metastore: MetastoreService, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL answers COMMIT without an error, and has rolled back: the client was told that
    there is a table."""
    name = new_database(metastore)
    monkeypatch.setattr(Audit, "swallowed", frozenset({EventType.CREATE_TABLE.value}))
    with pytest.raises(BackendError, match="such a row is there already"):
        metastore.create_table(acid_table(name))
    assert metastore.get_tables(name) == ()
    assert audited(url) == [("1", "CREATE_DATABASE")]
    assert len(events_after(metastore, 0)) == 1


def test_another_failure_of_its_statements_names_the_hook_and_not_the_database(
    metastore: MetastoreService, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    database = open_database(url)
    with database.transaction(write=True) as connection:
        AUDIT.drop(connection)
    database.close()
    failed = f"transactional hook {HERE}:Audit: a statement of it failed"
    with pytest.raises(MetaError, match="AUDIT.*nothing was changed") as refused:
        new_database(metastore)
    assert str(refused.value).startswith(f"{failed}, so CREATE_DATABASE is refused: the database: ")
    assert "://" not in str(refused.value), "where the database is concerns no client"
    assert f"{failed} on CREATE_DATABASE" in caplog.text
    assert metastore.get_databases() == ("default",)


def work_of_a_day(metastore: MetastoreService) -> None:
    """Every way to log: catalog, transactions, a compaction."""
    name = new_database(metastore)
    table = new_table(metastore, name)
    commit(metastore, open_txn(metastore))
    target = Target(name, table.name)
    metastore.compact(CompactionRequest(target=target, type=CompactionType.MAJOR))
    assert metastore.find_next_compaction("worker", None) is not None


def test_who_is_asked_but_hears_of_nothing_leaves_no_points(tmp_path: Path) -> None:
    url = fresh_url(tmp_path)
    settings = Settings(
        warehouse=str(tmp_path / "w"), events=EventSettings(pre_listeners=(f"{HERE}:Guard",))
    )
    metastore = open_local_metastore(url, settings=settings)
    work_of_a_day(metastore)
    metastore.close()
    assert any(asked.startswith("REQUEST_COMPACTION") for asked in Guard.asked), Guard.asked
    database = open_database(url)
    with database.transaction(write=False) as connection:
        points = connection.execute(select(HMSB_HOOK_POINT)).all()
    database.close()
    assert points == []


def test_a_server_without_hooks_does_nothing_for_them(tmp_path: Path) -> None:
    """Not one statement of a verb, or of the housekeeping, is for a hook."""
    metastore = open_local_metastore(
        fresh_url(tmp_path), settings=Settings(warehouse=str(tmp_path / "w"))
    )
    statements: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_rest: object) -> None:
        statements.append(statement)

    event.listen(Engine, "before_cursor_execute", note)
    try:
        work_of_a_day(metastore)
        of_work = len(statements)
        metastore.run_housekeeping()
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    metastore.close()
    assert len(statements) > 50
    assert [text for text in statements[:of_work] if "HOOK" in text] == []
    (look,) = (text for text in statements if "HOOK" in text)
    assert look.startswith("SELECT"), "the housekeeping looks for those that came meanwhile"


def test_points_are_told_inside_of_their_transaction_too(
    metastore: MetastoreService, url: str
) -> None:
    work_of_a_day(metastore)
    database = open_database(url)
    with database.transaction(write=False) as connection:
        (point,) = connection.execute(select(HMSB_HOOK_POINT)).all()
        types = connection.scalars(select(AUDIT.c.TYPE)).all()
    database.close()
    assert point.POINT_TYPE == "START_COMPACTION"
    assert "START_COMPACTION" in types


@pytest.mark.parametrize("fault", [ValueError, SystemExit])
def test_a_hook_that_fails_for_ever_does_not_stop_the_housekeeping(
    metastore: MetastoreService,
    url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fault: type[BaseException],
) -> None:
    """That a transaction times out is not done, as the hook refuses it; all else is."""
    impatient = Settings(
        warehouse=str(tmp_path / "warehouse"),
        txn=TxnSettings(timeout_ms=1),
        events=EventSettings(
            transactional_listeners=(f"{HERE}:Audit",),
            ttl_with_archive_ms=1,
            ttl_without_archive_ms=1,
        ),
    )
    name = new_database(metastore)
    txn = open_txn(metastore)
    scope = Scope(name, "t")
    component = LockComponent(type=LockType.SHARED_READ, level=LockLevel.TABLE, scope=scope)
    request = LockRequest(components=(component,), user="u", host="h")
    metastore.lock(request)
    monkeypatch.setattr(Audit, "failing", frozenset({"ABORT_TXN"}))
    monkeypatch.setattr(Audit, "fault", fault)
    housekeeper = open_local_metastore(url, settings=impatient)
    time.sleep(1.1)  # events have the time in seconds
    with pytest.raises(MetaError, match="no ink"):
        housekeeper.run_housekeeping()
    housekeeper.close()
    assert [info.id for info in metastore.get_open_txns_info()] == [txn]
    assert metastore.show_locks() == ()
    assert events_after(metastore, 0) == ()
