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
from hms_bridge.backend.work import Work
from hms_bridge.config.settings import TxnSettings
from hms_bridge.model.ids import WriteId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.txn import TxnState, TxnType
from hms_bridge.txn import housekeeping
from tests.support.databases import SERVER_URL
from tests.support.txns import Txns
from tests.support.world import World

UPDATE = DataOperation.UPDATE


def _txns(world: World) -> dict[int, str]:
    return {row["TXN_ID"]: row["TXN_STATE"] for row in world.records(TXNS)}


def _owners(world: World) -> set[int]:
    return {row["T2W_TXNID"] for row in world.records(TXN_TO_WRITE_ID)}


def _time_out(world: World) -> list[int]:
    outcome = world.do(housekeeping.time_out_txns)
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
        outcome = world.do(housekeeping.time_out_txns)
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
        assert _forget_txns(world) == 3
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
        steps = []
        for _ in range(2):
            txns.open(500)
            txns.grow_old()
            steps.append(_steps(world, housekeeping.forget_txns))
        assert steps[1] < 3 * steps[0]


def _steps(world: World, work: Callable[[Work], object]) -> int:
    """How many of SQLite's instructions it takes, in tens."""
    taken = 0

    def count() -> int:
        nonlocal taken
        taken += 1
        return 0

    def counted(given: Work) -> None:
        raw = given.connection.connection.driver_connection
        raw.set_progress_handler(count, 10)  # type: ignore[union-attr]
        work(given)
        raw.set_progress_handler(None, 0)  # type: ignore[union-attr]

    world.do(counted)
    return taken


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


def test_settings_count(world: World, txns: Txns) -> None:
    world.start(txn=TxnSettings(timeout_ms=10))
    ids = txns.open(1)
    world.clock.advance_ms(11)
    assert _time_out(world) == ids
