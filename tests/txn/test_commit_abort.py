from datetime import datetime

import pytest

from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    MATERIALIZATION_REBUILD_LOCKS,
    MIN_HISTORY_LEVEL,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_bridge.errors import MetaError, NoSuchLockError, NoSuchTxnError, TxnAbortedError
from hms_bridge.model.compaction import CompactionState, CompactionType
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.txn import AbortReason, TxnType
from tests.support.event_messages import read_message
from tests.support.txns import Txns, component
from tests.support.world import World

INSERT, UPDATE, DELETE = DataOperation.INSERT, DataOperation.UPDATE, DataOperation.DELETE


@pytest.mark.parametrize(("operation", "letter"), [(INSERT, "N"), (UPDATE, "Y"), (DELETE, "Y")])
def test_what_a_commit_leaves(
    world: World, txns: Txns, operation: DataOperation, letter: str
) -> None:
    txn_id, write_id = txns.write(operation, "ds=1")
    (event,) = txns.commit(txn_id)
    message = read_message(event)
    assert event.type == "COMMIT_TXN"
    assert (message["databases"], message["writeIds"]) == (["db"], [write_id])
    (left,) = world.records(COMPLETED_TXN_COMPONENTS)
    assert isinstance(left.pop("CTC_TIMESTAMP"), datetime)
    assert left == {
        "CTC_TXNID": txn_id,
        "CTC_DATABASE": "db",
        "CTC_TABLE": "t",
        "CTC_PARTITION": "ds=1",
        "CTC_WRITEID": write_id,
        "CTC_UPDATE_DELETE": letter,
    }
    for table in (TXN_COMPONENTS, HIVE_LOCKS, MIN_HISTORY_LEVEL):
        assert world.records(table) == []
    assert len(world.records(TXN_TO_WRITE_ID)) == 1
    assert len(world.records(WRITE_SET)) == (letter == "Y")
    assert [row["TXN_STATE"] for row in world.records(TXNS)] == ["c", "c"]


def test_what_an_abort_leaves(world: World, txns: Txns) -> None:
    txn_id, write_id = txns.write(UPDATE, "ds=1")
    (event,) = txns.abort(txn_id, reason=AbortReason.ROLLBACK)
    assert event.type == "ABORT_TXN"
    assert (read_message(event)["txnid"], read_message(event)["writeIds"]) == (txn_id, [write_id])
    (component_row,) = world.records(TXN_COMPONENTS)
    assert component_row["TC_WRITEID"] == write_id
    assert len(world.records(TXN_TO_WRITE_ID)) == 1
    for table in (COMPLETED_TXN_COMPONENTS, HIVE_LOCKS, MIN_HISTORY_LEVEL, WRITE_SET):
        assert world.records(table) == []
    aborted = world.records(TXNS)[1]
    assert (aborted["TXN_STATE"], aborted["TXN_META_INFO"]) == ("a", "rollback")


def test_a_write_that_told_nothing_is_remembered_at_its_abort(world: World, txns: Txns) -> None:
    txn_id = txns.open_one()
    txns.allocate(txn_id)
    txns.allocate(txn_id, table="locked")
    txns.lock(txn_id, component(table="locked", partition="p=1"))
    txns.abort(txn_id)
    rows = world.records(TXN_COMPONENTS)
    assert sorted((row["TC_TABLE"], row["TC_PARTITION"], row["TC_WRITEID"]) for row in rows) == [
        ("locked", "p=1", 1),
        ("t", None, 1),
    ]
    txns.grow_old()
    txns.open_one()
    txns.grow_old()
    txns.housekeep()
    assert not txns.valid().is_valid(1)


def test_repeats_and_refusals(txns: Txns) -> None:
    done, undone, _ = txns.open(3)
    txns.commit(done)
    txns.abort(undone)
    assert txns.commit(done) == ()
    assert txns.abort(undone) == ()
    with pytest.raises(NoSuchTxnError, match=f"^Transaction txnid:{done} is already committed.$"):
        txns.abort(done)
    with pytest.raises(TxnAbortedError, match=f"^Transaction txnid:{undone} already aborted$"):
        txns.commit(undone)
    for verb in (txns.commit, txns.abort):
        with pytest.raises(NoSuchTxnError, match="^No such transaction txnid:77$"):
            verb(77)


def test_a_commit_is_known_after_its_row_was_purged(world: World, txns: Txns) -> None:
    txn_id, _ = txns.write()
    txns.commit(txn_id)
    txns.commit(txns.open_one())  # the last one stays
    txns.grow_old()
    txns.open_one()
    txns.grow_old()
    txns.housekeep()
    assert txn_id not in {row["TXN_ID"] for row in world.records(TXNS)}
    assert txns.commit(txn_id) == ()
    with pytest.raises(NoSuchTxnError, match="already committed"):
        txns.abort(txn_id)


def test_many_aborts_at_once(world: World, txns: Txns) -> None:
    first, second, third = txns.open(3)
    reader = txns.open_one(TxnType.READ_ONLY)
    txns.commit(second)
    events = txns.abort_many([third, first, second, reader, 777, first])
    assert [read_message(event)["txnid"] for event in events] == [first, third]
    states = [row["TXN_STATE"] for row in world.records(TXNS)[1:]]
    assert states == ["a", "c", "a", "a"]


def test_a_reader_leaves_nothing(world: World, txns: Txns) -> None:
    reader = txns.open_one(TxnType.READ_ONLY)
    txns.lock(reader, component(LockType.SHARED_READ, DataOperation.SELECT))
    txns.lock(reader, component(operation=INSERT))
    assert txns.commit(reader) == ()
    for table in (HIVE_LOCKS, TXN_COMPONENTS, COMPLETED_TXN_COMPONENTS):
        assert world.records(table) == []


def test_the_locks_of_a_rebuild_end_with_it(world: World, txns: Txns) -> None:
    rebuild = txns.open_one(TxnType.MATER_VIEW_REBUILD)
    row = {"MRL_TXN_ID": rebuild, "MRL_DB_NAME": "db", "MRL_TBL_NAME": "v"}
    world.put(MATERIALIZATION_REBUILD_LOCKS, **row, MRL_LAST_HEARTBEAT=0)
    txns.commit(rebuild)
    assert world.records(MATERIALIZATION_REBUILD_LOCKS) == []


def test_dynamic_partitions_replace_their_placeholder(world: World, txns: Txns) -> None:
    txn_id = txns.open_one()
    (write_id,) = txns.allocate(txn_id)
    txns.lock(
        txn_id,
        component(operation=INSERT, is_dynamic=True),
        component(operation=UPDATE, is_dynamic=True),
        component(operation=INSERT, is_dynamic=True, table="other"),
    )
    rows = world.records(TXN_COMPONENTS)
    assert sorted((row["TC_TABLE"], row["TC_OPERATION_TYPE"]) for row in rows) == [
        ("other", "i"),
        ("t", "u"),
    ]
    txns.dynamic(txn_id, write_id, "ds=A/hr=1", "ds=B/hr=1", operation=INSERT)
    rows = [row for row in world.records(TXN_COMPONENTS) if row["TC_TABLE"] == "t"]
    assert sorted((row["TC_PARTITION"], row["TC_OPERATION_TYPE"]) for row in rows) == [
        ("ds=A/hr=1", "i"),
        ("ds=B/hr=1", "i"),
    ]
    with pytest.raises(NoSuchTxnError):
        txns.dynamic(4711, 1, "ds=A/hr=1")


@pytest.mark.parametrize(
    ("operation", "is_transactional", "tracked"),
    [
        (DataOperation.SELECT, True, None),
        (DataOperation.NO_TXN, True, None),
        (INSERT, False, None),
        (INSERT, True, "i"),
        (INSERT, None, "i"),
        (DELETE, None, "d"),
        (None, None, "u"),
        (DataOperation.UNSET, True, "u"),
        (None, False, None),
    ],
)
def test_which_locks_are_writes(
    world: World,
    txns: Txns,
    operation: DataOperation | None,
    is_transactional: bool | None,
    tracked: str | None,
) -> None:
    one = component(operation=operation, is_transactional=is_transactional)
    txns.lock(txns.open_one(), one, one)
    rows = world.records(TXN_COMPONENTS)
    assert [row["TC_OPERATION_TYPE"] for row in rows] == ([tracked] if tracked else [])


def test_heartbeats(world: World, txns: Txns) -> None:
    first, second, third = txns.open(3)
    txns.commit(second)
    txns.abort(third)
    free = txns.lock(0).lock_id
    world.clock.advance_ms(500)
    txns.beat(first, free)
    txns.beat()
    assert world.records(TXNS)[1]["TXN_LAST_HEARTBEAT"] == world.clock.now_ms()
    assert world.records(HIVE_LOCKS)[0]["HL_LAST_HEARTBEAT"] == world.clock.now_ms()
    with pytest.raises(NoSuchTxnError, match=f"^No such txn: {second}$"):
        txns.beat(second)
    with pytest.raises(TxnAbortedError, match=f"^Transaction txnid:{third} already aborted$"):
        txns.beat(third)
    with pytest.raises(NoSuchTxnError, match="^No such transaction txnid:99$"):
        txns.beat(99)
    with pytest.raises(NoSuchLockError, match="^No such lock: lockid:99$"):
        txns.beat(0, 99)
    done = world.metastore.heartbeat_txn_range(TxnId(1), TxnId(5))
    assert (done.aborted, done.missing) == ((third,), (second, 4, 5))
    with pytest.raises(MetaError, match="^cannot keep 1000001 transactions alive at once"):
        world.metastore.heartbeat_txn_range(TxnId(1), TxnId(1_000_001))


def test_what_a_soft_drop_leaves_goes_after_whoever_was_open(world: World, txns: Txns) -> None:
    """A Hive's, which asks for its cleaning within its transaction and notes no component (Hive:
    CommitTxnFunction, InsertCompactionRequestCommand)."""
    soft = txns.open_one(TxnType.SOFT_DELETE)
    world.put(
        COMPACTION_QUEUE,
        CQ_ID=7,
        CQ_DATABASE="db",
        CQ_TABLE="t",
        CQ_PARTITION="p=1",
        CQ_TYPE=CompactionType.MAJOR.stored,
        CQ_STATE=CompactionState.READY_FOR_CLEANING.stored,
        CQ_TXN_ID=soft,
    )
    reader = txns.open_one(TxnType.READ_ONLY)
    events = txns.commit(soft)
    assert [event.type for event in events] == ["COMMIT_TXN", "COMMIT_COMPACTION_EVENT"]
    (entry,) = world.records(COMPACTION_QUEUE)
    assert entry["CQ_NEXT_TXN_ID"] == reader
    assert entry["CQ_COMMIT_TIME"] is not None
    txns.grow_old()
    assert txns.ready() == []
    txns.commit(reader)
    assert txns.ready() == [7]
