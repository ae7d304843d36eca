"""Locks that nothing is in the way of: one message to PostgreSQL, and the same outcome as without,
whatever others did meanwhile."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import func, insert, select, update

from hms_bridge.backend.schema.txn_tables import HIVE_LOCKS, NEXT_LOCK_ID, TXN_COMPONENTS, TXNS
from hms_bridge.errors import NoSuchTxnError, TxnAbortedError
from hms_bridge.model.ids import NO_TXN, TxnId
from hms_bridge.model.lock import DataOperation, LockRequest, LockResponse, LockState, LockType
from hms_bridge.service.metastore_service import MetastoreService
from tests.conformance import objects
from tests.conformance.objects import abort, commit, open_txn, write_id
from tests.support.crowd import Crowd, wait_until
from tests.support.databases import ON_POSTGRESQL
from tests.support.one_database import Side, is_waited_for
from tests.txn.test_lock_matrix import PLACES, ROWS, SCOPES

pytestmark = ON_POSTGRESQL
READ, WRITE = LockType.SHARED_READ, LockType.SHARED_WRITE
EXCL_WRITE, EXCLUSIVE = LockType.EXCL_WRITE, LockType.EXCLUSIVE
ACQUIRED, WAITING = LockState.ACQUIRED, LockState.WAITING


def wanted(
    txn: TxnId,
    database: str,
    kind: LockType = WRITE,
    *,
    name: str | None = "t",
    partition: str | None = None,
    operation: DataOperation = DataOperation.INSERT,
) -> LockRequest:
    part = objects.component(database, name, kind, operation, partition)
    return objects.request(part, txn=txn, agent="a")


def lock(metastore: MetastoreService, txn: TxnId, *given: Any, **named: Any) -> LockResponse:
    return metastore.lock(wanted(txn, *given, **named))


def rows(side: Side, *columns: Any) -> list[Any]:
    with side.metastore._transactions.database.transaction(write=False) as connection:
        return list(connection.execute(select(*columns).order_by(*columns)))


@pytest.fixture
def locked(side: Side, table: str) -> str:
    """The database of a table whose last locks were granted."""
    for kind in (READ, WRITE):
        txn = side(open_txn)
        assert side(lock, txn, table, kind).state is ACQUIRED
        side(commit, txn)
    return table


@pytest.mark.parametrize("kind", [READ, WRITE])
def test_a_lock_takes_one_message(
    side: Side, locked: str, messages: list[int], kind: LockType
) -> None:
    txn = side(open_txn)
    messages.clear()
    first = side(lock, txn, locked, kind)
    assert len(messages) == 1
    second = side(lock, txn, locked, kind, partition="ds=1")
    assert len(messages) == 2
    assert (first.state, second.state) == (ACQUIRED, ACQUIRED)
    stored = rows(side, HIVE_LOCKS.c.HL_LOCK_EXT_ID, HIVE_LOCKS.c.HL_PARTITION)
    assert stored == [(first.lock_id, None), (second.lock_id, "ds=1")]


def test_rows_are_those_of_a_server_that_expects_nothing(
    side: Side, other: Side, locked: str
) -> None:
    mine, theirs = side(open_txn), other(open_txn)
    for end, txn in ((side, mine), (other, theirs)):
        end(write_id, txn, locked)
        end(lock, txn, locked, partition="ds=1")
        end(lock, txn, locked, READ, operation=DataOperation.SELECT)
    times = {"HL_ACQUIRED_AT", "HL_LOCK_EXT_ID", "HL_TXNID"}
    columns = [column for column in HIVE_LOCKS.c if column.name not in times]
    stored = {txn: stored_of(side, txn, *columns) for txn in (mine, theirs)}
    assert stored[mine] == stored[theirs]
    written = (TXN_COMPONENTS.c.TC_PARTITION, TXN_COMPONENTS.c.TC_OPERATION_TYPE)
    told = rows(side, TXN_COMPONENTS.c.TC_TXNID, *written)
    assert told == [(txn, "ds=1", "i") for txn in (mine, theirs)]
    ((between,),) = rows(
        side, func.max(HIVE_LOCKS.c.HL_ACQUIRED_AT) - func.min(HIVE_LOCKS.c.HL_ACQUIRED_AT)
    )
    assert between < 600_000


def stored_of(side: Side, txn: TxnId, *columns: Any) -> list[Any]:
    with side.metastore._transactions.database.transaction(write=False) as connection:
        mine = select(*columns).where(txn == HIVE_LOCKS.c.HL_TXNID)
        return list(connection.execute(mine.order_by(HIVE_LOCKS.c.HL_LOCK_EXT_ID)))


def test_a_crowd_is_granted_in_one_message(side: Side, locked: str, messages: list[int]) -> None:
    crowd = Crowd(side.metastore)
    txns = [side(open_txn) for _ in range(4)]
    kinds = (WRITE, READ, WRITE, READ)
    messages.clear()
    responses: Any = crowd.together(
        *(
            lambda txn=txn, kind=kind: lock(side.metastore, txn, locked, kind)  # type: ignore[misc]
            for txn, kind in zip(txns, kinds, strict=True)
        )
    )
    assert len(messages) == 1
    assert {response.state for response in responses} == {ACQUIRED}
    ids = [response.lock_id for response in responses]
    assert ids == [*range(ids[0], ids[0] + 4)]
    of_txns = (HIVE_LOCKS.c.HL_LOCK_EXT_ID, HIVE_LOCKS.c.HL_TXNID, HIVE_LOCKS.c.HL_LOCK_TYPE)
    assert rows(side, *of_txns) == [
        (number, txn, kind.stored) for number, txn, kind in zip(ids, txns, kinds, strict=True)
    ]


@pytest.mark.parametrize(
    ("held", "asked", "name", "state"),
    [
        (EXCLUSIVE, READ, "t", WAITING),
        (EXCLUSIVE, WRITE, "t", WAITING),
        (EXCLUSIVE, WRITE, None, WAITING),
        (EXCL_WRITE, WRITE, "t", WAITING),
        (EXCL_WRITE, READ, "t", ACQUIRED),
        (EXCLUSIVE, WRITE, "u", ACQUIRED),
    ],
)
def test_what_another_server_locked_is_in_the_way(
    side: Side,
    other: Side,
    locked: str,
    held: LockType,
    asked: LockType,
    name: str,
    state: LockState,
) -> None:
    theirs, mine = other(open_txn), side(open_txn)
    other(lock, theirs, locked, held, name=name)
    response = side(lock, mine, locked, asked)
    assert response.state is state
    other(commit, theirs)
    assert side.metastore.check_lock(response.lock_id).state is ACQUIRED


@pytest.mark.parametrize("held", [EXCL_WRITE, EXCLUSIVE])
def test_so_it_is_in_the_way_of_a_crowd(
    side: Side, other: Side, locked: str, held: LockType
) -> None:
    crowd = Crowd(side.metastore)
    theirs = other(open_txn)
    other(lock, theirs, locked, held)
    txns = [side(open_txn) for _ in range(2)]
    responses: Any = crowd.together(
        *(lambda txn=txn: lock(side.metastore, txn, locked) for txn in txns)  # type: ignore[misc]
    )
    assert [response.state for response in responses] == [WAITING, WAITING]


def test_its_own_lock_is_in_nobodys_way_but_others(
    side: Side, other: Side, locked: str, messages: list[int]
) -> None:
    mine, next_one = side(open_txn), side(open_txn)
    other(lock, mine, locked, EXCLUSIVE)
    messages.clear()
    assert side(lock, mine, locked).state is ACQUIRED
    assert len(messages) == 1
    assert side(lock, next_one, locked).state is WAITING


def test_in_a_crowd_too(side: Side, other: Side, locked: str) -> None:
    crowd = Crowd(side.metastore)
    mine, next_one = side(open_txn), side(open_txn)
    other(lock, mine, locked, EXCLUSIVE)
    responses: Any = crowd.together(
        lambda: lock(side.metastore, mine, locked), lambda: lock(side.metastore, next_one, locked)
    )
    assert [response.state for response in responses] == [ACQUIRED, WAITING]


@pytest.fixture
def rash(side: Side, monkeypatch: pytest.MonkeyPatch) -> None:
    """It expects every lock to be granted."""
    foresight = side.metastore._transactions.foresight
    monkeypatch.setattr(foresight, "is_free", lambda *_: True)


@pytest.mark.golden
@pytest.mark.usefixtures("rash")
@pytest.mark.parametrize("scope", SCOPES)
def test_second_lock_as_in_hive(side: Side, other: Side, scope: str) -> None:
    held_place, requested_place = scope.split("/")
    for row in (row for row in ROWS if row["scope"] == scope):
        first, second = other(open_txn), side(open_txn)
        places = ((held_place, row["held"]), (requested_place, row["requested"]))
        held, requested = (
            {"kind": LockType[kind], "name": PLACES[place][0], "partition": PLACES[place][1]}
            for place, kind in places
        )
        assert other(lock, first, "lmx", **held).state is ACQUIRED
        assert side(lock, second, "lmx", **requested).state.name == row["state"], row
        for txn in (first, second):
            other(abort, txn)


@pytest.mark.usefixtures("rash")
def test_locks_of_a_crowd_are_in_each_others_way(side: Side, table: str) -> None:
    crowd = Crowd(side.metastore)
    kinds = (WRITE, EXCL_WRITE, READ, EXCLUSIVE, READ)
    txns = [side(open_txn) for _ in kinds]
    responses: Any = crowd.together(
        *(
            lambda txn=txn, kind=kind: lock(side.metastore, txn, table, kind)  # type: ignore[misc]
            for txn, kind in zip(txns, kinds, strict=True)
        )
    )
    states = [ACQUIRED, WAITING, ACQUIRED, WAITING, WAITING]
    assert [response.state for response in responses] == states


def test_locks_of_other_databases_are_in_nobodys_way(
    side: Side, other: Side, locked: str, messages: list[int]
) -> None:
    theirs, mine = other(open_txn), side(open_txn)
    other(lock, theirs, f"{locked}_2", EXCLUSIVE)
    messages.clear()
    assert side(lock, mine, locked).state is ACQUIRED
    assert len(messages) == 1


def test_what_was_asked_for_while_the_counter_was_waited_for_is_in_the_way(
    side: Side, locked: str
) -> None:
    """Another server has its lock's id, and commits while this one waits for its own."""
    txn = side(open_txn)
    database = side.metastore._transactions.database
    with ThreadPoolExecutor(1) as pool:
        with database.transaction(write=True) as connection:
            counted = update(NEXT_LOCK_ID).values(NL_NEXT=NEXT_LOCK_ID.c.NL_NEXT + 1)
            after = connection.execute(counted.returning(NEXT_LOCK_ID.c.NL_NEXT)).scalar_one()
            asked = pool.submit(side, lock, txn, locked)
            wait_until(lambda: is_waited_for(connection))
            connection.execute(
                insert(HIVE_LOCKS).values(
                    HL_LOCK_EXT_ID=after - 1,
                    HL_LOCK_INT_ID=1,
                    HL_TXNID=NO_TXN,
                    HL_DB=locked,
                    HL_TABLE="t",
                    HL_LOCK_STATE="a",
                    HL_LOCK_TYPE="e",
                    HL_USER="u",
                    HL_HOST="h",
                    HL_LAST_HEARTBEAT=2**60,
                )  # fmt: skip
            )
        response = asked.result()
    assert (response.lock_id, response.state) == (after, WAITING)


@pytest.mark.parametrize("crowd_size", [1, 2])
def test_one_that_ends_while_its_row_is_waited_for_gets_no_lock(
    side: Side, locked: str, crowd_size: int
) -> None:
    crowd = Crowd(side.metastore)
    txns = [side(open_txn) for _ in range(crowd_size)]
    database = side.metastore._transactions.database
    with ThreadPoolExecutor(1) as pool:
        with database.transaction(write=True) as connection:
            ended = update(TXNS).where(txns[0] == TXNS.c.TXN_ID).values(TXN_STATE="a")
            connection.execute(ended)
            asked = pool.submit(
                crowd.together,
                *(lambda txn=txn: lock(side.metastore, txn, locked) for txn in txns),  # type: ignore[misc]
            )
            wait_until(lambda: is_waited_for(connection))
        refused, *granted = asked.result()
    assert isinstance(refused, TxnAbortedError)
    assert [response.state for response in granted] == [ACQUIRED] * (crowd_size - 1)  # type: ignore[attr-defined]
    assert [txn for (txn,) in rows(side, HIVE_LOCKS.c.HL_TXNID)] == txns[1:]


@pytest.mark.parametrize(("end", "refusal"), [(commit, NoSuchTxnError), (abort, TxnAbortedError)])
def test_a_transaction_that_another_server_has_ended_gets_no_lock(
    side: Side, other: Side, locked: str, end: Any, refusal: type[Exception]
) -> None:
    crowd = Crowd(side.metastore)
    ended, alive = side(open_txn), side(open_txn)
    other(end, ended)
    with pytest.raises(refusal):
        side(lock, ended, locked)
    for _ in range(2):
        side(lock, alive, locked)
    refused, granted = crowd.together(
        lambda: lock(side.metastore, ended, locked), lambda: lock(side.metastore, alive, locked)
    )
    assert isinstance(refused, refusal)
    assert isinstance(granted, LockResponse)
    assert {txn for (txn,) in rows(side, HIVE_LOCKS.c.HL_TXNID)} == {alive}
    assert {txn for (txn,) in rows(side, TXN_COMPONENTS.c.TC_TXNID)} == {alive}


def test_where_this_server_has_given_what_is_in_the_way_nothing_is_tried(
    side: Side, locked: str, messages: list[int]
) -> None:
    holder, mine = side(open_txn), side(open_txn)
    side(lock, holder, locked, EXCL_WRITE)
    foresight = side.metastore._transactions.foresight
    assert foresight is not None
    assert not foresight.is_free(locked, "t", [WRITE])
    assert foresight.is_free(locked, "t", [READ])
    side(lock, holder, locked, EXCLUSIVE, name=None)
    assert not foresight.is_free(locked, "t", [READ])
    assert side(lock, mine, locked).state is WAITING
    side(commit, holder)
    messages.clear()
    assert [side(lock, mine, locked).state for _ in range(2)] == [ACQUIRED, ACQUIRED]
    assert len(messages) == 3, "the first was looked at"


def test_an_update_that_shares_its_table_conflicts_at_its_commit(side: Side, locked: str) -> None:
    crowd = Crowd(side.metastore)
    txns = [side(open_txn) for _ in range(2)]
    for txn in txns:
        side(write_id, txn, locked)
    change = DataOperation.UPDATE
    crowd.together(
        *(lambda txn=txn: lock(side.metastore, txn, locked, operation=change) for txn in txns)  # type: ignore[misc]
    )
    foresight = side.metastore._transactions.foresight
    assert foresight is not None
    assert [foresight.writes_of([txn]) for txn in txns] == [None, None]
    side(commit, txns[0])
    with pytest.raises(TxnAbortedError, match="write conflict"):
        side(commit, txns[1])
