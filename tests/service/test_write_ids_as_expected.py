"""Write ids that are given with their event and the commit, as it is known which come next: one
message to PostgreSQL, and the same outcome as without, whatever others did meanwhile."""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, update

from hms_bridge.backend.schema.txn_tables import (
    NEXT_WRITE_ID,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
)
from hms_bridge.errors import MetaError
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.properties import TARGET_FOR
from hms_bridge.model.txn import TxnType
from hms_bridge.repl.format.stored_message import message_json
from hms_bridge.repl.target_objects import FENCED
from hms_bridge.service.metastore_service import MetastoreService
from tests.conformance import objects
from tests.conformance.objects import abort, commit, events_after, open_txn, write_id
from tests.support.crowd import Crowd, wait_until
from tests.support.databases import ON_POSTGRESQL
from tests.support.one_database import Side, is_waited_for

pytestmark = ON_POSTGRESQL


@pytest.fixture
def written(side: Side, table: str) -> str:
    """The database of a table that has been written to."""
    txn = side(open_txn)
    assert side(write_id, txn, table) == 1
    side(commit, txn)
    return table


def given(side: Side, database: str) -> list[tuple[int, int]]:
    """Transactions and their write ids, with the next one at the end."""
    columns = TXN_TO_WRITE_ID.c
    pairs = select(columns.T2W_TXNID, columns.T2W_WRITEID).where(database == columns.T2W_DATABASE)
    following = select(NEXT_WRITE_ID.c.NWI_NEXT).where(database == NEXT_WRITE_ID.c.NWI_DATABASE)
    with side.metastore._transactions.database.transaction(write=False) as connection:
        rows = connection.execute(pairs.order_by(columns.T2W_WRITEID)).all()
        return [*((txn, number) for txn, number in rows), (0, connection.scalar(following))]


def told(side: Side, after: int) -> Sequence[tuple[list[int], list[int]]]:
    """Transactions and write ids of ALLOC_WRITE_ID."""
    events = events_after(side.metastore, after)
    messages = [json.loads(message_json(e)) for e in events if "ALLOC" in e.type]
    return [(message["txnIdList"], message["writeIdList"]) for message in messages]


def test_a_write_id_takes_one_message(side: Side, written: str, messages: list[int]) -> None:
    known = side.metastore.get_current_event_id()
    txn = side(open_txn)
    messages.clear()
    assert side(write_id, txn, written.upper()) == 2
    assert len(messages) == 1
    assert given(side, written)[1:] == [(txn, 2), (0, 3)]
    assert told(side, known) == [([txn], [2])]


def test_a_crowd_gets_its_own_in_one_message(side: Side, written: str, messages: list[int]) -> None:
    crowd = Crowd(side.metastore)
    txns = [side(open_txn) for _ in range(3)]
    known = side.metastore.get_current_event_id()
    messages.clear()
    outcomes = crowd.together(
        *(lambda txn=txn: write_id(side.metastore, txn, written) for txn in reversed(txns))  # type: ignore[misc]
    )
    assert len(messages) == 1
    assert outcomes == [4, 3, 2]
    pairs = list(zip(txns, (2, 3, 4), strict=True))
    assert given(side, written)[1:] == [*pairs, (0, 5)]
    assert told(side, known) == [([txn], [number]) for txn, number in pairs]


def test_where_another_server_writes_between_ids_are_right_and_none_is_lost(
    side: Side, other: Side, written: str
) -> None:
    known = side.metastore.get_current_event_id()
    pairs = []
    for _ in range(6):
        for end in (side, other, other):
            txn = end(open_txn)
            pairs.append((txn, end(write_id, txn, written)))
    assert [number for _, number in pairs] == [*range(2, 20)]
    assert given(side, written)[1:] == [*pairs, (0, 20)]
    assert told(side, known) == [([txn], [number]) for txn, number in pairs]


def test_one_that_has_a_write_id_keeps_it(side: Side, other: Side, written: str) -> None:
    txn, next_one = side(open_txn), side(open_txn)
    theirs = other(write_id, txn, written)
    following = other(write_id, other(open_txn), written)
    side(write_id, next_one, written)
    known = side.metastore.get_current_event_id()
    assert side(write_id, txn, written) == theirs
    assert told(side, known) == []
    assert len(given(side, written)) == 5
    assert following == theirs + 1


def test_in_a_crowd_too(side: Side, written: str) -> None:
    crowd = Crowd(side.metastore)
    txn, next_one = side(open_txn), side(open_txn)
    mine = side(write_id, txn, written)
    outcomes = crowd.together(
        lambda: write_id(side.metastore, txn, written),
        lambda: write_id(side.metastore, next_one, written),
    )
    assert outcomes == [mine, mine + 1]


@pytest.mark.parametrize("end", [commit, abort])
def test_one_that_another_server_has_ended_gets_none(
    side: Side, other: Side, written: str, end: Any
) -> None:
    crowd = Crowd(side.metastore)
    ended, alive = side(open_txn), side(open_txn)
    other(end, ended)
    before = given(side, written)
    with pytest.raises(MetaError, match=f"txnid:{ended}"):
        side(write_id, ended, written)
    assert given(side, written) == before
    side(write_id, side(open_txn), written)
    refused, number = crowd.together(
        lambda: write_id(side.metastore, ended, written),
        lambda: write_id(side.metastore, alive, written),
    )
    assert isinstance(refused, MetaError)
    assert number == 3


def test_one_that_reads_gets_none(side: Side, written: str) -> None:
    txn = side(open_txn, TxnType.READ_ONLY)
    with pytest.raises(MetaError, match="read only"):
        side(write_id, txn, written)


def test_one_that_ends_while_its_row_is_waited_for_gets_none(side: Side, written: str) -> None:
    txn = side(open_txn)
    before = given(side, written)
    database = side.metastore._transactions.database
    with ThreadPoolExecutor(1) as pool:
        with database.transaction(write=True) as connection:
            ended = update(TXNS).where(txn == TXNS.c.TXN_ID).values(TXN_STATE="a")
            connection.execute(ended)
            asked = pool.submit(side, write_id, txn, written)
            wait_until(lambda: is_waited_for(connection))
        with pytest.raises(MetaError):
            asked.result()
    assert given(side, written) == before


def test_an_id_is_given_that_nobody_took_while_the_counter_was_waited_for(
    side: Side, written: str
) -> None:
    txn = side(open_txn)
    database = side.metastore._transactions.database
    with ThreadPoolExecutor(1) as pool:
        with database.transaction(write=True) as connection:
            here = written == NEXT_WRITE_ID.c.NWI_DATABASE
            connection.execute(update(NEXT_WRITE_ID).where(here).values(NWI_NEXT=7))
            asked = pool.submit(side, write_id, txn, written)
            wait_until(lambda: is_waited_for(connection))
        assert asked.result() == 7
    assert given(side, written)[1:] == [(txn, 7), (0, 8)]


@pytest.mark.parametrize("mark", [TARGET_FOR, FENCED])
def test_a_database_that_has_become_a_replica_gives_none(
    side: Side, other: Side, written: str, mark: str
) -> None:
    txn = side(open_txn)
    other(mark_database, written, mark)
    before = given(side, written)
    with pytest.raises(MetaError, match="no write id of t"):
        side(write_id, txn, written)
    assert given(side, written) == before


def mark_database(metastore: MetastoreService, name: str, mark: str) -> None:
    database = metastore.get_database(name)
    marked = {**database.parameters, mark: "true"}
    metastore.alter_database(name, replace(database, parameters=marked))


def test_locks_that_came_first_learn_of_it(side: Side, written: str) -> None:
    txn = side(open_txn)
    part = objects.component(written, "t", LockType.SHARED_WRITE, DataOperation.INSERT)
    side(lambda metastore: metastore.lock(objects.request(part, txn=txn)))
    assert side(write_id, txn, written) == 2
    columns = TXN_COMPONENTS.c
    with side.metastore._transactions.database.transaction(write=False) as connection:
        rows = connection.execute(select(columns.TC_TXNID, columns.TC_WRITEID)).all()
    assert [*rows] == [(txn, 2)]


def test_a_table_that_was_made_anew_begins_with_its_first(
    side: Side, other: Side, written: str
) -> None:
    other(lambda metastore: metastore.drop_table(written, "t"))
    other(objects.new_table, written)
    txn = TxnId(side(open_txn))
    number = side(write_id, txn, written)
    side(commit, txn)
    assert [pair for pair in given(side, written) if pair[0] >= txn] == [(txn, number)]
    assert given(side, written)[-1] == (0, number + 1)
