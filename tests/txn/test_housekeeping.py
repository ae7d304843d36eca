from collections.abc import Callable

import pytest
from sqlalchemy import text

from hms_bridge.backend.schema.txn_tables import (
    HIVE_LOCKS,
    MATERIALIZATION_REBUILD_LOCKS,
    MIN_HISTORY_LEVEL,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_bridge.config.settings import TxnSettings
from hms_bridge.model.ids import WriteId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.txn import TxnState, TxnType
from hms_bridge.txn import housekeeping
from tests.conformance.objects import component
from tests.support.databases import SERVER_URL
from tests.support.sqlite_steps import steps
from tests.support.txns import Txns
from tests.support.world import World

UPDATE = DataOperation.UPDATE


def _txns(world: World) -> dict[int, str]:
    return {row["TXN_ID"]: row["TXN_STATE"] for row in world.records(TXNS)}


def _owners(world: World) -> set[int]:
    return {row["T2W_TXNID"] for row in world.records(TXN_TO_WRITE_ID)}


def _replays_before(world: World) -> int:
    return world.clock.now_ms() - world.settings.txn.repl_timeout_ms


def _time_out(world: World) -> list[int]:
    outcome = world.do(housekeeping.time_out_txns, _replays_before(world))
    return [txn.id for txn in outcome.aborted]


def _forget_write_ids(world: World) -> int:
    return world.do(housekeeping.forget_write_ids)


def _forget_write_sets(world: World) -> int:
    return world.do(housekeeping.forget_write_sets)


def _forget_txns(world: World) -> int:
    return world.do(housekeeping.forget_txns)


class TestTimeOuts:
    def test_transactions_without_a_heartbeat(self, world: World, txns: Txns) -> None:
        ids = txns.open(2)
        ids.append(txns.open_one(TxnType.READ_ONLY))
        txns.lock(ids[0])
        world.clock.advance_ms(world.settings.txn.timeout_ms)
        assert _time_out(world) == []
        world.clock.advance_ms(1)
        alive = txns.open_one()
        assert _time_out(world) == ids
        assert _time_out(world) == []
        assert _txns(world)[alive] == "o"
        assert {row["TXN_META_INFO"] for row in world.records(TXNS)[1:4]} == {"heartbeat time-out"}
        assert world.records(HIVE_LOCKS) == []

    def test_replayed_ones_live_longer(self, world: World, txns: Txns) -> None:
        source = {"repl_policy": "p.*", "repl_source_txn_ids": (7,)}
        (replayed,) = txns.open(1, TxnType.REPL_CREATED, **source)
        world.clock.advance_ms(world.settings.txn.repl_timeout_ms)
        assert _time_out(world) == []
        world.clock.advance_ms(1)
        outcome = world.do(housekeeping.time_out_txns, _replays_before(world))
        assert [txn.id for txn in outcome.aborted] == [replayed]
        assert outcome.broken_policies == ("p.*",)

    def test_locks_of_no_transaction(self, world: World, txns: Txns) -> None:
        kept = txns.open_one()
        txns.lock(kept)
        txns.lock(0)
        world.clock.advance_ms(world.settings.txn.timeout_ms + 1)

        def time_out() -> int:
            return world.do(housekeeping.time_out_locks)

        assert time_out() == 1
        assert time_out() == 0
        assert [row["HL_TXNID"] for row in world.records(HIVE_LOCKS)] == [kept]

    def test_rebuild_locks_of_ended_transactions(self, world: World, txns: Txns) -> None:
        opened = txns.open_one()
        now = world.clock.now_ms()
        for txn_id, heartbeat in ((opened, 0), (77, 0), (78, now)):
            row = {"MRL_TXN_ID": txn_id, "MRL_DB_NAME": "d", "MRL_TBL_NAME": "v"}
            world.put(MATERIALIZATION_REBUILD_LOCKS, **row, MRL_LAST_HEARTBEAT=heartbeat)
        world.do(housekeeping.time_out_rebuild_locks)
        left = {row["MRL_TXN_ID"] for row in world.records(MATERIALIZATION_REBUILD_LOCKS)}
        assert left == {opened, 78}


class TestForgettingTxns:
    def test_the_boundary_and_what_is_above_stay(self, world: World, txns: Txns) -> None:
        for txn_id in txns.open(3):
            txns.commit(txn_id)
        assert _forget_txns(world) == 0
        txns.grow_old()
        young = txns.open_one()
        txns.commit(young)
        assert _forget_txns(world) == 4, "three go, the one at the boundary is marked"
        assert _txns(world) == {3: "c", young: "c"}
        assert txns.all().txns == ()

    def test_open_ones_and_aborted_ones_with_files_stay(self, world: World, txns: Txns) -> None:
        opened = txns.open_one()
        writer, _ = txns.write()
        idle = txns.open_one()
        txns.abort_many([writer, idle])
        txns.grow_old()
        txns.open_one()
        txns.grow_old()
        _forget_txns(world)
        assert _txns(world) == {opened: "o", writer: "a", 4: "o"}

    def test_no_id_that_was_purged_counts_as_open(self, world: World, txns: Txns) -> None:
        for _ in range(3):
            for txn_id in txns.open(4):
                txns.commit(txn_id)
            txns.housekeep()
            txns.grow_old()
            txns.housekeep()
            txns.open_one()
            found = txns.all()
            assert all(txn.id in _txns(world) for txn in found.txns)

    @pytest.mark.parametrize("end", ["commit", "abort", "stay open"])
    def test_what_was_purged_is_not_open_when_the_clock_is_set_back(
        self, world: World, txns: Txns, end: str
    ) -> None:
        for txn_id in txns.open(4):
            txns.commit(txn_id)
        staying, _ = txns.write()
        for txn_id in txns.open(4):
            txns.commit(txn_id)
        if end == "commit":
            txns.commit(staying)
        elif end == "abort":
            txns.abort_many([staying])
        txns.grow_old()
        txns.commit(txns.open_one())
        txns.housekeep()
        assert not {2, 7} & set(_txns(world))
        for hours in (2, 24):
            world.clock.advance_ms(-hours * 3_600_000)
            found = [txn.id for txn in txns.all().txns]
            assert found == ([] if end == "commit" else [staying])
            txns.housekeep()
        opened = txns.open_one()
        assert opened in {txn.id for txn in txns.all().txns}

    @pytest.mark.skipif(SERVER_URL is not None, reason="counts the steps that SQLite takes")
    def test_what_is_open_side_by_side_is_gone_through_once(self, world: World, txns: Txns) -> None:
        """PostgreSQL may pass by the index that finds committed ones, so it is not there."""
        world.execute(text('DROP INDEX "HMSB_TXN_STATE"'))
        txns.commit(txns.open_one())
        taken = []
        for _ in range(2):
            txns.open(500)
            txns.grow_old()
            taken.append(steps(world, housekeeping.forget_txns))
        assert taken[1] < 3 * taken[0]


class TestForgettingWriteIds:
    def _committed(self, txns: Txns, **more: object) -> int:
        txn_id, _ = txns.write(**more)  # type: ignore[arg-type]
        txns.commit(txn_id)
        return txn_id

    def test_all_are_forgotten_when_everyone_has_ended(self, world: World, txns: Txns) -> None:
        self._committed(txns)
        self._committed(txns)
        assert _forget_write_ids(world) == 0
        txns.grow_old()
        assert _forget_write_ids(world) == 2
        assert txns.valid().format() == "db.t:2:9223372036854775807::"

    def test_not_what_an_open_transaction_counts_as_open(self, world: World, txns: Txns) -> None:
        writer, _ = txns.write()
        txns.grow_old()
        reader = txns.open_one(TxnType.READ_ONLY)
        before = txns.snapshot(reader)
        txns.commit(writer)
        txns.grow_old()
        assert _forget_write_ids(world) == 0
        assert not txns.valid(txns=before).is_valid(WriteId(1))
        txns.commit(reader)
        assert _forget_write_ids(world) == 1

    @pytest.mark.parametrize("state", [TxnState.OPEN, TxnState.ABORTED])
    def test_not_from_an_open_or_aborted_one_on(
        self, world: World, txns: Txns, state: TxnState
    ) -> None:
        self._committed(txns)
        txns.grow_old()
        pinned, _ = txns.write()
        if state is TxnState.ABORTED:
            txns.abort(pinned)
        later = self._committed(txns)
        txns.grow_old()
        assert _forget_write_ids(world) == 1
        assert _owners(world) == {pinned, later}

    def test_ids_that_may_still_appear_pin(self, world: World, txns: Txns) -> None:
        """The opener of a gap may commit and take a write id between two looks."""
        self._committed(txns)
        txns.grow_old()
        late = txns.open(2)
        world.execute(MIN_HISTORY_LEVEL.delete())
        world.execute(TXNS.delete().where(late[0] == TXNS.c.TXN_ID))
        txns.allocate(late[1])
        txns.commit(late[1])
        _forget_write_ids(world)
        assert _owners(world) == {late[1]}


class TestForgettingWriteSets:
    def test_while_somebody_may_conflict(self, world: World, txns: Txns) -> None:
        rival, _ = txns.write(UPDATE)
        first, _ = txns.write(UPDATE, table="u")
        txns.commit(first)
        txns.grow_old()
        assert _forget_write_sets(world) == 0
        txns.commit(rival)
        assert _forget_write_sets(world) == 2
        assert world.records(WRITE_SET) == []

    def test_not_before_every_id_has_appeared(self, world: World, txns: Txns) -> None:
        first, _ = txns.write(UPDATE)
        txns.commit(first)
        assert _forget_write_sets(world) == 0
        txns.grow_old()
        assert _forget_write_sets(world) == 1


def test_housekeeping_of_an_idle_metastore_changes_nothing(world: World, txns: Txns) -> None:
    before = {table.name: world.records(table) for table in (TXNS, WRITE_SET, TXN_TO_WRITE_ID)}
    for _ in range(3):
        txns.housekeep()
        world.clock.advance_ms(10**9)
    assert before == {
        table.name: world.records(table) for table in (TXNS, WRITE_SET, TXN_TO_WRITE_ID)
    }


def test_time_outs_come_in_limited_portions(
    world: World, txns: Txns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "TIMED_OUT_MAX", 2)
    ids = txns.open(5)
    world.clock.advance_ms(world.settings.txn.timeout_ms + 1)
    portions = [_time_out(world) for _ in range(4)]
    assert portions == [ids[:2], ids[2:4], ids[4:], []]


class TestPortions:
    """Two rows at once, so that what is more comes with the next call, and what has to stay between
    holds up nothing."""

    @pytest.fixture(autouse=True)
    def _two_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(housekeeping, "ROWS_MAX", 2)

    def _until_done(self, forget: Callable[[], int]) -> list[int]:
        counts = [forget()]
        while counts[-1] >= 2:
            counts.append(forget())
        return counts

    def test_of_transactions(self, world: World, txns: Txns) -> None:
        staying = []
        for _ in range(4):
            for txn_id in txns.open(3):
                txns.commit(txn_id)
            staying.append(txns.write(table=f"t{len(staying)}")[0])
        txns.abort_many(staying)
        txns.grow_old()
        last = txns.open_one()
        txns.grow_old()
        counts = self._until_done(lambda: _forget_txns(world))
        assert len(counts) > 3
        assert max(counts) < 6
        # The last committed one before each that stays does, and 17 is the boundary.
        assert set(_txns(world)) == {3, 7, 11, 15, *staying, last}

    def test_none_of_them_counts_as_open_between(self, world: World, txns: Txns) -> None:
        for txn_id in txns.open(9):
            txns.commit(txn_id)
        txns.grow_old()
        for _ in range(3):
            _forget_txns(world)
            assert txns.all().txns == ()
            world.clock.advance_ms(-3_600_000)
            assert txns.all().txns == ()
            world.clock.advance_ms(3_600_000)

    def test_of_write_ids(self, world: World, txns: Txns) -> None:
        early = txns.open_one()
        for _ in range(5):
            writer, _ = txns.write()
            txns.commit(writer)
        txns.allocate(early)
        txns.commit(early)
        txns.grow_old()
        assert self._until_done(lambda: _forget_write_ids(world)) == [2, 2, 2, 0]
        assert txns.valid().format() == "db.t:6:9223372036854775807::"

    def test_of_write_ids_the_lowest_go_first(self, world: World, txns: Txns) -> None:
        late = txns.open_one()
        for _ in range(3):
            writer, _ = txns.write()
            txns.commit(writer)
        txns.allocate(late)
        txns.commit(late)
        txns.grow_old()
        _forget_write_ids(world)
        left = [row["T2W_WRITEID"] for row in world.records(TXN_TO_WRITE_ID)]
        assert sorted(left) == [3, 4]
        assert txns.valid().format() == "db.t:4:9223372036854775807::"

    def test_of_write_ids_over_several_tables(self, world: World, txns: Txns) -> None:
        for number in range(5):
            writer, _ = txns.write(table=f"t{number}")
            txns.commit(writer)
        txns.grow_old()
        assert self._until_done(lambda: _forget_write_ids(world)) == [2, 2, 1]

    def test_of_write_sets(self, world: World, txns: Txns) -> None:
        for _ in range(5):
            writer, _ = txns.write(UPDATE)
            txns.commit(writer)
        txns.grow_old()
        assert self._until_done(lambda: _forget_write_sets(world)) == [2, 2, 1]

    def test_of_locks(self, world: World, txns: Txns) -> None:
        for number in range(5):
            txns.lock(0, component("db", f"t{number}", LockType.SHARED_READ))
        world.clock.advance_ms(world.settings.txn.timeout_ms + 1)
        expired = self._until_done(lambda: world.do(housekeeping.time_out_locks))
        assert expired == [2, 2, 1]

    def test_a_run_does_all_of_them(self, world: World, txns: Txns) -> None:
        for _ in range(7):
            writer, _ = txns.write(UPDATE)
            txns.commit(writer)
        txns.grow_old()
        txns.housekeep()
        assert set(_txns(world)) == {7}
        assert world.records(WRITE_SET) == world.records(TXN_TO_WRITE_ID) == []


def test_settings_count(world: World, txns: Txns) -> None:
    world.start(txn=TxnSettings(timeout_ms=10))
    ids = txns.open(1)
    world.clock.advance_ms(11)
    assert _time_out(world) == ids
