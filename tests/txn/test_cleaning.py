from dataclasses import replace

import pytest

from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    TXN_COMPONENTS,
    TXNS,
)
from hms_bridge.config.settings import CompactorSettings
from hms_bridge.errors import NoSuchCompactionError
from hms_bridge.model.compaction import (
    Compaction,
    CompactionRequest,
    CompactionState,
    CompactionType,
)
from hms_bridge.model.ids import WriteId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.target import Target
from hms_bridge.model.txn import TxnType
from hms_bridge.txn import aborted_writes, cleaning, compaction_queue
from tests.support.txns import Txns, component
from tests.support.world import World

DAY_MS = 24 * 3_600_000
AT_ONCE = CompactorSettings(aborted_txn_threshold=0, abort_retention_ms=0)


def _written(txns: Txns, count: int = 2, **more: object) -> int:
    highest = 0
    for _ in range(count):
        txn_id, highest = txns.write(**more)  # type: ignore[arg-type]
        txns.commit(txn_id)
    return highest


def _aborts(world: World) -> list[Compaction]:
    return list(world.metastore.find_ready_to_clean_aborts())


def _potential(world: World, threshold: int = 1000, age_ms: int = -1) -> set[tuple[object, ...]]:
    found = world.metastore.find_potential_compactions(threshold, age_ms)
    return {
        (one.target.table, one.target.partition, one.has_too_many_aborts, one.has_old_abort)
        for one in found
    }


class TestWhen:
    def test_not_before_the_commit(self, txns: Txns) -> None:
        txns.compact()
        mine = txns.start_compaction(_written(txns))
        txns.mark_compacted(mine)
        txns.grow_old()
        assert txns.ready() == []
        txns.commit(mine.txn_id)
        txns.grow_old()
        assert txns.ready() == [mine.id]

    def test_not_while_an_id_may_still_appear(self, txns: Txns) -> None:
        mine = txns.compacted(_written(txns))
        assert txns.ready() == []
        txns.grow_old()
        assert txns.ready() == [mine.id]

    @pytest.mark.parametrize("kind", [TxnType.DEFAULT, TxnType.READ_ONLY])
    def test_not_while_a_reader_from_before_is_open(self, txns: Txns, kind: TxnType) -> None:
        highest = _written(txns)
        reader = txns.open_one(kind)
        mine = txns.compacted(highest)
        txns.grow_old()
        assert txns.ready() == []
        txns.commit(reader)
        assert txns.ready() == [mine.id]

    def test_not_while_the_last_one_who_opened_before_the_commit_is_open(
        self, world: World, txns: Txns
    ) -> None:
        """Its id is the highest that was given then, CQ_NEXT_TXN_ID itself: Hive lets it pass,
        though it counts the compaction as open and reads the inputs."""
        txns.compact()
        mine = txns.start_compaction(_written(txns))
        txns.mark_compacted(mine)
        reader = txns.open_one()
        snapshot = txns.snapshot(reader)
        assert not snapshot.is_valid(mine.txn_id)
        txns.commit(mine.txn_id)
        txns.grow_old()
        assert world.records(COMPACTION_QUEUE)[0]["CQ_NEXT_TXN_ID"] == reader
        assert txns.ready() == []
        txns.commit(reader)
        assert txns.ready() == [mine.id]

    def test_whoever_asked_for_a_cleaning_here_counts_here(self, world: World, txns: Txns) -> None:
        """It has no component: Hive's soft drop, or a failed statement (Hive:
        InsertCompactionRequestCommand). That it reads another database says nothing of this one."""
        highest = _written(txns)
        asking = txns.open_one(TxnType.SOFT_DELETE)
        world.metastore.add_write_ids_to_min_history(asking, {"other.t": WriteId(1)})
        mine = txns.compacted(highest)
        txns.grow_old()
        assert txns.ready() == [mine.id]
        world.put(
            COMPACTION_QUEUE,
            CQ_ID=99,
            CQ_DATABASE="db",
            CQ_TABLE="gone",
            CQ_TYPE=CompactionType.MAJOR.stored,
            CQ_STATE=CompactionState.READY_FOR_CLEANING.stored,
            CQ_TXN_ID=asking,
        )
        assert txns.ready() == []

    def test_readers_from_after_the_commit_do_not_matter(self, txns: Txns) -> None:
        mine = txns.compacted(_written(txns))
        txns.open(2)
        txns.grow_old()
        assert txns.ready() == [mine.id]

    def test_an_aborted_compaction_never_comes(self, world: World, txns: Txns) -> None:
        txns.compact()
        mine = txns.start_compaction(_written(txns))
        txns.mark_compacted(mine)
        txns.abort(mine.txn_id)
        txns.grow_old()
        assert txns.ready() == []
        txns.housekeep()
        assert txns.ready() == []
        assert txns.show() == [(mine.id, "failed")]
        # Its output is remembered until it is cleaned.
        assert [row["TC_OPERATION_TYPE"] for row in world.records(TXN_COMPONENTS)] == ["c"]

    def test_an_open_one_does_not_come_whatever_its_entry_says(
        self, world: World, txns: Txns
    ) -> None:
        txns.compact()
        mine = txns.start_compaction(_written(txns))
        txns.mark_compacted(mine)
        world.execute(COMPACTION_QUEUE.update().values(CQ_NEXT_TXN_ID=0))
        txns.grow_old()
        assert txns.ready() == []
        txns.housekeep()
        assert txns.show() == [(mine.id, "ready for cleaning")]

    def test_entries_without_an_end_are_judged_by_housekeeping(
        self, world: World, txns: Txns
    ) -> None:
        """As a Hive leaves them after a rebalance, or before compactions had transactions."""
        mine = txns.compacted(_written(txns))
        reader = txns.open_one()
        blank = {"CQ_NEXT_TXN_ID": None, "CQ_COMMIT_TIME": None}
        world.execute(COMPACTION_QUEUE.update().values(blank))
        txns.grow_old()
        assert txns.ready() == []
        txns.housekeep()
        assert txns.ready() == []
        txns.commit(reader)
        txns.grow_old()
        assert txns.ready() == [mine.id]

    def test_the_retention_counts_from_the_commit(self, world: World, txns: Txns) -> None:
        mine = txns.compacted(_written(txns))
        world.clock.advance_ms(5000)
        assert txns.ready(5001) == []
        assert txns.ready(5000) == [mine.id]

    def test_a_postponed_entry_waits_from_its_last_try(self, world: World, txns: Txns) -> None:
        mine = txns.compacted(_written(txns))
        world.clock.advance_ms(DAY_MS)
        world.metastore.mark_cleanings_started([mine.id])
        world.metastore.mark_cleaning_postponed(mine, reason="busy", retry_retention_ms=300_000)
        (row,) = world.records(COMPACTION_QUEUE)
        assert (row["CQ_STATE"], row["CQ_ERROR_MESSAGE"]) == ("r", "busy")
        assert row["CQ_RETRY_RETENTION"] == 300_000
        world.clock.advance_ms(299_999)
        assert txns.ready() == []
        world.clock.advance_ms(1)
        assert txns.ready() == [mine.id]

    def test_the_lowest_of_a_target_comes_first(self, txns: Txns) -> None:
        first = txns.compacted(_written(txns))
        second = txns.compacted(_written(txns))
        other = txns.compacted(_written(txns, table="u"), table="u")
        part = txns.compacted(_written(txns, partition="p=1"), partition="p=1")
        txns.grow_old()
        assert txns.ready() == [first.id, other.id, part.id]
        txns.mark_cleaned(first)
        assert txns.ready() == [second.id, other.id, part.id]


class TestCleaned:
    def test_forgets_up_to_the_highest_write_id_and_not_beyond(
        self, world: World, txns: Txns
    ) -> None:
        _written(txns, partition="p=1")
        aborted, _ = txns.write(partition="p=1")
        txns.abort(aborted)
        highest = _written(txns, 1, partition="p=1")
        later, _ = txns.write(partition="p=1")
        txns.commit(later)
        later_aborted, _ = txns.write(partition="p=1")
        txns.abort(later_aborted)
        elsewhere, _ = txns.write(partition="p=2")
        txns.abort(elsewhere)
        _written(txns, 1, partition="p=2")
        mine = txns.compacted(highest, partition="p=1")
        txns.mark_cleaned(mine)
        left = {
            (row["CTC_PARTITION"], row["CTC_TXNID"])
            for row in world.records(COMPLETED_TXN_COMPONENTS)
        }
        assert ("p=1", later) in left
        assert len(left) == 2
        assert {row["TC_TXNID"] for row in world.records(TXN_COMPONENTS)} == {
            later_aborted,
            elsewhere,
        }
        (history,) = world.records(COMPLETED_COMPACTIONS)
        assert (history["CC_STATE"], history["CC_END"]) == ("s", world.clock.now_ms())
        assert world.records(COMPACTION_QUEUE) == []

    def test_open_transactions_are_never_forgotten(self, world: World, txns: Txns) -> None:
        opened, _ = txns.write()
        mine = txns.compacted(_written(txns))
        txns.mark_cleaned(mine)
        assert {row["TC_TXNID"] for row in world.records(TXN_COMPONENTS)} == {opened}

    def test_the_cleaner_may_lower_the_bound(self, world: World, txns: Txns) -> None:
        first, write_id = txns.write()
        second, _ = txns.write()
        txns.abort_many([first, second])
        mine = txns.compacted(_written(txns))
        txns.mark_cleaned(replace(mine, highest_write_id=write_id))
        assert {row["TC_TXNID"] for row in world.records(TXN_COMPONENTS)} == {second}

    def test_zero_is_a_bound_below_every_write(self, world: World, txns: Txns) -> None:
        aborted, _ = txns.write()
        txns.abort(aborted)
        mine = txns.compacted(_written(txns))
        txns.mark_cleaned(replace(mine, highest_write_id=WriteId(0)))
        assert {row["TC_TXNID"] for row in world.records(TXN_COMPONENTS)} == {aborted}

    def test_a_compaction_that_reached_nothing_forgets_no_write(
        self, world: World, txns: Txns
    ) -> None:
        _written(txns)
        mine = txns.compacted(WriteId(0))
        before = world.records(COMPLETED_TXN_COMPONENTS)
        txns.mark_cleaned(mine)
        assert before
        assert world.records(COMPLETED_TXN_COMPONENTS) == before

    def test_listed_write_ids_only(self, world: World, txns: Txns) -> None:
        pairs = [txns.write() for _ in range(3)]
        txns.abort_many([txn_id for txn_id, _ in pairs[:2]])
        mine = txns.compacted(9)
        ids = [write_id for _, write_id in pairs[1:]]
        world.metastore.forget_aborted_components(mine, ids)
        assert {row["TC_TXNID"] for row in world.records(TXN_COMPONENTS)} == {
            pairs[0][0],
            pairs[2][0],
        }

    def test_a_lock_without_a_write_id_does_not_stay_for_ever(
        self, world: World, txns: Txns
    ) -> None:
        idle = txns.open_one()
        txns.lock(idle, component())
        busy = txns.open_one()
        txns.lock(busy, component())
        txns.allocate(busy)
        blank = TXN_COMPONENTS.update().values(TC_WRITEID=None)
        world.execute(blank)
        txns.abort_many([idle, busy])
        low = txns.compacted(WriteId(0), table="x")
        txns.mark_cleaned(low)
        _written(txns, 1)
        mine = txns.compacted(1)
        txns.mark_cleaned(mine)
        assert world.records(TXN_COMPONENTS) == []

    def test_unknown_entries_are_refused(self, txns: Txns) -> None:
        mine = txns.compacted(_written(txns))
        txns.mark_cleaned(mine)
        with pytest.raises(NoSuchCompactionError):
            txns.mark_cleaned(mine)

    def test_a_dropped_table_is_forgotten_whole(self, world: World, txns: Txns) -> None:
        highest = _written(txns, partition="p=1")
        _written(txns, partition="p=2")
        aborted, _ = txns.write(partition="p=2")
        txns.abort(aborted)
        gone = CompactionRequest(
            target=Target("db", "t"),
            type=CompactionType.MINOR,
            properties={"location": "/gone"},
        )
        world.do(compaction_queue.enqueue, gone)
        mine = txns.finish(highest)
        world.execute(COMPACTION_QUEUE.update().values(CQ_HIGHEST_WRITE_ID=99))
        txns.mark_cleaned(replace(mine, highest_write_id=None))
        assert world.records(COMPLETED_TXN_COMPONENTS) == []
        assert world.records(TXN_COMPONENTS) == []


class TestAborts:
    def _aborted(self, txns: Txns, count: int, **more: object) -> list[int]:
        ids = [txns.write(**more)[0] for _ in range(count)]  # type: ignore[arg-type]
        txns.abort_many(ids)
        return ids

    def test_thresholds(self, world: World, txns: Txns) -> None:
        world.start(
            compactor=replace(
                AT_ONCE, aborted_txn_threshold=2, aborted_txn_time_threshold_ms=DAY_MS
            )
        )
        self._aborted(txns, 2)
        self._aborted(txns, 3, partition="p=1")
        (entry,) = _aborts(world)
        assert (entry.target.partition, entry.has_too_many_aborts, entry.has_old_abort) == (
            "p=1",
            True,
            False,
        )
        assert entry.type is CompactionType.ABORT_TXN_CLEANUP
        assert entry.highest_write_id == 5
        world.clock.advance_ms(DAY_MS + 1)
        found = _aborts(world)
        assert {(one.target.partition, one.has_too_many_aborts) for one in found} == {
            (None, False),
            ("p=1", True),
        }
        assert all(one.has_old_abort for one in found)

    def test_only_below_open_writes(self, world: World, txns: Txns) -> None:
        """An open transaction among aborted ones: what lies above it must wait, whether or not it
        told what it writes."""
        world.start(compactor=AT_ONCE)
        self._aborted(txns, 1)
        opened = txns.open_one()
        assert txns.allocate(opened) == [2]
        self._aborted(txns, 1)
        (entry,) = _aborts(world)
        assert entry.highest_write_id == 1
        txns.mark_cleaned(entry)
        assert [row["TC_WRITEID"] for row in world.records(TXN_COMPONENTS)] == [3]
        assert _aborts(world) == []
        txns.commit(opened)
        (entry,) = _aborts(world)
        assert entry.highest_write_id == 3
        txns.mark_cleaned(entry)
        assert world.records(TXN_COMPONENTS) == []
        assert world.records(COMPLETED_COMPACTIONS) == []

    def test_a_postponed_cleanup_waits(self, world: World, txns: Txns) -> None:
        world.start(compactor=AT_ONCE)
        self._aborted(txns, 1)
        (entry,) = _aborts(world)
        assert entry.id == 0

        def postpone(one: Compaction, wait_ms: int) -> None:
            world.metastore.mark_cleaning_postponed(one, reason="why", retry_retention_ms=wait_ms)

        postpone(entry, 100)
        assert _aborts(world) == []
        assert world.metastore.find_ready_to_clean_aborts(is_retried_now=True)
        world.clock.advance_ms(100)
        (again,) = _aborts(world)
        assert (again.id > 0, again.retry_retention_ms) == (True, 100)
        postpone(again, 200)
        assert len(world.records(COMPACTION_QUEUE)) == 1
        world.clock.advance_ms(199)
        assert _aborts(world) == []
        world.clock.advance_ms(1)
        (again,) = _aborts(world)
        txns.mark_cleaned(again)
        assert world.records(COMPACTION_QUEUE) == []
        assert world.records(TXN_COMPONENTS) == []

    def test_those_that_have_to_wait_hide_no_others(
        self, world: World, txns: Txns, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.start(compactor=AT_ONCE)
        monkeypatch.setattr(aborted_writes, "FETCH_MAX", 2)
        free, waiting = ("a", "b", "e"), ("c", "d")
        for table in waiting:
            txns.write(table=table)
        for table in (*free, *waiting):
            txns.abort_many([txns.write(table=table)[0]])
        first = _aborts(world)
        assert len(first) == 2
        for entry in first:
            world.metastore.mark_cleaning_postponed(entry, reason="why", retry_retention_ms=DAY_MS)
        (last,) = _aborts(world)
        assert {entry.target.table for entry in (*first, last)} == set(free)
        assert {row[0] for row in _potential(world, threshold=0)} == {*free, *waiting}

    def test_cleanups_are_no_compactions(self, world: World, txns: Txns) -> None:
        world.start(compactor=AT_ONCE)
        self._aborted(txns, 1)
        (entry,) = _aborts(world)
        world.metastore.mark_cleaning_postponed(entry, reason="why", retry_retention_ms=0)
        txns.grow_old()
        txns.housekeep()
        assert txns.ready() == []
        assert txns.claim() is None
        mine = txns.compacted(_written(txns))
        txns.mark_cleaned(mine)
        assert world.records(COMPACTION_QUEUE) == []


def test_failed_cleanings_that_were_made_good_hide_no_others(
    world: World, txns: Txns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cleaning, "FETCH_MAX", 1)
    failed = []
    for table in ("a", "b"):
        txns.commit(txns.write(table=table)[0])
        txns.compact(table)
        ready = replace(txns.finish(1), state=CompactionState.READY_FOR_CLEANING)
        txns.fail(replace(ready, error_message="too often"))
        failed.append(ready.id)
    txns.commit(txns.write(table="a")[0])
    txns.compact("a")
    txns.mark_cleaned(txns.finish(2))
    world.clock.advance_ms(DAY_MS + 1)
    assert world.metastore.retry_failed_cleanings(DAY_MS) == 1
    (again,) = world.records(COMPACTION_QUEUE)
    assert again["CQ_ID"] == failed[1]
    assert world.metastore.retry_failed_cleanings(DAY_MS) == 0


def test_potential_compactions(world: World, txns: Txns) -> None:
    assert _potential(world) == set()
    _written(txns)
    _written(txns, partition="p=1")
    aborted, _ = txns.write(DataOperation.UPDATE, "p=2")
    txns.abort(aborted)
    assert _potential(world) == {("t", None, False, False), ("t", "p=1", False, False)}
    assert ("t", "p=2", True, False) in _potential(world, threshold=0)
    world.clock.advance_ms(1000)
    assert ("t", "p=2", False, True) in _potential(world, age_ms=999)
    assert ("t", "p=2", False, True) not in _potential(world, age_ms=1000)
    txns.mark_cleaned(txns.compacted(2))
    assert ("t", None, False, False) not in _potential(world)


def test_several_are_recorded_together_or_none(world: World, txns: Txns) -> None:
    first, second, third = (
        txns.compacted(_written(txns, table=table), table=table) for table in ("x", "y", "z")
    )
    txns.mark_cleaned(second)
    before = (world.records(COMPACTION_QUEUE), world.records(COMPLETED_TXN_COMPONENTS))
    with pytest.raises(NoSuchCompactionError, match=f"compaction {second.id} "):
        world.metastore.mark_all_cleaned([third, second, first])
    assert (world.records(COMPACTION_QUEUE), world.records(COMPLETED_TXN_COMPONENTS)) == before
    world.metastore.mark_all_cleaned([third, first])
    assert (world.records(COMPACTION_QUEUE), world.records(COMPLETED_TXN_COMPONENTS)) == ([], [])


def test_aborted_writes_stay_invisible_through_everything(world: World, txns: Txns) -> None:
    """No cleaning, no housekeeping and no time makes them visible before their files are gone."""
    world.start(compactor=AT_ONCE)
    aborted, write_id = txns.write(partition="p=1")
    txns.abort(aborted)
    _written(txns, partition="p=2")
    for _ in range(3):
        mine = txns.compacted(_written(txns, 1, partition="p=2"), partition="p=2")
        txns.grow_old()
        txns.mark_cleaned(mine)
        txns.open_one()
        txns.grow_old()
        txns.housekeep()
    assert not txns.valid().is_valid(write_id)
    (entry,) = _aborts(world)
    txns.mark_cleaned(entry)
    txns.housekeep()
    assert aborted not in {row["TXN_ID"] for row in world.records(TXNS)}
