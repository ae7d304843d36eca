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
from hms_bridge.txn import locks
from tests.support.txn_world import TxnWorld, component

EXCLUSIVE = component(LockType.EXCLUSIVE, DataOperation.NO_TXN)
READ = component(LockType.SHARED_READ, DataOperation.SELECT)


def test_first_come_first_served(world: TxnWorld) -> None:
    """A reader does not overtake a writer that waits, though it fits with what is held."""
    one, two, three = world.open(3)
    assert world.lock(one, READ).state is LockState.ACQUIRED
    second = world.lock(two, EXCLUSIVE)
    third = world.lock(three, READ)
    assert (second.state, third.state) == (LockState.WAITING, LockState.WAITING)
    world.commit(one)
    assert world.check(third.lock_id) is LockState.WAITING
    assert world.check(second.lock_id) is LockState.ACQUIRED
    assert world.check(second.lock_id) is LockState.ACQUIRED
    world.commit(two)
    assert world.check(third.lock_id) is LockState.ACQUIRED


def test_all_or_none(world: TxnWorld) -> None:
    one, two = world.open(2)
    world.lock(one, EXCLUSIVE)
    other = component(LockType.EXCLUSIVE, DataOperation.NO_TXN, table="other")
    waiting = world.lock(two, other, EXCLUSIVE)
    assert waiting.state is LockState.WAITING
    states = {
        (row["HL_TABLE"], row["HL_LOCK_STATE"], row["HL_BLOCKEDBY_EXT_ID"])
        for row in world.rows(HIVE_LOCKS)
        if row["HL_LOCK_EXT_ID"] == waiting.lock_id
    }
    assert states == {("other", "w", None), ("t", "w", 1)}
    world.commit(one)
    world.check(waiting.lock_id)
    assert {
        (row["HL_LOCK_STATE"], row["HL_BLOCKEDBY_EXT_ID"]) for row in world.rows(HIVE_LOCKS)
    } == {("a", None)}


def test_locks_of_one_transaction_do_not_block_each_other(world: TxnWorld) -> None:
    txn_id = world.open_one()
    assert world.lock(txn_id, EXCLUSIVE).state is LockState.ACQUIRED
    assert world.lock(txn_id, EXCLUSIVE, READ).state is LockState.ACQUIRED


def test_locks_of_no_transaction_do(world: TxnWorld) -> None:
    first = world.lock(0, EXCLUSIVE)
    second = world.lock(0, EXCLUSIVE)
    assert (first.state, second.state) == (LockState.ACQUIRED, LockState.WAITING)
    world.unlock(first.lock_id)
    assert world.check(second.lock_id) is LockState.ACQUIRED


def test_unlock(world: TxnWorld) -> None:
    one, two = world.open(2)
    held = world.lock(one, EXCLUSIVE).lock_id
    waiting = world.lock(two, EXCLUSIVE).lock_id
    world.unlock(waiting)
    with pytest.raises(NoSuchLockError, match=f"^No such lock lockid:{waiting}$"):
        world.check(waiting)
    with pytest.raises(
        TxnOpenError,
        match=r"^Unlocking locks associated with transaction not permitted\.  lockid:1 "
        r"intLockId:1 txnid:1 db:db table:t partition:null state:ACQUIRED type:EXCLUSIVE$",
    ):
        world.unlock(held)
    world.unlock(4711)
    world.commit(one)
    world.unlock(held)


def test_ended_transactions_get_no_locks(world: TxnWorld) -> None:
    done, undone = world.open(2)
    world.commit(done)
    world.abort(undone)
    with pytest.raises(NoSuchTxnError, match="already committed"):
        world.lock(done)
    with pytest.raises(TxnAbortedError):
        world.lock(undone)
    with pytest.raises(NoSuchTxnError, match="No such transaction txnid:9"):
        world.lock(9)
    assert world.rows(HIVE_LOCKS) == []


def test_a_request_for_nothing_is_refused(world: TxnWorld) -> None:
    request = LockRequest(components=(), txn_id=TxnId(0), user="u", host="h")
    with pytest.raises(MetaError, match="name what to lock"):
        world.do(lambda c: locks.lock(world.work(c), request))


def test_an_abort_frees_the_next(world: TxnWorld) -> None:
    one, two = world.open(2)
    world.lock(one, EXCLUSIVE)
    waiting = world.lock(two, EXCLUSIVE).lock_id
    world.abort(one)
    assert world.check(waiting) is LockState.ACQUIRED
    world.abort(two)
    with pytest.raises(NoSuchLockError):
        world.check(waiting)


def test_what_must_not_wait_leaves_nothing(world: TxnWorld) -> None:
    one, two = world.open(2)
    world.lock(one, EXCLUSIVE)
    answer = world.lock(two, READ, is_zero_wait_read=True)
    assert answer.state is LockState.NOT_ACQUIRED
    ctas = world.lock(two, EXCLUSIVE, is_exclusive_ctas=True)
    assert ctas.state is LockState.NOT_ACQUIRED
    assert "CREATE TABLE AS" in (ctas.error_message or "")
    assert {row["HL_TXNID"] for row in world.rows(HIVE_LOCKS)} == {one}
    # Without a transaction it waits like any other.
    assert world.lock(0, READ, is_zero_wait_read=True).state is LockState.WAITING


def test_checking_keeps_alive(world: TxnWorld) -> None:
    txn_id = world.open_one()
    world.lock(txn_id, EXCLUSIVE)
    mine = world.lock(txn_id, READ).lock_id
    free = world.lock(0, READ).lock_id
    world.time.advance_ms(700)
    world.check(mine)
    assert world.check(free) is LockState.WAITING
    assert world.rows(TXNS)[1]["TXN_LAST_HEARTBEAT"] == world.clock.now_ms()
    heartbeats = {row["HL_LOCK_EXT_ID"]: row["HL_LAST_HEARTBEAT"] for row in world.rows(HIVE_LOCKS)}
    assert heartbeats == {1: 0, mine: 0, free: world.clock.now_ms()}


def test_names_are_in_lower_case_but_values_are_kept(world: TxnWorld) -> None:
    world.lock(0, component(database="DB", table="Tab", partition="DS=Ab/HR=cD"))
    (row,) = world.rows(HIVE_LOCKS)
    assert (row["HL_DB"], row["HL_TABLE"], row["HL_PARTITION"]) == ("db", "tab", "ds=Ab/hr=cD")


def test_show_locks(world: TxnWorld) -> None:
    one, two = world.open(2)
    world.lock(one, EXCLUSIVE, component(LockType.SHARED_READ, DataOperation.SELECT, table="x"))
    world.lock(two, READ)
    world.lock(two, component(LockType.SHARED_WRITE, table="y", partition="p=1"))

    def shown(scope: Scope = EVERYTHING, txn: TxnId | None = None) -> list[tuple[object, ...]]:
        found = world.do(lambda c: locks.show_locks(c, LockFilter(scope=scope, txn_id=txn)))
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
    (blocked,) = [one for one in world.do(locks.show_locks) if one.state is LockState.WAITING]
    assert (blocked.blocked_by_lock_id, blocked.blocked_by_internal_id) == (1, 1)
