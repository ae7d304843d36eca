"""The event log: order without gaps (I8), texts, purge."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Connection, Table, delete, insert, select

from hms_bridge.backend.engine import open_database
from hms_bridge.backend.schema.install import install
from hms_bridge.backend.schema.notification_tables import (
    NOTIFICATION_LOG,
    NOTIFICATION_SEQUENCE,
    TXN_WRITE_NOTIFICATION_LOG,
)
from hms_bridge.backend.schema.txn_tables import SEQUENCE_TABLE
from hms_bridge.model.event import EventType, NotificationEvent, NotificationRequest
from hms_bridge.model.ids import EventId
from hms_bridge.notification import event_log
from hms_bridge.notification.events import EventDraft, txns_opened
from hms_bridge.notification.message_text import MessageFormat, write_text
from tests.support.event_messages import read_message

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[Connection]:
    database = open_database(f"sqlite:///{tmp_path}/metastore.db")
    install(database)
    with database.transaction(write=True) as opened:
        yield opened
    database.close()


def draft(table: str) -> EventDraft:
    return EventDraft(
        type=EventType.CREATE_TABLE, catalog_name="hive", database_name="db", table_name=table,
        message={"table": table},
    )  # fmt: skip


def append(connection: Connection, *names: str, at: int = 1000) -> tuple[NotificationEvent, ...]:
    return event_log.append(
        connection,
        [draft(name) for name in names],
        now_seconds=at,
        message_format=MessageFormat.ZIPPED_JSON,
    ).events


def after(connection: Connection, last: int) -> list[int]:
    wanted = NotificationRequest(last_event_id=EventId(last))
    return [event.id for event in event_log.read(connection, wanted)]


@given(st.dictionaries(st.text(), JSON_VALUES), st.sampled_from(MessageFormat))
def test_a_message_comes_back(message: dict, message_format: MessageFormat) -> None:
    event = NotificationEvent(
        id=EventId(1), time_seconds=1, type="X", message=write_text(message, message_format),
        message_format=message_format.value,
    )  # fmt: skip
    assert read_message(event) == message


def test_the_same_message_has_the_same_text() -> None:
    texts = {write_text({"a": 1}, MessageFormat.ZIPPED_JSON) for _ in range(3)}
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("lost", "numbers"),
    [(NOTIFICATION_SEQUENCE, [(2, 1), (3, 2)]), (SEQUENCE_TABLE, [(1, 2), (2, 3)])],
    ids=lambda value: getattr(value, "name", None),
)
def test_a_counter_that_is_not_there_is_made(
    connection: Connection, lost: Table, numbers: list[tuple[int, int]]
) -> None:
    append(connection, "a")
    connection.execute(delete(NOTIFICATION_LOG))
    connection.execute(delete(lost))
    append(connection, "b")
    append(connection, "c")
    log = NOTIFICATION_LOG.c
    rows = connection.execute(select(log.NL_ID, log.EVENT_ID).order_by(log.NL_ID)).all()
    assert list(map(tuple, rows)) == numbers


def test_events_are_numbered_from_one(connection: Connection) -> None:
    assert event_log.current_event_id(connection) == 0
    assert [event.id for event in append(connection, "a", "b")] == [1, 2]
    assert [event.id for event in append(connection, "c")] == [3]
    assert append(connection) == ()
    assert event_log.current_event_id(connection) == 3
    assert after(connection, 1) == [2, 3]


def test_a_stored_event_is_the_appended_one(connection: Connection) -> None:
    (made,) = append(connection, "ü中")
    (found,) = event_log.read(connection, NotificationRequest(last_event_id=EventId(0)))
    assert found == made
    assert read_message(found) == {"table": "ü中"}


def test_old_events_go_in_batches_and_ids_go_on(connection: Connection) -> None:
    append(connection, *"abcde", at=1000)
    append(connection, "f", at=2000)
    assert event_log.purge(connection, 1000, 2000) == 0
    assert event_log.purge(connection, 1500, 2000, limit=3) == 3
    assert after(connection, 0) == [4, 5, 6]
    assert event_log.purge(connection, 1500, 2000, limit=3) == 2
    assert event_log.purge(connection, 1500, 2000, limit=3) == 0
    assert after(connection, 0) == [6]
    assert [event.id for event in append(connection, "g")] == [7]


def test_a_purge_makes_no_hole(connection: Connection) -> None:
    """An old row behind young ones, of a clock that was set back, waits for them."""
    append(connection, "a", at=1000)
    append(connection, *"bc", at=2000)
    append(connection, "d", at=1000)
    assert event_log.purge(connection, 1500, 2000) == 1
    assert event_log.purge(connection, 1500, 2000) == 0
    assert after(connection, 0) == [2, 3, 4]


def test_a_time_that_is_yet_to_come_keeps_nothing(connection: Connection) -> None:
    append(connection, *"ab", at=9000)
    append(connection, "c", at=1000)
    append(connection, "d", at=9000)
    assert event_log.purge(connection, 1500, 2000, limit=2) == 0
    assert event_log.purge(connection, 1500, 2000) == 3
    assert event_log.purge(connection, 1500, 2000) == 0
    assert after(connection, 0) == [4]


def test_the_write_log_is_purged_in_batches_too(connection: Connection) -> None:
    for txn_id in range(1, 6):
        row = {
            "WNL_ID": txn_id,
            "WNL_TXNID": txn_id,
            "WNL_WRITEID": 1,
            "WNL_DATABASE": "d",
            "WNL_TABLE": "t",
            "WNL_PARTITION": "",
            "WNL_TABLE_OBJ": "{}",
            "WNL_EVENT_TIME": 1000 if txn_id < 5 else 2000,
        }
        connection.execute(insert(TXN_WRITE_NOTIFICATION_LOG).values(row))
    assert [event_log.purge(connection, 1500, 2000, limit=3) for _ in range(3)] == [3, 1, 0]


def test_the_limit_counts_what_is_wanted(connection: Connection) -> None:
    append(connection, *"abcd")
    request = NotificationRequest(last_event_id=EventId(0), table_names=("b", "d"), max_events=1)
    assert [event.id for event in event_log.read(connection, request)] == [2]
    everything = replace(request, max_events=0)
    assert [event.id for event in event_log.read(connection, everything)] == [2, 4]


def test_opened_transactions_are_a_range_or_a_list() -> None:
    whole = txns_opened([3, 4, 5], 1).message  # type: ignore[list-item]
    assert (whole["fromTxnId"], whole["toTxnId"], whole["txnIds"]) == (3, 5, None)
    parts = txns_opened([3, 5], 1).message  # type: ignore[list-item]
    assert (parts["fromTxnId"], parts["toTxnId"], parts["txnIds"]) == (None, None, [3, 5])


@pytest.mark.parametrize("left_out", [None, ""])
def test_what_hive_left_out_of_an_event_is_its_default(
    connection: Connection, left_out: str | None
) -> None:
    row = {"NL_ID": 1, "EVENT_ID": 7, "EVENT_TIME": 5, "EVENT_TYPE": "X"}
    given = {"MESSAGE": left_out, "MESSAGE_FORMAT": left_out}
    connection.execute(insert(NOTIFICATION_LOG), row | given)
    for wanted in (
        NotificationRequest(last_event_id=EventId(6), max_events=1),
        NotificationRequest(last_event_id=EventId(6), types=frozenset({"X"})),
    ):
        (event,) = event_log.read(connection, wanted)
        assert event == NotificationEvent(
            id=EventId(7), time_seconds=5, type="X", catalog_name=None, message=""
        )
        assert event.message_format == "json-0.2"
