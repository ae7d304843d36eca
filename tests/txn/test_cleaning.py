from dataclasses import replace

import pytest

from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    TXN_COMPONENTS,
    TXNS,
)
from hms_bridge.errors import NoSuchCompactionError
from hms_bridge.model.compaction import (
    Compaction,
    CompactionType,
    PotentialCompaction,
)
from hms_bridge.model.ids import WriteId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.txn import TxnType
from hms_bridge.txn import aborted_writes, cleaning, potential_compactions
from tests.support.txn_world import TxnWorld, component

DAY_MS = 24 * 3_600_000


def _written(world: TxnWorld, count: int = 2, **more: object) -> int:
    highest = 0
    for _ in range(count):
        txn_id, highest = world.write(**more)  # type: ignore[arg-type]
        world.commit(txn_id)
    return highest


def _aborts(world: TxnWorld) -> list[Compaction]:
    return list(world.do(lambda c: aborted_writes.find_ready_to_clean_aborts(world.work(c))))


def _potential(world: TxnWorld, threshold: int = 1000, age_ms: int = -1) -> set[tuple[object, ...]]:
    found: tuple[PotentialCompaction, ...] = world.do(
        lambda c: potential_compactions.find_potential_compactions(world.work(c), threshold, age_ms)
    )
    return {
        (one.target.table, one.target.partition, one.has_too_many_aborts, one.has_old_abort)
        for one in found
    }


class TestWhen:
    def test_not_before_the_commit(self, world: TxnWorld) -> None:
        world.compact()
        mine = world.start_compaction(_written(world))
        world.mark_compacted(mine)
        world.grow_old()
        assert world.ready() == []
        world.commit(mine.txn_id)
        world.grow_old()
        assert world.ready() == [mine.id]

    def test_not_while_an_id_may_still_appear(self, world: TxnWorld) -> None:
        mine = world.compacted(_written(world))
        assert world.ready() == []
        world.grow_old()
        assert world.ready() == [mine.id]

    @pytest.mark.parametrize("kind", [TxnType.DEFAULT, TxnType.READ_ONLY])
    def test_not_while_a_reader_from_before_is_open(self, world: TxnWorld, kind: TxnType) -> None:
        highest = _written(world)
        reader = world.open_one(kind)
        mine = world.compacted(highest)
        world.grow_old()
        assert world.ready() == []
        world.commit(reader)
        assert world.ready() == [mine.id]

    def test_not_while_the_last_one_who_opened_before_the_commit_is_open(
        self, world: TxnWorld
    ) -> None:
        """Its id is the highest that was given then, CQ_NEXT_TXN_ID itself: Hive lets it pass,
        though it counts the compaction as open and reads the inputs."""
        world.compact()
        mine = world.start_compaction(_written(world))
        world.mark_compacted(mine)
        reader = world.open_one()
        snapshot = world.snapshot(reader)
        assert not snapshot.is_valid(mine.txn_id)
        world.commit(mine.txn_id)
        world.grow_old()
        assert world.rows(COMPACTION_QUEUE)[0]["CQ_NEXT_TXN_ID"] == reader
        assert world.ready() == []
        world.commit(reader)
        assert world.ready() == [mine.id]

    def test_readers_from_after_the_commit_do_not_matter(self, world: TxnWorld) -> None:
        mine = world.compacted(_written(world))
        world.open(2)
        world.grow_old()
        assert world.ready() == [mine.id]

    def test_an_aborted_compaction_never_comes(self, world: TxnWorld) -> None:
        world.compact()
        mine = world.start_compaction(_written(world))
        world.mark_compacted(mine)
        world.abort(mine.txn_id)
        world.grow_old()
        assert world.ready() == []
        world.housekeep()
        assert world.ready() == []
        assert world.show() == [(mine.id, "failed")]
        # Its output is remembered until it is cleaned.
        assert [row["TC_OPERATION_TYPE"] for row in world.rows(TXN_COMPONENTS)] == ["c"]

    def test_an_open_one_does_not_come_whatever_its_entry_says(self, world: TxnWorld) -> None:
        world.compact()
        mine = world.start_compaction(_written(world))
        world.mark_compacted(mine)
        world.do(lambda c: c.execute(COMPACTION_QUEUE.update().values(CQ_NEXT_TXN_ID=0)))
        world.grow_old()
        assert world.ready() == []
        world.housekeep()
        assert world.show() == [(mine.id, "ready for cleaning")]

    def test_entries_without_an_end_are_judged_by_housekeeping(self, world: TxnWorld) -> None:
        """As a Hive leaves them after a rebalance, or before compactions had transactions."""
        mine = world.compacted(_written(world))
        reader = world.open_one()
        blank = {"CQ_NEXT_TXN_ID": None, "CQ_COMMIT_TIME": None}
        world.do(lambda c: c.execute(COMPACTION_QUEUE.update().values(blank)))
        world.grow_old()
        assert world.ready() == []
        world.housekeep()
        assert world.ready() == []
        world.commit(reader)
        world.grow_old()
        assert world.ready() == [mine.id]

    def test_the_retention_counts_from_the_commit(self, world: TxnWorld) -> None:
        mine = world.compacted(_written(world))
        world.time.advance_ms(5000)
        assert world.ready(5001) == []
        assert world.ready(5000) == [mine.id]

    def test_a_postponed_entry_waits_from_its_last_try(self, world: TxnWorld) -> None:
        mine = world.compacted(_written(world))
        world.time.advance_ms(DAY_MS)
        world.do(lambda c: cleaning.mark_cleaning_started(world.work(c), mine.id))
        world.do(
            lambda c: cleaning.mark_cleaning_postponed(
                world.work(c), mine, reason="busy", retry_retention_ms=300_000
            )
        )
        (row,) = world.rows(COMPACTION_QUEUE)
        assert (row["CQ_STATE"], row["CQ_ERROR_MESSAGE"]) == ("r", "busy")
        assert row["CQ_RETRY_RETENTION"] == 300_000
        world.time.advance_ms(299_999)
        assert world.ready() == []
        world.time.advance_ms(1)
        assert world.ready() == [mine.id]

    def test_the_lowest_of_a_target_comes_first(self, world: TxnWorld) -> None:
        first = world.compacted(_written(world))
        second = world.compacted(_written(world))
        other = world.compacted(_written(world, table="u"), table="u")
        part = world.compacted(_written(world, partition="p=1"), partition="p=1")
        world.grow_old()
        assert world.ready() == [first.id, other.id, part.id]
        world.mark_cleaned(first)
        assert world.ready() == [second.id, other.id, part.id]


class TestCleaned:
    def test_forgets_up_to_the_highest_write_id_and_not_beyond(self, world: TxnWorld) -> None:
        _written(world, partition="p=1")
        aborted, _ = world.write(partition="p=1")
        world.abort(aborted)
        highest = _written(world, 1, partition="p=1")
        later, _ = world.write(partition="p=1")
        world.commit(later)
        later_aborted, _ = world.write(partition="p=1")
        world.abort(later_aborted)
        elsewhere, _ = world.write(partition="p=2")
        world.abort(elsewhere)
        _written(world, 1, partition="p=2")
        mine = world.compacted(highest, partition="p=1")
        world.mark_cleaned(mine)
        left = {
            (row["CTC_PARTITION"], row["CTC_TXNID"]) for row in world.rows(COMPLETED_TXN_COMPONENTS)
        }
        assert ("p=1", later) in left
        assert len(left) == 2
        assert {row["TC_TXNID"] for row in world.rows(TXN_COMPONENTS)} == {later_aborted, elsewhere}
        (history,) = world.rows(COMPLETED_COMPACTIONS)
        assert (history["CC_STATE"], history["CC_END"]) == ("s", world.clock.now_ms())
        assert world.rows(COMPACTION_QUEUE) == []

    def test_open_transactions_are_never_forgotten(self, world: TxnWorld) -> None:
        opened, _ = world.write()
        mine = world.compacted(_written(world))
        world.mark_cleaned(mine)
        assert {row["TC_TXNID"] for row in world.rows(TXN_COMPONENTS)} == {opened}

    def test_the_cleaner_may_lower_the_bound(self, world: TxnWorld) -> None:
        first, write_id = world.write()
        second, _ = world.write()
        world.abort_many([first, second])
        mine = world.compacted(_written(world))
        world.mark_cleaned(replace(mine, highest_write_id=write_id))
        assert {row["TC_TXNID"] for row in world.rows(TXN_COMPONENTS)} == {second}

    def test_zero_is_a_bound_below_every_write(self, world: TxnWorld) -> None:
        aborted, _ = world.write()
        world.abort(aborted)
        mine = world.compacted(_written(world))
        world.mark_cleaned(replace(mine, highest_write_id=WriteId(0)))
        assert {row["TC_TXNID"] for row in world.rows(TXN_COMPONENTS)} == {aborted}

    def test_a_compaction_that_reached_nothing_forgets_no_write(self, world: TxnWorld) -> None:
        _written(world)
        mine = world.compacted(WriteId(0))
        before = world.rows(COMPLETED_TXN_COMPONENTS)
        world.mark_cleaned(mine)
        assert before
        assert world.rows(COMPLETED_TXN_COMPONENTS) == before

    def test_listed_write_ids_only(self, world: TxnWorld) -> None:
        pairs = [world.write() for _ in range(3)]
        world.abort_many([txn_id for txn_id, _ in pairs[:2]])
        mine = world.compacted(9)
        ids = [write_id for _, write_id in pairs[1:]]
        world.do(lambda c: aborted_writes.forget_aborted_components(world.work(c), mine, ids))
        assert {row["TC_TXNID"] for row in world.rows(TXN_COMPONENTS)} == {
            pairs[0][0],
            pairs[2][0],
        }

    def test_a_lock_without_a_write_id_does_not_stay_for_ever(self, world: TxnWorld) -> None:
        idle = world.open_one()
        world.lock(idle, component())
        busy = world.open_one()
        world.lock(busy, component())
        world.allocate(busy)
        blank = TXN_COMPONENTS.update().values(TC_WRITEID=None)
        world.do(lambda c: c.execute(blank))
        world.abort_many([idle, busy])
        low = world.compacted(WriteId(0), table="x")
        world.mark_cleaned(low)
        _written(world, 1)
        mine = world.compacted(1)
        world.mark_cleaned(mine)
        assert world.rows(TXN_COMPONENTS) == []

    def test_unknown_entries_are_refused(self, world: TxnWorld) -> None:
        mine = world.compacted(_written(world))
        world.mark_cleaned(mine)
        with pytest.raises(NoSuchCompactionError):
            world.mark_cleaned(mine)

    def test_a_dropped_table_is_forgotten_whole(self, world: TxnWorld) -> None:
        highest = _written(world, partition="p=1")
        _written(world, partition="p=2")
        aborted, _ = world.write(partition="p=2")
        world.abort(aborted)
        mine = world.compacted(highest, properties={"location": "/gone"})
        world.do(lambda c: c.execute(COMPACTION_QUEUE.update().values(CQ_HIGHEST_WRITE_ID=99)))
        world.mark_cleaned(replace(mine, highest_write_id=None))
        assert world.rows(COMPLETED_TXN_COMPONENTS) == []
        assert world.rows(TXN_COMPONENTS) == []


class TestAborts:
    def _aborted(self, world: TxnWorld, count: int, **more: object) -> list[int]:
        ids = [world.write(**more)[0] for _ in range(count)]  # type: ignore[arg-type]
        world.abort_many(ids)
        return ids

    def test_thresholds(self, world: TxnWorld) -> None:
        world.compactor = replace(
            world.compactor, aborted_txn_threshold=2, aborted_txn_time_threshold_ms=DAY_MS
        )
        self._aborted(world, 2)
        self._aborted(world, 3, partition="p=1")
        (entry,) = _aborts(world)
        assert (entry.target.partition, entry.has_too_many_aborts, entry.has_old_abort) == (
            "p=1",
            True,
            False,
        )
        assert entry.type is CompactionType.ABORT_TXN_CLEANUP
        assert entry.highest_write_id == 5
        world.time.advance_ms(DAY_MS + 1)
        found = _aborts(world)
        assert {(one.target.partition, one.has_too_many_aborts) for one in found} == {
            (None, False),
            ("p=1", True),
        }
        assert all(one.has_old_abort for one in found)

    def test_only_below_open_writes(self, world: TxnWorld) -> None:
        """An open transaction among aborted ones: what lies above it must wait, whether or not it
        told what it writes."""
        world.compactor = replace(world.compactor, aborted_txn_threshold=0)
        self._aborted(world, 1)
        opened = world.open_one()
        assert world.allocate(opened) == [2]
        self._aborted(world, 1)
        (entry,) = _aborts(world)
        assert entry.highest_write_id == 1
        world.mark_cleaned(entry)
        assert [row["TC_WRITEID"] for row in world.rows(TXN_COMPONENTS)] == [3]
        assert _aborts(world) == []
        world.commit(opened)
        (entry,) = _aborts(world)
        assert entry.highest_write_id == 3
        world.mark_cleaned(entry)
        assert world.rows(TXN_COMPONENTS) == []
        assert world.rows(COMPLETED_COMPACTIONS) == []

    def test_a_postponed_cleanup_waits(self, world: TxnWorld) -> None:
        world.compactor = replace(world.compactor, aborted_txn_threshold=0)
        self._aborted(world, 1)
        (entry,) = _aborts(world)
        assert entry.id == 0

        def postpone(one: Compaction, wait_ms: int) -> None:
            world.do(
                lambda c: cleaning.mark_cleaning_postponed(
                    world.work(c), one, reason="why", retry_retention_ms=wait_ms
                )
            )

        postpone(entry, 100)
        assert _aborts(world) == []
        world.time.advance_ms(100)
        (again,) = _aborts(world)
        assert (again.id > 0, again.retry_retention_ms) == (True, 100)
        postpone(again, 200)
        assert len(world.rows(COMPACTION_QUEUE)) == 1
        world.time.advance_ms(199)
        assert _aborts(world) == []
        world.time.advance_ms(1)
        (again,) = _aborts(world)
        world.mark_cleaned(again)
        assert world.rows(COMPACTION_QUEUE) == []
        assert world.rows(TXN_COMPONENTS) == []

    def test_cleanups_are_no_compactions(self, world: TxnWorld) -> None:
        world.compactor = replace(world.compactor, aborted_txn_threshold=0)
        self._aborted(world, 1)
        (entry,) = _aborts(world)
        world.do(
            lambda c: cleaning.mark_cleaning_postponed(
                world.work(c), entry, reason="why", retry_retention_ms=0
            )
        )
        world.grow_old()
        world.housekeep()
        assert world.ready() == []
        assert world.claim() is None
        mine = world.compacted(_written(world))
        world.mark_cleaned(mine)
        assert world.rows(COMPACTION_QUEUE) == []


def test_potential_compactions(world: TxnWorld) -> None:
    assert _potential(world) == set()
    _written(world)
    _written(world, partition="p=1")
    aborted, _ = world.write(DataOperation.UPDATE, "p=2")
    world.abort(aborted)
    assert _potential(world) == {("t", None, False, False), ("t", "p=1", False, False)}
    assert ("t", "p=2", True, False) in _potential(world, threshold=0)
    world.time.advance_ms(1000)
    assert ("t", "p=2", False, True) in _potential(world, age_ms=999)
    assert ("t", "p=2", False, True) not in _potential(world, age_ms=1000)
    world.mark_cleaned(world.compacted(2))
    assert ("t", None, False, False) not in _potential(world)


def test_aborted_writes_stay_invisible_through_everything(world: TxnWorld) -> None:
    """No cleaning, no housekeeping and no time makes them visible before their files are gone."""
    world.compactor = replace(world.compactor, aborted_txn_threshold=0)
    aborted, write_id = world.write(partition="p=1")
    world.abort(aborted)
    _written(world, partition="p=2")
    for _ in range(3):
        mine = world.compacted(_written(world, 1, partition="p=2"), partition="p=2")
        world.grow_old()
        world.mark_cleaned(mine)
        world.open_one()
        world.grow_old()
        world.housekeep()
    assert not world.valid().is_valid(write_id)
    (entry,) = _aborts(world)
    world.mark_cleaned(entry)
    world.housekeep()
    assert aborted not in {row["TXN_ID"] for row in world.rows(TXNS)}
