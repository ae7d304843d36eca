"""Verbs that are sent with their events and their commit, as it is known what will come of them:
one message to PostgreSQL, and the same outcome as without, whatever others did meanwhile."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeVar

import pytest
from sqlalchemy import select, text, update

from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    COMPLETED_TXN_COMPONENTS,
    MIN_HISTORY_LEVEL,
    TXN_TO_WRITE_ID,
    TXNS,
)
from hms_bridge.errors import NoSuchTxnError, TxnAbortedError
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.target import Target
from hms_bridge.model.txn import OpenTxnsRequest, TxnType
from hms_bridge.repl.format.stored_message import message_json
from hms_bridge.service.metastore_service import MetastoreService
from tests.conformance import objects
from tests.conformance.objects import abort, commit, events_after, open_txn, write_id
from tests.support.crowd import Crowd
from tests.support.databases import ON_POSTGRESQL
from tests.support.one_database import Side

pytestmark = ON_POSTGRESQL
T = TypeVar("T")


def told(side: Side, after: int) -> list[tuple[str, Any]]:
    """Events, with what does not differ from run to run."""
    return [
        (event.type, {**json.loads(message_json(event)), "timestamp": None})
        for event in events_after(side.metastore, after)
    ]


def ids(metastore: MetastoreService) -> list[int]:
    """Of all transactions that have a row."""
    with metastore._transactions.database.transaction(write=False) as connection:
        return list(connection.scalars(select(TXNS.c.TXN_ID).order_by(TXNS.c.TXN_ID)))


def change(metastore: MetastoreService, txn: TxnId, database: str) -> None:
    """It locks the table for an update."""
    part = objects.component(database, "t", LockType.SHARED_WRITE, DataOperation.UPDATE)
    metastore.lock(objects.request(part, txn=txn))


def test_a_transaction_is_opened_and_committed_in_a_message_each(
    side: Side, messages: list[int]
) -> None:
    txn = side(open_txn)
    assert len(messages) == 1
    side(commit, txn)
    assert len(messages) == 2


def test_so_is_one_that_reads(side: Side, messages: list[int]) -> None:
    known = side.metastore.get_current_event_id()
    messages.clear()
    side(commit, side(open_txn, TxnType.READ_ONLY))
    assert len(messages) == 2
    assert told(side, known) == []


def test_it_keeps_what_was_open_before_from_being_forgotten(
    side: Side, messages: list[int]
) -> None:
    older = side(open_txn)
    messages.clear()
    txn = side(open_txn)
    assert len(messages) == 1
    with side.metastore._transactions.database.transaction(write=False) as connection:
        history = MIN_HISTORY_LEVEL.c
        lowest = select(history.MHL_MIN_OPEN_TXNID).where(txn == history.MHL_TXNID)
        assert 0 < connection.execute(lowest).scalar_one() <= older


def test_who_reads_leaves_nothing_for_the_initiator(
    side: Side, table: str, messages: list[int]
) -> None:
    """Whatever its lock says that it does."""
    side(objects.new_table, table, "u")
    txn = side(open_txn, TxnType.READ_ONLY)
    part = objects.component(table, "u", LockType.SHARED_WRITE, DataOperation.INSERT)
    side.metastore.lock(objects.request(part, txn=txn))
    messages.clear()
    side(commit, txn)
    assert len(messages) == 1
    with side.metastore._transactions.database.transaction(write=False) as connection:
        completed = COMPLETED_TXN_COMPONENTS.c.CTC_TXNID
        assert not connection.execute(select(completed).where(completed == txn)).all()


def test_a_commit_tells_of_what_was_written(side: Side, table: str, messages: list[int]) -> None:
    txn = side(open_txn)
    written = side(write_id, txn, table)
    known = side.metastore.get_current_event_id()
    messages.clear()
    side(commit, txn)
    assert len(messages) == 1
    ((kind, message),) = told(side, known)
    assert kind == "COMMIT_TXN"
    assert (message["txnid"], message["writeIds"]) == (txn, [written])
    assert message["databases"] == [table]


def test_the_log_is_the_same_as_that_of_a_server_that_expects_nothing(
    side: Side, other: Side, table: str
) -> None:
    """The other one knows of nothing that the first one opened."""
    known = side.metastore.get_current_event_id()
    first, second = side(open_txn), side(open_txn)
    for txn in (first, second):
        side(write_id, txn, table)
    middle = side.metastore.get_current_event_id()
    side(commit, first)
    other(commit, second)
    ((_, mine), (_, theirs)) = told(side, middle)
    assert mine["txnid"] == first
    alike = ("databases", "tables", "partitions", "tableObj", "partitionObj", "files")
    assert {name: mine.get(name) for name in alike} == {name: theirs.get(name) for name in alike}
    assert [*mine] == [*theirs]
    assert len(told(side, known)) == 6


def test_where_another_server_opens_between_ids_are_right_and_none_is_lost(
    side: Side, other: Side
) -> None:
    before = ids(side.metastore)
    known = side.metastore.get_current_event_id()
    opened = []
    for _ in range(8):
        opened += [side(open_txn), other(open_txn), other(open_txn)]
    assert opened == sorted(opened)
    assert ids(side.metastore) == [*before, *opened]
    assert opened == [*range(opened[0], opened[0] + len(opened))], "no id was drawn in vain"
    events = [(message["fromTxnId"], message["toTxnId"]) for _, message in told(side, known)]
    assert events == [(txn, txn) for txn in opened]


def test_a_write_id_that_another_server_gave_is_told_of(
    side: Side, other: Side, table: str
) -> None:
    side(objects.new_table, table, "u")
    other(commit_written, table, "u")
    txn = side(open_txn)
    mine = side(write_id, txn, table)
    theirs = other(write_id, txn, table, "u")
    known = side.metastore.get_current_event_id()
    side(commit, txn)
    ((_, message),) = told(side, known)
    assert message["writeIds"] == [mine, theirs]


def test_of_what_kind_a_transaction_is_says_its_row(side: Side, messages: list[int]) -> None:
    """Whatever is remembered of it: as of one of that id before a database was restored."""
    txn = side(open_txn, TxnType.READ_ONLY)
    foresight = side.metastore._transactions.foresight
    assert foresight is not None
    foresight.opened([txn], TxnType.DEFAULT)
    known = side.metastore.get_current_event_id()
    messages.clear()
    side(commit, txn)
    assert len(messages) > 1, "it was expected, and done as usual then"
    assert told(side, known) == [], "who only reads is in no log"


def test_the_only_write_id_may_be_of_another_server(side: Side, other: Side, table: str) -> None:
    txn = side(open_txn)
    theirs = other(write_id, txn, table)
    known = side.metastore.get_current_event_id()
    side(commit, txn)
    ((_, message),) = told(side, known)
    assert message["writeIds"] == [theirs]


@pytest.fixture
def gapped(side: Side) -> Iterator[None]:
    """As if others drew an id between the look at the sequence and each draw."""
    change = 'ALTER SEQUENCE "TXNS_TXN_ID_seq" INCREMENT BY '
    with side.metastore._transactions.database.transaction(write=True) as connection:
        connection.execute(text(f"{change}3"))
    yield
    with side.metastore._transactions.database.transaction(write=True) as connection:
        connection.execute(text(f"{change}1"))


@pytest.mark.usefixtures("gapped")
def test_an_id_is_what_was_drawn_not_what_was_expected(side: Side) -> None:
    known = side.metastore.get_current_event_id()
    opened = [side(open_txn) for _ in range(3)]
    assert ids(side.metastore)[-3:] == opened
    assert [message["fromTxnId"] for _, message in told(side, known)] == opened


def test_a_write_id_that_another_server_gave_anew_is_told_of(
    side: Side, other: Side, table: str
) -> None:
    txn = side(open_txn)
    side(write_id, txn, table)
    anew = other(another_write_id, txn, table)
    known = side.metastore.get_current_event_id()
    side(commit, txn)
    ((_, message),) = told(side, known)
    assert message["writeIds"] == [anew]


def another_write_id(metastore: MetastoreService, txn: TxnId, database: str) -> int:
    """In place of the one that it has."""
    with metastore._transactions.database.transaction(write=True) as connection:
        written = TXN_TO_WRITE_ID.c
        anew = update(TXN_TO_WRITE_ID).values(T2W_WRITEID=77)
        connection.execute(anew.where(txn == written.T2W_TXNID, database == written.T2W_DATABASE))
    return 77


def test_an_update_whose_lock_another_server_gave_conflicts(
    side: Side, other: Side, table: str
) -> None:
    mine, theirs = side(open_txn), other(open_txn)
    for txn in (mine, theirs):
        other(change, txn, table)
        other(write_id, txn, table)
    other(commit, theirs)
    with pytest.raises(TxnAbortedError, match="write conflict"):
        side(commit, mine)


def test_an_update_of_its_own_is_not_tried_as_expected(side: Side, table: str) -> None:
    txn = side(open_txn)
    side(change, txn, table)
    foresight = side.metastore._transactions.foresight
    assert foresight is not None
    assert foresight.writes_of([txn]) is None


@pytest.mark.parametrize(("end", "refusal"), [(commit, NoSuchTxnError), (abort, TxnAbortedError)])
def test_one_that_another_server_has_ended(
    side: Side, other: Side, end: Any, refusal: type[Exception]
) -> None:
    txn = side(open_txn)
    other(end, txn)
    known = side.metastore.get_current_event_id()
    if end is commit:
        side(commit, txn)
        with pytest.raises(refusal):
            side(abort, txn)
    else:
        with pytest.raises(refusal):
            side(commit, txn)
    assert told(side, known) == []


@pytest.mark.parametrize("is_many", [False, True])
def test_who_commits_what_is_aborted_costs_the_others_nothing(
    side: Side, messages: list[int], *, is_many: bool
) -> None:
    """As a client does whose transaction has timed out."""
    gone, mine = side(open_txn), side(open_txn)
    if is_many:
        side(MetastoreService.abort_txns, [gone])
    else:
        side(abort, gone)
    with pytest.raises(TxnAbortedError):
        side(commit, gone)
    messages.clear()
    side(commit, mine)
    assert len(messages) == 1


def test_the_commit_of_a_compaction_tells_from_when_on_its_inputs_may_go(
    side: Side, table: str
) -> None:
    """Which is more than to end its transaction."""
    side(commit_written, table)
    side.metastore.compact(CompactionRequest(target=Target(table, "t"), type=CompactionType.MINOR))
    entry = side.metastore.find_next_compaction("host-1", "4.2.0")
    assert entry is not None
    txn = side(open_txn, TxnType.COMPACTION)
    side.metastore.update_compactor_state(entry, txn)
    side(commit, txn)
    with side.metastore._transactions.database.transaction(write=False) as connection:
        columns = COMPACTION_QUEUE.c.CQ_NEXT_TXN_ID, COMPACTION_QUEUE.c.CQ_COMMIT_TIME
        ((following, time_ms),) = connection.execute(select(*columns)).all()
    assert following >= txn
    assert time_ms


def commit_written(metastore: MetastoreService, database: str, name: str = "t") -> None:
    txn = open_txn(metastore)
    write_id(metastore, txn, database, name)
    commit(metastore, txn)


def test_a_crowd_is_done_in_one_message(side: Side, table: str, messages: list[int]) -> None:
    crowd = Crowd(side.metastore)
    ended = [side(open_txn) for _ in range(3)]
    written = side(write_id, ended[1], table)
    known = side.metastore.get_current_event_id()
    messages.clear()
    outcomes = crowd.together(
        *(lambda txn=txn: commit(side.metastore, txn) for txn in ended),  # type: ignore[misc]
        *(lambda: open_txn(side.metastore) for _ in range(3)),
    )
    assert len(messages) == 1
    opened = outcomes[3:]
    events = told(side, known)
    assert [kind for kind, _ in events] == ["COMMIT_TXN"] * 3 + ["OPEN_TXN"] * 3
    commits = {message["txnid"]: message["writeIds"] for _, message in events[:3]}
    assert {txn for txn, ids_of in commits.items() if ids_of} == {ended[1]}
    assert commits[ended[1]] == [written]
    assert {message["fromTxnId"] for _, message in events[3:]} == set(opened)


def test_one_of_a_crowd_that_is_not_as_expected_leaves_the_others_alone(
    side: Side, other: Side
) -> None:
    crowd = Crowd(side.metastore)
    aborted, ended = side(open_txn), side(open_txn)
    other(abort, aborted)
    refused, done, opened = crowd.together(
        lambda: commit(side.metastore, aborted),
        lambda: commit(side.metastore, ended),
        lambda: open_txn(side.metastore),
    )
    assert isinstance(refused, TxnAbortedError)
    assert done is None
    assert isinstance(opened, int)
    assert ids(side.metastore)[-1] == opened


@pytest.mark.parametrize("is_foreseen", [True, False])
def test_a_crowd_of_several_users_draws_no_id_in_vain(side: Side, *, is_foreseen: bool) -> None:
    """Even if it is not known what the first of them does besides."""
    crowd = Crowd(side.metastore)
    kind = TxnType.DEFAULT if is_foreseen else TxnType.READ_ONLY
    requests = [
        OpenTxnsRequest(user="a", host="h", count=1 if is_foreseen else 2),
        OpenTxnsRequest(user="b", host="h", type=kind),
        OpenTxnsRequest(user="c", host="h", type=kind),
    ]
    last = side(open_txn)
    outcomes = crowd.together(
        *(lambda request=request: side.metastore.open_txns(request) for request in requests)  # type: ignore[misc]
    )
    assert crowd.batches == [3]
    opened = sorted(txn for given in outcomes for txn in given)  # type: ignore[attr-defined]
    assert opened == [*range(last + 1, last + 1 + sum(request.count for request in requests))]


def test_a_crowd_of_several_users_goes_in_one_message(side: Side, messages: list[int]) -> None:
    crowd = Crowd(side.metastore)
    requests = [OpenTxnsRequest(user=name, host="h") for name in ("a", "b", "a")]
    side(open_txn)
    messages.clear()
    crowd.together(
        *(lambda request=request: side.metastore.open_txns(request) for request in requests)  # type: ignore[misc]
    )
    assert len(messages) == 1
