import pytest

from hms_bridge.backend.schema.txn_tables import HIVE_LOCKS, TXNS
from hms_bridge.errors import (
    MetaError,
    NoSuchLockError,
    NoSuchTxnError,
    TxnAbortedError,
    TxnOpenError,
)
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import (
    DataOperation,
    LockFilter,
    LockRequest,
    LockState,
    LockType,
)
from hms_bridge.model.target import EVERYTHING, Scope
from tests.support.txns import Txns, component
from tests.support.world import World

EXCLUSIVE = component(LockType.EXCLUSIVE, DataOperation.NO_TXN)
READ = component(LockType.SHARED_READ, DataOperation.SELECT)


def test_first_come_first_served(txns: Txns) -> None:
    """A reader does not overtake a writer that waits, though it fits with what is held."""
    one, two, three = txns.open(3)
    assert txns.lock(one, READ).state is LockState.ACQUIRED
    second = txns.lock(two, EXCLUSIVE)
    third = txns.lock(three, READ)
    assert (second.state, third.state) == (LockState.WAITING, LockState.WAITING)
    txns.commit(one)
    assert txns.check(third.lock_id) is LockState.WAITING
    assert txns.check(second.lock_id) is LockState.ACQUIRED
    assert txns.check(second.lock_id) is LockState.ACQUIRED
    txns.commit(two)
    assert txns.check(third.lock_id) is LockState.ACQUIRED


def test_a_partition_without_a_name_is_its_table(world: World, txns: Txns) -> None:
    one, two = txns.open(2)
    txns.lock(one, component(LockType.EXCLUSIVE, DataOperation.NO_TXN, partition=""))
    (stored,) = world.records(HIVE_LOCKS)
    assert (stored["HL_TABLE"], stored["HL_PARTITION"]) == ("t", None)
    other = component(LockType.EXCLUSIVE, DataOperation.NO_TXN, partition="ds=1")
    assert txns.lock(two, other).state is LockState.WAITING


def test_all_or_none(world: World, txns: Txns) -> None:
    one, two = txns.open(2)
    txns.lock(one, EXCLUSIVE)
    other = component(LockType.EXCLUSIVE, DataOperation.NO_TXN, table="other")
    waiting = txns.lock(two, other, EXCLUSIVE)
    assert waiting.state is LockState.WAITING
    states = {
        (row["HL_TABLE"], row["HL_LOCK_STATE"], row["HL_BLOCKEDBY_EXT_ID"])
        for row in world.records(HIVE_LOCKS)
        if row["HL_LOCK_EXT_ID"] == waiting.lock_id
    }
    assert states == {("other", "w", None), ("t", "w", 1)}
    txns.commit(one)
    txns.check(waiting.lock_id)
    assert {
        (row["HL_LOCK_STATE"], row["HL_BLOCKEDBY_EXT_ID"]) for row in world.records(HIVE_LOCKS)
    } == {("a", None)}


def test_locks_of_one_transaction_do_not_block_each_other(txns: Txns) -> None:
    txn_id = txns.open_one()
    assert txns.lock(txn_id, EXCLUSIVE).state is LockState.ACQUIRED
    assert txns.lock(txn_id, EXCLUSIVE, READ).state is LockState.ACQUIRED


def test_locks_of_no_transaction_do(txns: Txns) -> None:
    first = txns.lock(0, EXCLUSIVE)
    second = txns.lock(0, EXCLUSIVE)
    assert (first.state, second.state) == (LockState.ACQUIRED, LockState.WAITING)
    txns.unlock(first.lock_id)
    assert txns.check(second.lock_id) is LockState.ACQUIRED


def test_unlock(txns: Txns) -> None:
    one, two = txns.open(2)
    held = txns.lock(one, EXCLUSIVE).lock_id
    waiting = txns.lock(two, EXCLUSIVE).lock_id
    txns.unlock(waiting)
    with pytest.raises(NoSuchLockError, match=f"^No such lock lockid:{waiting}$"):
        txns.check(waiting)
    with pytest.raises(
        TxnOpenError,
        match=r"^Unlocking locks associated with transaction not permitted\.  lockid:1 "
        r"intLockId:1 txnid:1 db:db table:t partition:null state:ACQUIRED type:EXCLUSIVE$",
    ):
        txns.unlock(held)
    txns.unlock(4711)
    txns.commit(one)
    txns.unlock(held)


def test_ended_transactions_get_no_locks(world: World, txns: Txns) -> None:
    done, undone = txns.open(2)
    txns.commit(done)
    txns.abort(undone)
    with pytest.raises(NoSuchTxnError, match="already committed"):
        txns.lock(done)
    with pytest.raises(TxnAbortedError):
        txns.lock(undone)
    with pytest.raises(NoSuchTxnError, match="No such transaction txnid:9"):
        txns.lock(9)
    assert world.records(HIVE_LOCKS) == []


def test_a_request_for_nothing_is_refused(world: World) -> None:
    request = LockRequest(components=(), txn_id=TxnId(0), user="u", host="h")
    with pytest.raises(MetaError, match="name what to lock"):
        world.metastore.lock(request)


def test_an_abort_frees_the_next(txns: Txns) -> None:
    one, two = txns.open(2)
    txns.lock(one, EXCLUSIVE)
    waiting = txns.lock(two, EXCLUSIVE).lock_id
    txns.abort(one)
    assert txns.check(waiting) is LockState.ACQUIRED
    txns.abort(two)
    with pytest.raises(NoSuchLockError):
        txns.check(waiting)


def test_what_must_not_wait_leaves_nothing(world: World, txns: Txns) -> None:
    one, two = txns.open(2)
    txns.lock(one, EXCLUSIVE)
    answer = txns.lock(two, READ, is_zero_wait_read=True)
    assert answer.state is LockState.NOT_ACQUIRED
    ctas = txns.lock(two, EXCLUSIVE, is_exclusive_ctas=True)
    assert ctas.state is LockState.NOT_ACQUIRED
    assert "CREATE TABLE AS" in (ctas.error_message or "")
    assert {row["HL_TXNID"] for row in world.records(HIVE_LOCKS)} == {one}
    # Without a transaction it waits like any other.
    assert txns.lock(0, READ, is_zero_wait_read=True).state is LockState.WAITING


def test_checking_keeps_alive(world: World, txns: Txns) -> None:
    txn_id = txns.open_one()
    txns.lock(txn_id, EXCLUSIVE)
    mine = txns.lock(txn_id, READ).lock_id
    free = txns.lock(0, READ).lock_id
    world.clock.advance_ms(700)
    txns.check(mine)
    assert txns.check(free) is LockState.WAITING
    assert world.records(TXNS)[1]["TXN_LAST_HEARTBEAT"] == world.clock.now_ms()
    heartbeats = {
        row["HL_LOCK_EXT_ID"]: row["HL_LAST_HEARTBEAT"] for row in world.records(HIVE_LOCKS)
    }
    assert heartbeats == {1: 0, mine: 0, free: world.clock.now_ms()}


def test_names_are_in_lower_case_but_values_are_kept(world: World, txns: Txns) -> None:
    txns.lock(0, component(database="DB", table="Tab", partition="DS=Ab/HR=cD"))
    (row,) = world.records(HIVE_LOCKS)
    assert (row["HL_DB"], row["HL_TABLE"], row["HL_PARTITION"]) == ("db", "tab", "ds=Ab/hr=cD")


def test_show_locks(world: World, txns: Txns) -> None:
    one, two = txns.open(2)
    txns.lock(one, EXCLUSIVE, component(LockType.SHARED_READ, DataOperation.SELECT, table="x"))
    txns.lock(two, READ)
    txns.lock(two, component(LockType.SHARED_WRITE, table="y", partition="p=1"))

    def shown(scope: Scope = EVERYTHING, txn: TxnId | None = None) -> list[tuple[object, ...]]:
        found = world.metastore.show_locks(LockFilter(scope=scope, txn_id=txn))
        return [(one.lock_id, one.internal_id, one.type.name, one.state.name) for one in found]

    assert shown() == [
        (1, 2, "SHARED_READ", "ACQUIRED"),
        (3, 1, "SHARED_WRITE", "ACQUIRED"),
        (1, 1, "EXCLUSIVE", "ACQUIRED"),
        (2, 1, "SHARED_READ", "WAITING"),
    ]
    assert shown(Scope(table="x")) == [(1, 2, "SHARED_READ", "ACQUIRED")]
    assert shown(Scope(partition="p=1")) == [(3, 1, "SHARED_WRITE", "ACQUIRED")]
    assert [row[0] for row in shown(txn=two)] == [3, 2]
    assert shown(Scope("zz")) == []
    (blocked,) = [one for one in world.metastore.show_locks() if one.state is LockState.WAITING]
    assert (blocked.blocked_by_lock_id, blocked.blocked_by_internal_id) == (1, 1)
