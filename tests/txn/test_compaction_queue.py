from dataclasses import replace

import pytest

from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    TXN_COMPONENTS,
)
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
from hms_bridge.txn import compaction_history, compaction_queue
from tests.support.txn_world import TxnWorld

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


def _revoke(world: TxnWorld, timeout_ms: int = DAY_MS) -> int:
    return world.do(lambda c: compaction_queue.revoke_timed_out_workers(world.work(c), timeout_ms))


def test_a_request_is_kept_whole(world: TxnWorld) -> None:
    answer = world.compact(
        "Tab",
        "DS=Ab",
        kind=CompactionType.REBALANCE,
        run_as="hive",
        properties={"k": "v", "leer": ""},
        initiator_id="i",
        initiator_version="4",
        bucket_count=7,
        order_by="a desc",
    )
    assert (answer.id, answer.is_accepted, answer.state) == (1, True, "initiated")
    claimed = world.claim("host-1")
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
        bucket_count=7,
        order_by="a desc",
    )


def test_one_request_at_a_time_for_a_target(world: TxnWorld) -> None:
    assert world.compact().is_accepted
    refused = world.compact()
    assert (refused.id, refused.state) == (None, "refused")
    assert refused.error_message == (
        "Compaction is already scheduled with state='initiated' and id=1"
    )
    assert world.compact(partition="p=1").is_accepted
    assert world.compact("other").is_accepted
    world.claim()
    assert "state='working'" in (world.compact().error_message or "")


def test_what_is_compacted_already_is_refused_until_somebody_writes(world: TxnWorld) -> None:
    txn_id, write_id = world.write()
    world.commit(txn_id)
    world.compacted(write_id)
    assert "state='ready for cleaning'" in (world.compact().error_message or "")
    # An open write does not count: it could not be compacted.
    later, _ = world.write()
    assert not world.compact().is_accepted
    world.commit(later)
    assert world.compact().is_accepted


def test_the_oldest_entry_of_the_pool_comes_first(world: TxnWorld) -> None:
    world.compact("a", pool_name="fast")
    world.compact("b")
    world.compact("c")

    def claimed(pool: str | None = None) -> str | None:
        found = world.claim(pool=pool)
        return found and found.target.table

    assert claimed() == "b"
    assert claimed("other") is None
    assert claimed() == "c"
    assert claimed() is None
    world.time.advance_ms(12 * HOUR_MS + 1)
    world.compact("d", pool_name="fast")
    assert claimed() == "a"
    assert claimed() is None
    assert claimed("fast") == "d"


def test_the_worker_tells_and_marks(world: TxnWorld) -> None:
    world.compact()
    mine = world.start_compaction(5)
    (component,) = world.rows(TXN_COMPONENTS)
    assert (component["TC_OPERATION_TYPE"], component["TC_WRITEID"]) == ("c", 5)
    world.do(lambda c: compaction_queue.update_compactor_state(c, mine, mine.txn_id))
    assert len(world.rows(TXN_COMPONENTS)) == 1
    world.do(lambda c: compaction_queue.set_hadoop_job_id(c, "job", mine.id))
    world.mark_compacted(mine)
    world.mark_compacted(mine)
    (row,) = world.rows(COMPACTION_QUEUE)
    assert (row["CQ_STATE"], row["CQ_WORKER_ID"]) == ("r", None)
    assert (row["CQ_HIGHEST_WRITE_ID"], row["CQ_TXN_ID"]) == (5, mine.txn_id)
    assert (row["CQ_HADOOP_JOB_ID"], row["CQ_NEXT_TXN_ID"]) == ("job", None)


@pytest.mark.parametrize("kind", [TxnType.COMPACTION, TxnType.REBALANCE_COMPACTION])
def test_the_commit_tells_who_may_still_read_the_inputs(world: TxnWorld, kind: TxnType) -> None:
    world.compact()
    mine = world.start_compaction(5, kind=kind)
    world.mark_compacted(mine)
    reader = world.open_one(TxnType.READ_ONLY)
    world.time.advance_ms(10)
    outcome = world.commit(mine.txn_id)
    (row,) = world.rows(COMPACTION_QUEUE)
    assert (row["CQ_NEXT_TXN_ID"], row["CQ_COMMIT_TIME"]) == (reader, world.clock.now_ms())
    assert [entry.id for entry in outcome.compactions] == [mine.id]
    assert world.rows(TXN_COMPONENTS) == []


class TestLostLease:
    """Two workers never publish the same compaction."""

    def _lost(self, world: TxnWorld) -> tuple[Compaction, Compaction]:
        """What two workers hold of the same entry; the first one's was revoked."""
        world.compact()
        first = world.start_compaction(5, worker="one")
        world.time.advance_ms(DAY_MS + 1)
        assert _revoke(world) == 1
        second = world.start_compaction(5, worker="two")
        return first, second

    def test_revoking_takes_only_what_is_too_old(self, world: TxnWorld) -> None:
        world.compact()
        world.claim()
        world.time.advance_ms(DAY_MS)
        assert _revoke(world) == 0
        world.time.advance_ms(1)
        assert _revoke(world) == 1
        assert world.show() == [(1, "initiated")]

    def test_the_loser_can_tell_nothing(self, world: TxnWorld) -> None:
        first, _ = self._lost(world)
        for verb in (
            lambda c: compaction_queue.update_compactor_state(c, first, first.txn_id),
            lambda c: compaction_queue.mark_compacted(c, first),
            lambda c: compaction_history.mark_failed(world.work(c), first),
            lambda c: compaction_history.mark_refused(world.work(c), first),
        ):
            with pytest.raises(NoSuchCompactionError):
                world.do(verb)
        assert world.show() == [(1, "working")]

    def test_the_loser_cannot_commit(self, world: TxnWorld) -> None:
        first, second = self._lost(world)
        with pytest.raises(TxnAbortedError, match=r"its compaction of db/t was taken from it"):
            world.commit(first.txn_id)
        assert [txn.id for txn in world.open_txns().txns if txn.state is TxnState.ABORTED] == [
            first.txn_id
        ]
        world.mark_compacted(second)
        world.commit(second.txn_id)
        assert {row["TC_TXNID"] for row in world.rows(TXN_COMPONENTS)} == {first.txn_id}

    def test_nor_before_another_worker_took_it(self, world: TxnWorld) -> None:
        world.compact()
        first = world.start_compaction(5)
        world.time.advance_ms(DAY_MS + 1)
        _revoke(world)
        with pytest.raises(TxnAbortedError):
            world.commit(first.txn_id)

    def test_workers_that_tell_no_id_are_stopped_at_the_commit(self, world: TxnWorld) -> None:
        first, second = self._lost(world)
        anonymous = replace(first, worker_id=None, started_ms=None, txn_id=None)
        world.mark_compacted(anonymous)
        with pytest.raises(TxnAbortedError):
            world.commit(first.txn_id)
        with pytest.raises(NoSuchCompactionError):
            world.mark_compacted(replace(second, txn_id=TxnId(999)))

    def test_the_same_worker_is_told_apart_by_its_start(self, world: TxnWorld) -> None:
        world.compact()
        first = world.start_compaction(5, worker="same")
        world.time.advance_ms(DAY_MS + 1)
        _revoke(world)
        world.claim("same")
        with pytest.raises(NoSuchCompactionError):
            world.mark_compacted(first)

    @pytest.mark.parametrize("told", ["worker_id", "started_ms", "txn_id"])
    def test_each_thing_that_a_worker_tells_is_enough(self, world: TxnWorld, told: str) -> None:
        first, second = self._lost(world)
        silent = replace(second, worker_id=None, started_ms=None, txn_id=None)
        claim = replace(silent, **{told: getattr(first, told)})
        with pytest.raises(NoSuchCompactionError):
            world.mark_compacted(claim)
        with pytest.raises(NoSuchCompactionError):
            world.fail(claim)
        world.mark_compacted(silent)

    def test_a_revoked_entry_belongs_to_no_transaction(self, world: TxnWorld) -> None:
        world.compact()
        world.start_compaction(5)
        world.time.advance_ms(DAY_MS + 1)
        _revoke(world)
        (row,) = world.rows(COMPACTION_QUEUE)
        assert (row["CQ_TXN_ID"], row["CQ_WORKER_ID"], row["CQ_START"]) == (None, None, None)

    def test_a_failed_entry_cannot_be_committed(self, world: TxnWorld) -> None:
        world.compact()
        mine = world.start_compaction(5)
        world.fail(mine)
        with pytest.raises(TxnAbortedError):
            world.commit(mine.txn_id)


def test_a_compactor_that_compacted_nothing_commits(world: TxnWorld) -> None:
    outcome = world.commit(world.open_one(TxnType.COMPACTION))
    assert outcome.is_event_due
    assert outcome.compactions == ()


def test_failed_refused_and_never_queued(world: TxnWorld) -> None:
    for table in ("a", "b"):
        world.compact(table)
    failed = world.start_compaction(1)
    entry = world.fail(replace(failed, error_message="boom"))
    assert entry is not None
    assert (entry.state, entry.error_message) == (CompactionState.FAILED, "boom")
    assert world.fail(failed) is None
    refused = world.claim()
    assert refused is not None
    world.do(lambda c: compaction_history.mark_refused(world.work(c), refused))
    never = Compaction(
        id=CompactionId(0),
        target=Target("db", "c"),
        type=CompactionType.MINOR,
        state=CompactionState.INITIATED,
        error_message="cannot read",
    )
    entry = world.fail(never)
    assert entry is not None
    assert (entry.id, entry.state) == (3, CompactionState.DID_NOT_INITIATE)
    states = {row["CC_ID"]: row["CC_STATE"] for row in world.rows(COMPLETED_COMPACTIONS)}
    assert states == {1: "f", 2: "c", 3: "a"}
    assert world.rows(COMPACTION_QUEUE) == []
    for verb in (compaction_history.mark_failed, compaction_history.mark_refused):
        with pytest.raises(NoSuchCompactionError, match="compaction 77 is not in the queue"):
            world.do(lambda c, v=verb: v(world.work(c), replace(failed, id=CompactionId(77))))


def test_ended_transactions_cannot_compact(world: TxnWorld) -> None:
    world.compact()
    claimed = world.claim()
    assert claimed is not None
    with pytest.raises(NoSuchTxnError):
        world.do(lambda c: compaction_queue.update_compactor_state(c, claimed, TxnId(9)))


def test_aborting_requests(world: TxnWorld) -> None:
    for table in ("a", "b", "c"):
        world.compact(table)
    world.claim()
    ended = world.start_compaction(1)
    world.fail(ended)
    ids = [CompactionId(one) for one in (1, 2, 3, 9)]
    outcome = world.do(lambda c: compaction_history.abort_compactions(world.work(c), ids))
    assert outcome == {1: "busy", 2: "ended", 3: "aborted", 9: "unknown"}
    assert (3, "aborted") in world.show()
    with pytest.raises(NoSuchCompactionError, match="name the entries"):
        world.do(lambda c: compaction_history.abort_compactions(world.work(c), []))


def test_showing(world: TxnWorld) -> None:
    for table in ("a", "b", "c", "d"):
        world.compact(table)
        world.time.advance_ms(1)
    done = world.start_compaction(1)
    world.time.advance_ms(1)
    world.mark_compacted(done)
    world.commit(done.txn_id)
    world.time.advance_ms(1)
    world.fail(world.start_compaction(1))
    words = [(3, "initiated"), (4, "initiated"), (2, "failed"), (1, "ready for cleaning")]
    assert world.show() == words
    assert world.show(ShowCompactionsRequest(limit=1)) == words[:1]
    assert world.show(ShowCompactionsRequest(scope=Scope(table="B"))) == words[2:3]
    assert world.show(ShowCompactionsRequest(state=CompactionState.INITIATED)) == words[:2]
    assert world.show(ShowCompactionsRequest(id=CompactionId(4))) == words[1:2]
    assert world.show(ShowCompactionsRequest(type=CompactionType.MAJOR)) == []
    assert world.show(ShowCompactionsRequest(scope=Scope("x"))) == []


def _entry(number: int, state: CompactionState, **more: object) -> Compaction:
    given = {"type": CompactionType.MINOR, "enqueued_ms": 10 * DAY_MS} | more
    return Compaction(id=CompactionId(number), target=Target("d", "t"), state=state, **given)  # type: ignore[arg-type]


SUCCEEDED, FAILED = CompactionState.SUCCEEDED, CompactionState.FAILED
DID_NOT, REFUSED = CompactionState.DID_NOT_INITIATE, CompactionState.REFUSED


@pytest.mark.parametrize(
    ("state", "kept"), [(SUCCEEDED, 3), (FAILED, 3), (REFUSED, 3), (DID_NOT, 2)]
)
def test_the_history_keeps_the_newest(state: CompactionState, kept: int) -> None:
    history = [_entry(number, state) for number in range(1, 7)]
    dropped = compaction_history.overtaken(history, 11 * DAY_MS)
    assert sorted(dropped) == list(range(1, 7 - kept))


@pytest.mark.parametrize("state", [FAILED, DID_NOT, REFUSED])
def test_what_was_made_good_is_dropped_after_a_week(state: CompactionState) -> None:
    def is_dropped(old: CompactionType, new: CompactionType, days: int = 8, newer: int = 2) -> bool:
        history = [_entry(1, state, type=old), _entry(newer, SUCCEEDED, type=new)]
        return bool(compaction_history.overtaken(history, (10 + days) * DAY_MS))

    minor, major = CompactionType.MINOR, CompactionType.MAJOR
    assert is_dropped(minor, minor)
    assert is_dropped(minor, major)
    assert is_dropped(major, major)
    assert not is_dropped(major, minor)
    assert not is_dropped(minor, minor, days=7)
    assert not is_dropped(minor, minor, newer=0)


def test_purging(world: TxnWorld) -> None:
    for _ in range(5):
        world.compact()
        world.fail(world.start_compaction(1))
    assert world.do(lambda c: compaction_history.purge_history(world.work(c))) == 2
    assert [number for number, _ in world.show()] == [3, 4, 5] or len(world.show()) == 3


def test_write_ids_of_partitions_are_those_of_the_table(world: TxnWorld) -> None:
    txn_id, write_id = world.write(partition="p=1")
    world.commit(txn_id)
    world.compacted(write_id, partition="p=1")
    assert not world.compact(partition="p=1").is_accepted
    assert world.compact(partition="p=2").is_accepted
    assert write_id == WriteId(1)
