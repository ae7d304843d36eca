from datetime import datetime

import pytest

from hms_bridge.backend.schema.txn_tables import (
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    MATERIALIZATION_REBUILD_LOCKS,
    MIN_HISTORY_LEVEL,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_bridge.errors import NoSuchLockError, NoSuchTxnError, TxnAbortedError
from hms_bridge.model.ids import LockId, TxnId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.txn import AbortReason, TxnType
from hms_bridge.txn import heartbeat
from tests.support.txn_world import TxnWorld, component

INSERT, UPDATE, DELETE = DataOperation.INSERT, DataOperation.UPDATE, DataOperation.DELETE


def _beat(world: TxnWorld, txn_id: int = 0, lock_id: int = 0) -> None:
    world.do(lambda c: heartbeat.heartbeat(world.work(c), TxnId(txn_id), LockId(lock_id)))


@pytest.mark.parametrize(("operation", "letter"), [(INSERT, "N"), (UPDATE, "Y"), (DELETE, "Y")])
def test_what_a_commit_leaves(world: TxnWorld, operation: DataOperation, letter: str) -> None:
    txn_id, write_id = world.write(operation, "ds=1")
    outcome = world.commit(txn_id)
    assert outcome.is_event_due
    assert [(w.database_name, w.table_name, w.write_id) for w in outcome.written] == [
        ("db", "t", write_id)
    ]
    (left,) = world.rows(COMPLETED_TXN_COMPONENTS)
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
        assert world.rows(table) == []
    assert len(world.rows(TXN_TO_WRITE_ID)) == 1
    assert len(world.rows(WRITE_SET)) == (letter == "Y")
    assert [row["TXN_STATE"] for row in world.rows(TXNS)] == ["c", "c"]


def test_what_an_abort_leaves(world: TxnWorld) -> None:
    txn_id, write_id = world.write(UPDATE, "ds=1")
    outcome = world.abort(txn_id, reason=AbortReason.ROLLBACK)
    assert [(txn.id, txn.written[0].write_id) for txn in outcome.logged] == [(txn_id, write_id)]
    (component_row,) = world.rows(TXN_COMPONENTS)
    assert component_row["TC_WRITEID"] == write_id
    assert len(world.rows(TXN_TO_WRITE_ID)) == 1
    for table in (COMPLETED_TXN_COMPONENTS, HIVE_LOCKS, MIN_HISTORY_LEVEL, WRITE_SET):
        assert world.rows(table) == []
    aborted = world.rows(TXNS)[1]
    assert (aborted["TXN_STATE"], aborted["TXN_META_INFO"]) == ("a", "rollback")


def test_a_write_that_told_nothing_is_remembered_at_its_abort(world: TxnWorld) -> None:
    txn_id = world.open_one()
    world.allocate(txn_id)
    world.allocate(txn_id, table="locked")
    world.lock(txn_id, component(table="locked", partition="p=1"))
    world.abort(txn_id)
    rows = world.rows(TXN_COMPONENTS)
    assert sorted((row["TC_TABLE"], row["TC_PARTITION"], row["TC_WRITEID"]) for row in rows) == [
        ("locked", "p=1", 1),
        ("t", None, 1),
    ]
    world.grow_old()
    world.open_one()
    world.grow_old()
    world.housekeep()
    assert not world.valid().is_valid(1)


def test_repeats_and_refusals(world: TxnWorld) -> None:
    done, undone, _ = world.open(3)
    world.commit(done)
    world.abort(undone)
    assert not world.commit(done).is_event_due
    assert world.abort(undone).logged == ()
    with pytest.raises(NoSuchTxnError, match=f"^Transaction txnid:{done} is already committed.$"):
        world.abort(done)
    with pytest.raises(TxnAbortedError, match=f"^Transaction txnid:{undone} already aborted$"):
        world.commit(undone)
    for verb in (world.commit, world.abort):
        with pytest.raises(NoSuchTxnError, match="^No such transaction txnid:77$"):
            verb(77)


def test_a_commit_is_known_after_its_row_was_purged(world: TxnWorld) -> None:
    txn_id, _ = world.write()
    world.commit(txn_id)
    world.commit(world.open_one())  # the last one stays
    world.grow_old()
    world.open_one()
    world.grow_old()
    world.housekeep()
    assert txn_id not in {row["TXN_ID"] for row in world.rows(TXNS)}
    assert not world.commit(txn_id).is_event_due
    with pytest.raises(NoSuchTxnError, match="already committed"):
        world.abort(txn_id)


def test_many_aborts_at_once(world: TxnWorld) -> None:
    first, second, third = world.open(3)
    reader = world.open_one(TxnType.READ_ONLY)
    world.commit(second)
    outcome = world.abort_many([third, first, second, reader, 777, first])
    assert [txn.id for txn in outcome.aborted] == [first, third, reader]
    assert [txn.id for txn in outcome.logged] == [first, third]


def test_a_reader_leaves_nothing(world: TxnWorld) -> None:
    reader = world.open_one(TxnType.READ_ONLY)
    world.lock(reader, component(LockType.SHARED_READ, DataOperation.SELECT))
    world.lock(reader, component(operation=INSERT))
    assert not world.commit(reader).is_event_due
    for table in (HIVE_LOCKS, TXN_COMPONENTS, COMPLETED_TXN_COMPONENTS):
        assert world.rows(table) == []


def test_the_locks_of_a_rebuild_end_with_it(world: TxnWorld) -> None:
    rebuild = world.open_one(TxnType.MATER_VIEW_REBUILD)
    row = {"MRL_TXN_ID": rebuild, "MRL_DB_NAME": "db", "MRL_TBL_NAME": "v"}
    world.put(MATERIALIZATION_REBUILD_LOCKS, row | {"MRL_LAST_HEARTBEAT": 0})
    world.commit(rebuild)
    assert world.rows(MATERIALIZATION_REBUILD_LOCKS) == []


def test_dynamic_partitions_replace_their_placeholder(world: TxnWorld) -> None:
    txn_id = world.open_one()
    (write_id,) = world.allocate(txn_id)
    world.lock(
        txn_id,
        component(operation=INSERT, is_dynamic=True),
        component(operation=UPDATE, is_dynamic=True),
        component(operation=INSERT, is_dynamic=True, table="other"),
    )
    rows = world.rows(TXN_COMPONENTS)
    assert sorted((row["TC_TABLE"], row["TC_OPERATION_TYPE"]) for row in rows) == [
        ("other", "i"),
        ("t", "u"),
    ]
    world.dynamic(txn_id, write_id, "ds=A/hr=1", "ds=B/hr=1", operation=INSERT)
    rows = [row for row in world.rows(TXN_COMPONENTS) if row["TC_TABLE"] == "t"]
    assert sorted((row["TC_PARTITION"], row["TC_OPERATION_TYPE"]) for row in rows) == [
        ("ds=A/hr=1", "i"),
        ("ds=B/hr=1", "i"),
    ]
    with pytest.raises(NoSuchTxnError):
        world.dynamic(4711, 1, "ds=A/hr=1")


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
    world: TxnWorld,
    operation: DataOperation | None,
    is_transactional: bool | None,
    tracked: str | None,
) -> None:
    one = component(operation=operation, is_transactional=is_transactional)
    world.lock(world.open_one(), one, one)
    rows = world.rows(TXN_COMPONENTS)
    assert [row["TC_OPERATION_TYPE"] for row in rows] == ([tracked] if tracked else [])


def test_heartbeats(world: TxnWorld) -> None:
    first, second, third = world.open(3)
    world.commit(second)
    world.abort(third)
    free = world.lock(0).lock_id
    world.time.advance_ms(500)
    _beat(world, first, free)
    _beat(world)
    assert world.rows(TXNS)[1]["TXN_LAST_HEARTBEAT"] == world.clock.now_ms()
    assert world.rows(HIVE_LOCKS)[0]["HL_LAST_HEARTBEAT"] == world.clock.now_ms()
    with pytest.raises(NoSuchTxnError, match=f"^No such txn: {second}$"):
        _beat(world, second)
    with pytest.raises(TxnAbortedError, match=f"^Transaction txnid:{third} already aborted$"):
        _beat(world, third)
    with pytest.raises(NoSuchTxnError, match="^No such transaction txnid:99$"):
        _beat(world, 99)
    with pytest.raises(NoSuchLockError, match="^No such lock: lockid:99$"):
        _beat(world, 0, 99)
    done = world.do(lambda c: heartbeat.heartbeat_txn_range(world.work(c), TxnId(1), TxnId(5)))
    assert (done.aborted, done.missing) == ((third,), (second, 4, 5))
