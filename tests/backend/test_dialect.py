from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import delete, insert, select, update
from sqlalchemy.dialects import mysql

from hms_bridge.backend import dialect, sequences
from hms_bridge.backend.engine import Database
from hms_bridge.backend.savepoints import impatient
from hms_bridge.backend.schema.txn_tables import (
    AUX_TABLE,
    NEXT_LOCK_ID,
    NEXT_WRITE_ID,
    SEQUENCE_TABLE,
    TXN_COMPONENTS,
    TXNS,
)
from hms_bridge.backend.txn_lock import lock_txns
from hms_bridge.backend.work import Work
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import Settings
from hms_bridge.errors import BackendError, RetryableBackendError
from tests.support.databases import ON_A_SERVER
from tests.support.simulated_clock import SimulatedClock

ROW = {
    "TXN_STATE": "o",
    "TXN_STARTED": 1,
    "TXN_LAST_HEARTBEAT": 1,
    "TXN_USER": "u",
    "TXN_HOST": "h",
}


def _ids(database: Database, count: int) -> tuple[int, ...]:
    with database.transaction(write=True) as connection:
        return dialect.insert_generating_ids(connection, TXNS, TXNS.c.TXN_ID, [ROW] * count)


def test_generated_ids_ascend_and_are_never_given_again(database: Database) -> None:
    assert _ids(database, 1) == (1,)
    assert _ids(database, 3) == (2, 3, 4)
    assert _ids(database, 0) == ()
    with database.transaction(write=True) as connection:
        connection.execute(delete(TXNS).where(TXNS.c.TXN_ID > 1))
    assert _ids(database, 2) == (5, 6)


def test_many_generated_ids(database: Database) -> None:
    ids = _ids(database, 2500)
    assert len(set(ids)) == 2500
    assert list(ids) == sorted(ids)


def test_advancing_generated_ids(database: Database) -> None:
    _ids(database, 2)
    with database.transaction(write=True) as connection:
        connection.execute(insert(TXNS).values(ROW | {"TXN_ID": 49, "TXN_STATE": "c"}))
        assert dialect.advance_generated_txn_id(connection, 50)
    assert _ids(database, 2) == (50, 51)


def test_time(database: Database) -> None:
    system, simulated = SystemClock(), SimulatedClock(77)
    with database.transaction(write=True) as connection:
        assert Work(connection, simulated, Settings()).now_ms == 77
        of_database = Work(connection, system, Settings()).now_ms
        assert abs(of_database - system.now_ms()) < 60_000
        connection.execute(insert(TXNS).values(ROW | {"TXN_ID": 5}))
        for clock, expected in ((simulated, 77), (system, system.now_ms())):
            now = dialect.now_expression(connection, clock)
            connection.execute(update(TXNS).values(TXN_STARTED=now))
            stored = connection.execute(select(TXNS.c.TXN_STARTED)).scalars().all()
            assert len(set(stored)) == 1
            assert abs(stored[0] - expected) < 60_000


def test_insert_if_missing(database: Database) -> None:
    keys = (AUX_TABLE.c.MT_KEY1, AUX_TABLE.c.MT_KEY2)

    def put(comment: str, number: int = 1) -> bool:
        row = {"MT_KEY1": "k", "MT_KEY2": number, "MT_COMMENT": comment}
        with database.transaction(write=True) as connection:
            return dialect.insert_if_missing(connection, AUX_TABLE, keys, row)

    assert put("first")
    assert not put("second")
    assert not put("first")
    assert put("other", 2)
    with database.transaction(write=False) as connection:
        comments = connection.execute(select(AUX_TABLE.c.MT_COMMENT)).scalars().all()
    assert sorted(comments) == ["first", "other"]


def test_insert_or_update(database: Database) -> None:
    keys = (NEXT_WRITE_ID.c.NWI_DATABASE, NEXT_WRITE_ID.c.NWI_TABLE)

    def put(*rows: tuple[str, int]) -> None:
        values = [
            {"NWI_DATABASE": "d", "NWI_TABLE": table, "NWI_NEXT": number} for table, number in rows
        ]
        with database.transaction(write=True) as connection:
            dialect.insert_or_update(connection, NEXT_WRITE_ID, keys, values)

    put(("a", 1), ("b", 2))
    put(("b", 3), ("c", 4))
    put()
    with database.transaction(write=False) as connection:
        rows = connection.execute(select(NEXT_WRITE_ID.c.NWI_TABLE, NEXT_WRITE_ID.c.NWI_NEXT))
        assert dict(map(tuple, rows)) == {"a": 1, "b": 3, "c": 4}


@pytest.mark.parametrize(("value", "found"), [(None, [1]), ("p", [2]), ("q", [])])
def test_null_safe_equality(database: Database, value: str | None, found: list[int]) -> None:
    ids = _ids(database, 2)
    with database.transaction(write=True) as connection:
        for txn_id, partition in zip(ids, (None, "p"), strict=True):
            row: dict[str, Any] = {"TC_TXNID": txn_id, "TC_DATABASE": "d", "TC_TABLE": "t"}
            more = {"TC_PARTITION": partition, "TC_OPERATION_TYPE": "i"}
            connection.execute(insert(TXN_COMPONENTS).values(row | more))
        same = dialect.null_safe_equals(TXN_COMPONENTS.c.TC_PARTITION, value)
        assert connection.execute(
            select(TXN_COMPONENTS.c.TC_TXNID).where(same)
        ).scalars().all() == (found)


@ON_A_SERVER
@pytest.mark.parametrize("is_held_alone", [False, True])
@pytest.mark.parametrize("is_wanted_alone", [False, True])
def test_openers_share_their_lock_and_who_wants_it_alone_waits(
    database: Database, is_held_alone: bool, is_wanted_alone: bool
) -> None:
    def ask() -> None:
        with database.transaction(write=True) as other, impatient(other, 100):
            lock_txns(other, is_exclusive=is_wanted_alone)
            other.execute(select(1))

    with database.transaction(write=True) as connection:
        lock_txns(connection, is_exclusive=is_held_alone)
        connection.execute(select(1))
        if is_held_alone or is_wanted_alone:
            with pytest.raises(RetryableBackendError):
                ask()
        else:
            ask()
    ask()


def test_counters(database: Database) -> None:
    with database.transaction(write=True) as connection:
        work = Work(connection, SimulatedClock(), Settings())
        assert [sequences.ask_lock_ids(work)()[0] for _ in range(3)] == [1, 2, 3]
        assert sequences.ask_lock_ids(work)()[1] == work.now_ms
        assert [sequences.next_compaction_id(connection) for _ in range(2)] == [1, 2]
        assert sequences.next_event_ids(connection, 5) == 1
        assert sequences.next_event_ids(connection, 1) == 6
        assert sequences.next_sequence_values(connection, "a", 3) == 1
        assert sequences.next_sequence_values(connection, "b", 1) == 1
        assert sequences.next_sequence_values(connection, "a", 1) == 4


def test_counters_that_roll_back_leave_no_gap(database: Database) -> None:
    with pytest.raises(BackendError), database.transaction(write=True) as connection:
        sequences.next_event_ids(connection, 5)
        raise BackendError("lost")
    with database.transaction(write=True) as connection:
        assert sequences.next_event_ids(connection, 1) == 1


def test_a_value_that_another_wrote_counts(database: Database) -> None:
    with database.transaction(write=True) as connection:
        connection.execute(insert(SEQUENCE_TABLE).values(SEQUENCE_NAME="x", NEXT_VAL=40))
        assert sequences.next_sequence_values(connection, "x", 2) == 40
        assert (
            connection.execute(
                select(SEQUENCE_TABLE.c.NEXT_VAL).where(SEQUENCE_TABLE.c.SEQUENCE_NAME == "x")
            ).scalar()
            == 42
        )


def test_a_schema_without_its_rows_says_what_to_do(database: Database) -> None:
    with (
        pytest.raises(BackendError, match="run 'hms-bridge schema init'"),
        database.transaction(write=True) as connection,
    ):
        connection.execute(delete(NEXT_LOCK_ID))
        sequences.ask_lock_ids(Work(connection, SystemClock(), Settings()))()


def test_a_row_of_mysql_is_made_at_a_time_in_milliseconds() -> None:
    """A whole second before would make a transaction look a second older than it is: as long as
    those are waited for that drew an earlier id and are not visible yet."""
    server: Any = SimpleNamespace(dialect=mysql.dialect())
    row_time = dialect.row_time_expression(server, SystemClock())
    assert "SYSDATE(3)" in str(row_time.compile(dialect=server.dialect))
