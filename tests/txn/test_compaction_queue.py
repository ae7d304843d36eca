from dataclasses import replace
from functools import partial

import pytest

from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    TXN_COMPONENTS,
)
from hms_bridge.config.settings import CompactorSettings
from hms_bridge.errors import NoSuchCompactionError, NoSuchTxnError, TxnAbortedError
from hms_bridge.model.compaction import (
    Compaction,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.ids import CompactionId, TxnId, WriteId
from hms_bridge.model.target import Scope, Target
from hms_bridge.model.txn import TxnState, TxnType
from tests.support.event_messages import read_message
from tests.support.txns import Txns
from tests.support.world import World

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def _revoke(world: World, timeout_ms: int = DAY_MS) -> int:
    return world.metastore.revoke_timed_out_workers(timeout_ms)


def test_a_request_is_kept_whole(world: World, txns: Txns) -> None:
    answer = txns.compact(
        "Tab",
        "ds=Ab",
        kind=CompactionType.REBALANCE,
        run_as="hive",
        properties={"k": "v", "leer": ""},
        initiator_id="i",
        initiator_version="4",
        bucket_count=7,
        order_by="a desc",
        pool_name="hive",
    )
    assert (answer.id, answer.is_accepted, answer.state) == (1, True, "initiated")
    claimed = txns.claim("host-1", pool="hive")
    assert claimed == Compaction(
        id=CompactionId(1),
        target=Target("db", "tab", "ds=Ab"),
        type=CompactionType.REBALANCE,
        state=CompactionState.WORKING,
        properties={"k": "v", "leer": ""},
        worker_id="host-1",
        worker_version="4",
        initiator_id="i",
        initiator_version="4",
        enqueued_ms=world.clock.now_ms(),
        started_ms=world.clock.now_ms(),
        run_as="hive",
        pool_name="hive",
        bucket_count=7,
        order_by="a desc",
    )


def test_one_request_at_a_time_for_a_target(txns: Txns) -> None:
    assert txns.compact().is_accepted
    refused = txns.compact()
    assert (refused.id, refused.state) == (None, "refused")
    assert refused.error_message == (
        "Compaction is already scheduled with state='initiated' and id=1"
    )
    assert txns.compact(partition="p=1").is_accepted
    assert txns.compact("other").is_accepted
    txns.claim()
    assert "state='working'" in (txns.compact().error_message or "")


def test_what_is_compacted_already_is_refused_until_somebody_writes(txns: Txns) -> None:
    txn_id, write_id = txns.write()
    txns.commit(txn_id)
    txns.compacted(write_id)
    assert "state='ready for cleaning'" in (txns.compact().error_message or "")
    # An open write does not count: it could not be compacted.
    later, _ = txns.write()
    assert not txns.compact().is_accepted
    txns.commit(later)
    assert txns.compact().is_accepted


def test_the_oldest_entry_of_the_pool_comes_first(world: World, txns: Txns) -> None:
    txns.compact("a", pool_name="fast")
    txns.compact("b")
    txns.compact("c")

    def claimed(pool: str | None = None) -> str | None:
        found = txns.claim(pool=pool)
        return found and found.target.table

    assert claimed() == "b"
    assert claimed("other") is None
    assert claimed() == "c"
    assert claimed() is None
    world.clock.advance_ms(12 * HOUR_MS)
    assert claimed() is None
    world.clock.advance_ms(1)
    txns.compact("d", pool_name="fast")
    assert claimed() == "a"
    assert claimed() is None
    assert claimed("fast") == "d"


def test_the_worker_tells_and_marks(world: World, txns: Txns) -> None:
    txns.compact()
    mine = txns.start_compaction(5)
    (component,) = world.records(TXN_COMPONENTS)
    assert (component["TC_OPERATION_TYPE"], component["TC_WRITEID"]) == ("c", 5)
    world.metastore.update_compactor_state(mine, mine.txn_id)
    assert len(world.records(TXN_COMPONENTS)) == 1
    world.metastore.set_hadoop_job_id("job", mine.id)
    txns.mark_compacted(mine)
    txns.mark_compacted(mine)
    (row,) = world.records(COMPACTION_QUEUE)
    assert (row["CQ_STATE"], row["CQ_WORKER_ID"]) == ("r", None)
    assert (row["CQ_HIGHEST_WRITE_ID"], row["CQ_TXN_ID"]) == (5, mine.txn_id)
    assert (row["CQ_HADOOP_JOB_ID"], row["CQ_NEXT_TXN_ID"]) == ("job", None)


@pytest.mark.parametrize("kind", [TxnType.COMPACTION, TxnType.REBALANCE_COMPACTION])
def test_the_commit_tells_who_may_still_read_the_inputs(
    world: World, txns: Txns, kind: TxnType
) -> None:
    txns.compact()
    mine = txns.start_compaction(5, kind=kind)
    txns.mark_compacted(mine)
    reader = txns.open_one(TxnType.READ_ONLY)
    world.clock.advance_ms(10)
    events = txns.commit(mine.txn_id)
    (row,) = world.records(COMPACTION_QUEUE)
    assert (row["CQ_NEXT_TXN_ID"], row["CQ_COMMIT_TIME"]) == (reader, world.clock.now_ms())
    assert [event.type for event in events] == ["COMMIT_TXN", "COMMIT_COMPACTION_EVENT"]
    assert read_message(events[1])["compactionId"] == mine.id
    assert world.records(TXN_COMPONENTS) == []


class TestLostLease:
    """Two workers never publish the same compaction."""

    def _lost(self, world: World) -> tuple[Compaction, Compaction]:
        """What two workers hold of the same entry; the first one's was revoked."""
        world.txns.compact()
        first = world.txns.start_compaction(5, worker="one")
        world.clock.advance_ms(DAY_MS + 1)
        assert _revoke(world) == 1
        second = world.txns.start_compaction(5, worker="two")
        return first, second

    def test_revoking_takes_only_what_is_too_old(self, world: World, txns: Txns) -> None:
        txns.compact()
        txns.claim()
        world.clock.advance_ms(DAY_MS)
        assert _revoke(world) == 0
        world.clock.advance_ms(1)
        assert _revoke(world) == 1
        assert txns.show() == [(1, "initiated")]

    def test_the_loser_can_tell_nothing(self, world: World, txns: Txns) -> None:
        first, _ = self._lost(world)
        for verb in (
            lambda entry: world.metastore.update_compactor_state(entry, entry.txn_id),
            world.metastore.mark_compacted,
            world.metastore.mark_failed,
            world.metastore.mark_refused,
        ):
            with pytest.raises(NoSuchCompactionError):
                verb(first)
        assert txns.show() == [(1, "working")]

    def test_the_loser_ends_nothing_that_another_has_compacted(
        self, world: World, txns: Txns
    ) -> None:
        first, second = self._lost(world)
        txns.mark_compacted(second)
        for verb in (world.metastore.mark_failed, world.metastore.mark_refused):
            with pytest.raises(NoSuchCompactionError, match="is held by another worker"):
                verb(first)
        txns.commit(second.txn_id)
        with pytest.raises(NoSuchCompactionError, match="is held by another worker"):
            txns.fail(second)
        assert txns.show() == [(1, "ready for cleaning")]

    def test_the_loser_cannot_commit(self, world: World, txns: Txns) -> None:
        first, second = self._lost(world)
        with pytest.raises(TxnAbortedError, match=r"its compaction of db/t was taken from it"):
            txns.commit(first.txn_id)
        assert [txn.id for txn in txns.all().txns if txn.state is TxnState.ABORTED] == [
            first.txn_id
        ]
        txns.mark_compacted(second)
        txns.commit(second.txn_id)
        assert {row["TC_TXNID"] for row in world.records(TXN_COMPONENTS)} == {first.txn_id}

    def test_nor_before_another_worker_took_it(self, world: World, txns: Txns) -> None:
        txns.compact()
        first = txns.start_compaction(5)
        world.clock.advance_ms(DAY_MS + 1)
        _revoke(world)
        with pytest.raises(TxnAbortedError):
            txns.commit(first.txn_id)

    def test_workers_that_tell_no_id_are_stopped_at_the_commit(
        self, world: World, txns: Txns
    ) -> None:
        first, second = self._lost(world)
        anonymous = replace(first, worker_id=None, started_ms=None, txn_id=None)
        txns.mark_compacted(anonymous)
        with pytest.raises(TxnAbortedError):
            txns.commit(first.txn_id)
        with pytest.raises(NoSuchCompactionError):
            txns.mark_compacted(replace(second, txn_id=TxnId(999)))

    def test_the_same_worker_is_told_apart_by_its_start(self, world: World, txns: Txns) -> None:
        txns.compact()
        first = txns.start_compaction(5, worker="same")
        world.clock.advance_ms(DAY_MS + 1)
        _revoke(world)
        txns.claim("same")
        with pytest.raises(NoSuchCompactionError):
            txns.mark_compacted(first)

    @pytest.mark.parametrize("told", ["worker_id", "started_ms", "txn_id"])
    def test_each_thing_that_a_worker_tells_is_enough(
        self, world: World, txns: Txns, told: str
    ) -> None:
        first, second = self._lost(world)
        silent = replace(second, worker_id=None, started_ms=None, txn_id=None)
        claim = replace(silent, **{told: getattr(first, told)})
        with pytest.raises(NoSuchCompactionError):
            txns.mark_compacted(claim)
        with pytest.raises(NoSuchCompactionError):
            txns.fail(claim)
        txns.mark_compacted(silent)

    def test_a_revoked_entry_belongs_to_no_transaction(self, world: World, txns: Txns) -> None:
        txns.compact()
        txns.start_compaction(5)
        world.clock.advance_ms(DAY_MS + 1)
        _revoke(world)
        (row,) = world.records(COMPACTION_QUEUE)
        assert (row["CQ_TXN_ID"], row["CQ_WORKER_ID"], row["CQ_START"]) == (None, None, None)

    def test_a_failed_entry_cannot_be_committed(self, txns: Txns) -> None:
        txns.compact()
        mine = txns.start_compaction(5)
        txns.fail(mine)
        with pytest.raises(TxnAbortedError):
            txns.commit(mine.txn_id)


def test_a_compactor_that_compacted_nothing_commits(txns: Txns) -> None:
    (event,) = txns.commit(txns.open_one(TxnType.COMPACTION))
    assert event.type == "COMMIT_TXN"


def test_failed_refused_and_never_queued(world: World, txns: Txns) -> None:
    for table in ("a", "b"):
        txns.compact(table)
    failed = txns.start_compaction(1)
    assert len(txns.fail(replace(failed, error_message="boom"))) == 1
    entry = world.entry(failed)
    assert (entry.state, entry.error_message) == (CompactionState.FAILED, "boom")
    assert txns.fail(failed) == ()
    refused = txns.claim()
    assert refused is not None
    world.metastore.mark_refused(refused)
    never = Compaction(
        id=CompactionId(0),
        target=Target("db", "c"),
        type=CompactionType.MINOR,
        state=CompactionState.INITIATED,
        error_message="cannot read",
    )
    assert len(txns.fail(never)) == 1
    assert world.entry(replace(never, id=CompactionId(3))).state is CompactionState.DID_NOT_INITIATE
    states = {row["CC_ID"]: row["CC_STATE"] for row in world.records(COMPLETED_COMPACTIONS)}
    assert states == {1: "f", 2: "c", 3: "a"}
    assert world.records(COMPACTION_QUEUE) == []
    for verb in (world.metastore.mark_failed, world.metastore.mark_refused):
        with pytest.raises(NoSuchCompactionError, match="compaction 77 is not in the queue"):
            verb(replace(failed, id=CompactionId(77)))
    # That it ended otherwise is no first report whose answer was lost.
    for verb, ended in ((world.metastore.mark_refused, failed),
                        (world.metastore.mark_failed, refused)):  # fmt: skip
        with pytest.raises(NoSuchCompactionError, match=f"compaction {ended.id} is not in the"):
            verb(ended)


def test_ended_transactions_cannot_compact(world: World, txns: Txns) -> None:
    txns.compact()
    claimed = txns.claim()
    assert claimed is not None
    with pytest.raises(NoSuchTxnError):
        world.metastore.update_compactor_state(claimed, TxnId(9))


def test_aborting_requests(world: World, txns: Txns) -> None:
    for table in ("a", "b", "c"):
        txns.compact(table)
    txns.claim()
    ended = txns.start_compaction(1)
    txns.fail(ended)
    ids = [CompactionId(one) for one in (1, 2, 3, 9)]
    outcome = world.metastore.abort_compactions(ids)
    not_in_time = "Error while aborting compaction as compaction is in state-"
    assert {number: (came.is_aborted, came.message) for number, came in outcome.items()} == {
        1: (False, f"{not_in_time}working"),
        2: (False, f"{not_in_time}failed"),
        3: (True, "Successfully aborted compaction"),
        9: (False, "No Such Compaction Id Available"),
    }
    assert (3, "aborted") in txns.show()
    with pytest.raises(NoSuchCompactionError, match="name the entries"):
        world.metastore.abort_compactions([])


def test_showing(world: World, txns: Txns) -> None:
    for table in ("a", "b", "c", "d"):
        txns.compact(table)
        world.clock.advance_ms(1)
    done = txns.start_compaction(1)
    world.clock.advance_ms(1)
    txns.mark_compacted(done)
    txns.commit(done.txn_id)
    world.clock.advance_ms(1)
    txns.fail(txns.start_compaction(1))
    words = [(3, "initiated"), (4, "initiated"), (2, "failed"), (1, "ready for cleaning")]
    assert txns.show() == words
    assert txns.show(ShowCompactionsRequest(limit=1)) == words[:1]
    assert txns.show(ShowCompactionsRequest(scope=Scope(table="B"))) == words[2:3]
    assert txns.show(ShowCompactionsRequest(state=CompactionState.INITIATED)) == words[:2]
    assert txns.show(ShowCompactionsRequest(id=CompactionId(4))) == words[1:2]
    assert txns.show(ShowCompactionsRequest(type=CompactionType.MAJOR)) == []
    assert txns.show(ShowCompactionsRequest(scope=Scope("x"))) == []


def test_write_ids_of_partitions_are_those_of_the_table(txns: Txns) -> None:
    txn_id, write_id = txns.write(partition="p=1")
    txns.commit(txn_id)
    txns.compacted(write_id, partition="p=1")
    assert not txns.compact(partition="p=1").is_accepted
    assert txns.compact(partition="p=2").is_accepted
    assert write_id == WriteId(1)


_OTHERS_WORK = [("skewed", CompactionType.REBALANCE), ("appended", CompactionType.MAJOR)]


def test_what_nobody_here_does_is_refused_with_the_reason(world: World, txns: Txns) -> None:
    world.create_table("appended", transactional_properties="insert_only")
    for table, kind in _OTHERS_WORK:
        refused = txns.compact(table, kind=kind)
        assert (refused.id, refused.state) == (None, "refused")
        assert "workers of hms-bridge do no" in (refused.error_message or "")
        assert "hms.bridge.compactor.hive.workers=true" in (refused.error_message or "")
        assert txns.compact(table, kind=kind, pool_name="hive").is_accepted
    assert txns.claim(pool="hive") is not None


@pytest.mark.parametrize("pool", [None, "fast"])
def test_a_selective_worker_leaves_what_hms_bridge_does_not_do(
    world: World, txns: Txns, pool: str | None
) -> None:
    world.start(compactor=CompactorSettings(has_hive_workers=True))
    txns = world.txns
    world.create_table("appended", transactional_properties="Insert_Only")
    for table, kind in _OTHERS_WORK:
        assert txns.compact(table, kind=kind, pool_name=pool).is_accepted
    find = partial(world.metastore.find_next_compaction, "w", "1", pool)
    assert find(is_selective=True) is None
    assert txns.compact("ours", pool_name=pool).is_accepted
    taken = find(is_selective=True)
    assert taken is not None
    assert taken.target.table == "ours"
    assert [found.target.table for _ in range(2) if (found := find())] == ["skewed", "appended"]
