import csv
import re

import pytest

from hms_bridge.backend.schema.txn_tables import TXN_COMPONENTS, TXNS, WRITE_SET
from hms_bridge.errors import TxnAbortedError
from hms_bridge.model.lock import DataOperation, LockComponent, LockType
from hms_bridge.model.txn import TxnState
from hms_bridge.txn.housekeeping import forget_txns
from tests.conformance import objects
from tests.support.event_messages import read_message
from tests.support.golden import golden_roots
from tests.support.txns import Txns, component
from tests.support.world import World

PARTITIONS = {"none": None, "a": "ds=a/hr=1", "b": "ds=b/hr=1"}
UPDATE = DataOperation.UPDATE


def _golden_rows() -> list[dict[str, str]]:
    name = "write-conflict-4.0.1.tsv"
    root = next(root for root in golden_roots("wire") if (root / name).exists())
    with (root / name).open() as stream:
        return list(csv.DictReader(stream, delimiter="\t", quoting=csv.QUOTE_NONE))


ROWS = _golden_rows()


def _loses_updates_in_hive(row: dict[str, str]) -> bool:
    """Where Hive commits both although the second undoes the first: nobody holds a lock that
    keeps the other out, and one of them may have changed the same rows."""
    are_changes = {row["first"], row["second"]} <= {"UPDATE", "DELETE"}
    return are_changes and row["partitions"] != "a/b" and row["second_commit"] == "committed"


def _write(txns: Txns, operation: str, partition: str | None, *, dynamic: bool) -> int:
    txn_id = txns.open_one()
    (write_id,) = txns.allocate(txn_id)
    kind = DataOperation[operation]
    is_placed = partition if not dynamic else None
    txns.lock(txn_id, component(operation=kind, partition=is_placed, is_dynamic=dynamic))
    if dynamic:
        assert partition is not None
        txns.dynamic(txn_id, write_id, partition, operation=kind)
    return txn_id


def _second_commit(txns: Txns, row: dict[str, str]) -> str:
    is_dynamic = row["dynamic"] == "True"
    places = [PARTITIONS[name] for name in row["partitions"].split("/")]
    first = _write(txns, row["first"], places[0], dynamic=is_dynamic)
    second = _write(txns, row["second"], places[1], dynamic=is_dynamic)
    asked = {"is_exclusive_write_enabled": row["exclWriteEnabled"] == "True"}
    txns.commit(first, **asked)
    try:
        txns.commit(second, **asked)
    except TxnAbortedError as error:
        return f"TxnAbortedException: {error}"
    return "committed"


def _masked(text: str) -> str:
    return re.sub(r"on gdb/\w+", "on db/t", re.sub(r"\d+,\d+", "N", text))


@pytest.mark.golden
@pytest.mark.parametrize("first", ["INSERT", "UPDATE", "DELETE"])
def test_second_commit_as_in_hive_but_no_update_is_lost(txns: Txns, first: str) -> None:
    same = stricter = 0
    for row in (row for row in ROWS if row["first"] == first):
        seen = _second_commit(txns, row)
        if _loses_updates_in_hive(row):
            assert "due to a write conflict on db/t" in seen, row
            stricter += 1
        else:
            assert _masked(seen) == _masked(row["second_commit"]), row
            same += 1
    assert (same, stricter) == {"INSERT": (42, 0)}.get(first, (28, 14))


def test_the_refused_transaction_is_aborted_at_once(world: World, txns: Txns) -> None:
    first, _ = txns.write(UPDATE)
    second, _ = txns.write(UPDATE)
    txns.commit(first)
    with pytest.raises(TxnAbortedError, match=rf"\[txnid:{second},{second}\] .* u/u"):
        txns.commit(second)
    assert txns.all().txns[0].state is TxnState.ABORTED
    assert [row["TC_TXNID"] for row in world.records(TXN_COMPONENTS)] == [second]
    assert {row["WS_TXNID"] for row in world.records(WRITE_SET)} == {first}
    with pytest.raises(TxnAbortedError, match="already aborted"):
        txns.commit(second)


@pytest.mark.parametrize("who_commits_first", [0, 1])
def test_the_later_commit_is_refused_whichever_began_first(
    txns: Txns, who_commits_first: int
) -> None:
    rivals = [txns.write(UPDATE)[0] for _ in range(2)]
    txns.commit(rivals[who_commits_first])
    with pytest.raises(TxnAbortedError, match="write conflict"):
        txns.commit(rivals[1 - who_commits_first])


def test_the_abort_of_a_refused_transaction_is_logged(world: World, txns: Txns) -> None:
    first, _ = txns.write(UPDATE)
    second, write_id = txns.write(UPDATE)
    txns.commit(first)
    last = world.metastore.get_current_event_id()
    with pytest.raises(TxnAbortedError):
        txns.commit(second)
    (event,) = objects.events_after(world.metastore, last)
    message = read_message(event)
    assert event.type == "ABORT_TXN"
    assert (message["txnid"], message["writeIds"]) == (second, [write_id])


def _locked_write(txns: Txns, txn_id: int, *components: LockComponent) -> None:
    txns.allocate(txn_id)
    txns.lock(txn_id, *components)


def test_who_waited_for_an_exclusive_write_lock_is_not_checked(txns: Txns) -> None:
    first, second = txns.open(2)
    write = component(LockType.EXCL_WRITE, UPDATE)
    _locked_write(txns, first, write)
    waiting = txns.lock(second, write)
    txns.commit(first)
    assert txns.check(waiting.lock_id).name == "ACQUIRED"
    txns.commit(second)


def test_who_waited_is_checked_if_it_asks_to_be(txns: Txns) -> None:
    first, second = txns.open(2)
    write = component(LockType.EXCL_WRITE, UPDATE)
    _locked_write(txns, first, write)
    txns.lock(second, write)
    txns.commit(first)
    with pytest.raises(TxnAbortedError):
        txns.commit(second, is_exclusive_write_enabled=False)


@pytest.mark.parametrize(
    ("kind", "table", "partition", "commits"),
    [
        (LockType.EXCL_WRITE, "t", None, True),
        (LockType.EXCLUSIVE, "t", None, True),
        (LockType.EXCLUSIVE, None, None, True),
        (LockType.EXCL_WRITE, "t", "p=1", True),
        (LockType.SHARED_WRITE, "t", None, False),
        (LockType.EXCL_WRITE, "t", "p=2", False),
        (LockType.EXCL_WRITE, "other", None, False),
    ],
)
def test_only_locks_on_all_that_was_changed_spare_the_check(
    txns: Txns, kind: LockType, table: str | None, partition: str | None, commits: bool
) -> None:
    first, _ = txns.write(UPDATE, partition="p=1")
    second = txns.open_one()
    (write_id,) = txns.allocate(second)
    txns.dynamic(second, write_id, "p=1", operation=UPDATE)
    txns.commit(first)
    txns.lock(second, component(kind, DataOperation.NO_TXN, table=table, partition=partition))
    if commits:
        txns.commit(second)
    else:
        with pytest.raises(TxnAbortedError):
            txns.commit(second)


def test_a_lock_that_only_waits_does_not_spare_the_check(txns: Txns) -> None:
    first, _ = txns.write(UPDATE)
    reader = txns.open_one()
    second = txns.open_one()
    txns.allocate(second)
    txns.lock(reader, component(LockType.SHARED_READ, DataOperation.SELECT))
    txns.lock(second, component(LockType.EXCLUSIVE, UPDATE))
    txns.commit(first)
    with pytest.raises(TxnAbortedError):
        txns.commit(second)


def test_who_began_after_the_commit_does_not_conflict(txns: Txns) -> None:
    first, _ = txns.write(UPDATE)
    txns.commit(first)
    second, _ = txns.write(UPDATE)
    txns.commit(second)


def test_other_tables_do_not_conflict(txns: Txns) -> None:
    first, _ = txns.write(UPDATE, table="one")
    second, _ = txns.write(UPDATE, table="two")
    txns.commit(first)
    txns.commit(second)


def test_who_locks_a_whole_database_for_a_change_can_commit_and_is_forgotten(
    world: World, txns: Txns
) -> None:
    """As clients do that do not say what is done there."""
    first, second, third = txns.open(3)
    for txn_id, operation in (
        (first, DataOperation.UNSET),
        (second, UPDATE),
        (third, None),
    ):
        txns.lock(txn_id, component(LockType.SHARED_WRITE, operation, table=None))
    txns.commit(first)
    assert [event.type for event in txns.commit(second)] == ["COMMIT_TXN"]
    txns.abort(third)
    txns.open_one()
    world.clock.advance_ms(60_000)
    world.do(forget_txns)
    for left in (TXN_COMPONENTS, WRITE_SET):
        assert world.records(left) == []
    assert third not in {row["TXN_ID"] for row in world.records(TXNS)}
