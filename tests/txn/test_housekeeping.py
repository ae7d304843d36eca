from dataclasses import replace

import pytest

from hms_bridge.backend.schema.txn_tables import (
    HIVE_LOCKS,
    MATERIALIZATION_REBUILD_LOCKS,
    MIN_HISTORY_LEVEL,
    TXN_TO_WRITE_ID,
    TXNS,
    WRITE_SET,
)
from hms_bridge.model.ids import WriteId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.txn import TxnState, TxnType
from hms_bridge.txn import housekeeping
from tests.support.txn_world import TxnWorld

UPDATE = DataOperation.UPDATE


def _txns(world: TxnWorld) -> dict[int, str]:
    return {row["TXN_ID"]: row["TXN_STATE"] for row in world.rows(TXNS)}


def _owners(world: TxnWorld) -> set[int]:
    return {row["T2W_TXNID"] for row in world.rows(TXN_TO_WRITE_ID)}


def _time_out(world: TxnWorld) -> list[int]:
    outcome = world.do(lambda c: housekeeping.time_out_txns(world.work(c)))
    return [txn.id for txn in outcome.aborted]


def _forget_write_ids(world: TxnWorld) -> int:
    return world.do(lambda c: housekeeping.forget_write_ids(world.work(c)))


def _forget_write_sets(world: TxnWorld) -> int:
    return world.do(lambda c: housekeeping.forget_write_sets(world.work(c)))


def _forget_txns(world: TxnWorld) -> int:
    return world.do(lambda c: housekeeping.forget_txns(world.work(c)))


class TestTimeOuts:
    def test_transactions_without_a_heartbeat(self, world: TxnWorld) -> None:
        ids = world.open(2)
        ids.append(world.open_one(TxnType.READ_ONLY))
        world.lock(ids[0])
        world.time.advance_ms(world.settings.timeout_ms)
        assert _time_out(world) == []
        world.time.advance_ms(1)
        alive = world.open_one()
        assert _time_out(world) == ids
        assert _time_out(world) == []
        assert _txns(world)[alive] == "o"
        assert {row["TXN_META_INFO"] for row in world.rows(TXNS)[1:4]} == {"heartbeat time-out"}
        assert world.rows(HIVE_LOCKS) == []

    def test_replayed_ones_live_longer(self, world: TxnWorld) -> None:
        source = {"repl_policy": "p.*", "repl_source_txn_ids": (7,)}
        (replayed,) = world.open(1, TxnType.REPL_CREATED, **source)
        world.time.advance_ms(world.settings.repl_timeout_ms)
        assert _time_out(world) == []
        world.time.advance_ms(1)
        outcome = world.do(lambda c: housekeeping.time_out_txns(world.work(c)))
        assert [txn.id for txn in outcome.aborted] == [replayed]
        assert outcome.broken_policies == ("p.*",)

    def test_locks_of_no_transaction(self, world: TxnWorld) -> None:
        kept = world.open_one()
        world.lock(kept)
        world.lock(0)
        world.time.advance_ms(world.settings.timeout_ms + 1)

        def time_out() -> int:
            return world.do(lambda c: housekeeping.time_out_locks(world.work(c)))

        assert time_out() == 1
        assert time_out() == 0
        assert [row["HL_TXNID"] for row in world.rows(HIVE_LOCKS)] == [kept]

    def test_rebuild_locks_of_ended_transactions(self, world: TxnWorld) -> None:
        opened = world.open_one()
        now = world.clock.now_ms()
        for txn_id, heartbeat in ((opened, 0), (77, 0), (78, now)):
            row = {"MRL_TXN_ID": txn_id, "MRL_DB_NAME": "d", "MRL_TBL_NAME": "v"}
            world.put(MATERIALIZATION_REBUILD_LOCKS, row | {"MRL_LAST_HEARTBEAT": heartbeat})
        world.do(lambda c: housekeeping.time_out_rebuild_locks(world.work(c)))
        left = {row["MRL_TXN_ID"] for row in world.rows(MATERIALIZATION_REBUILD_LOCKS)}
        assert left == {opened, 78}


class TestForgettingTxns:
    def test_the_boundary_and_what_is_above_stay(self, world: TxnWorld) -> None:
        for txn_id in world.open(3):
            world.commit(txn_id)
        assert _forget_txns(world) == 0
        world.grow_old()
        young = world.open_one()
        world.commit(young)
        assert _forget_txns(world) == 3
        assert _txns(world) == {3: "c", young: "c"}
        assert world.open_txns().txns == ()

    def test_open_ones_and_aborted_ones_with_files_stay(self, world: TxnWorld) -> None:
        opened = world.open_one()
        writer, _ = world.write()
        idle = world.open_one()
        world.abort_many([writer, idle])
        world.grow_old()
        world.open_one()
        world.grow_old()
        _forget_txns(world)
        assert _txns(world) == {opened: "o", writer: "a", 4: "o"}

    def test_no_id_that_was_purged_counts_as_open(self, world: TxnWorld) -> None:
        for _ in range(3):
            for txn_id in world.open(4):
                world.commit(txn_id)
            world.housekeep()
            world.grow_old()
            world.housekeep()
            world.open_one()
            found = world.open_txns()
            assert all(txn.id in _txns(world) for txn in found.txns)

    @pytest.mark.parametrize("end", ["commit", "abort", "stay open"])
    def test_what_was_purged_is_not_open_when_the_clock_is_set_back(
        self, world: TxnWorld, end: str
    ) -> None:
        for txn_id in world.open(4):
            world.commit(txn_id)
        staying, _ = world.write()
        for txn_id in world.open(4):
            world.commit(txn_id)
        if end == "commit":
            world.commit(staying)
        elif end == "abort":
            world.abort_many([staying])
        world.grow_old()
        world.commit(world.open_one())
        world.housekeep()
        assert not {2, 7} & set(_txns(world))
        for hours in (2, 24):
            world.clock.advance_ms(-hours * 3_600_000)
            found = [txn.id for txn in world.open_txns().txns]
            assert found == ([] if end == "commit" else [staying])
            world.housekeep()
        opened = world.open_one()
        assert opened in {txn.id for txn in world.open_txns().txns}


class TestForgettingWriteIds:
    def _committed(self, world: TxnWorld, **more: object) -> int:
        txn_id, _ = world.write(**more)  # type: ignore[arg-type]
        world.commit(txn_id)
        return txn_id

    def test_all_are_forgotten_when_everyone_has_ended(self, world: TxnWorld) -> None:
        self._committed(world)
        self._committed(world)
        assert _forget_write_ids(world) == 0
        world.grow_old()
        assert _forget_write_ids(world) == 2
        assert world.valid().format() == "db.t:2:9223372036854775807::"

    def test_not_what_an_open_transaction_counts_as_open(self, world: TxnWorld) -> None:
        writer, _ = world.write()
        world.grow_old()
        reader = world.open_one(TxnType.READ_ONLY)
        before = world.snapshot(reader)
        world.commit(writer)
        world.grow_old()
        assert _forget_write_ids(world) == 0
        assert not world.valid(txns=before).is_valid(WriteId(1))
        world.commit(reader)
        assert _forget_write_ids(world) == 1

    @pytest.mark.parametrize("state", [TxnState.OPEN, TxnState.ABORTED])
    def test_not_from_an_open_or_aborted_one_on(self, world: TxnWorld, state: TxnState) -> None:
        self._committed(world)
        world.grow_old()
        pinned, _ = world.write()
        if state is TxnState.ABORTED:
            world.abort(pinned)
        later = self._committed(world)
        world.grow_old()
        assert _forget_write_ids(world) == 1
        assert _owners(world) == {pinned, later}

    def test_ids_that_may_still_appear_pin(self, world: TxnWorld) -> None:
        """The opener of a gap may commit and take a write id between two looks."""
        self._committed(world)
        world.grow_old()
        late = world.open(2)
        world.do(lambda c: c.execute(MIN_HISTORY_LEVEL.delete()))
        world.do(lambda c: c.execute(TXNS.delete().where(late[0] == TXNS.c.TXN_ID)))
        world.allocate(late[1])
        world.commit(late[1])
        _forget_write_ids(world)
        assert _owners(world) == {late[1]}


class TestForgettingWriteSets:
    def test_while_somebody_may_conflict(self, world: TxnWorld) -> None:
        rival, _ = world.write(UPDATE)
        first, _ = world.write(UPDATE, table="u")
        world.commit(first)
        world.grow_old()
        assert _forget_write_sets(world) == 0
        world.commit(rival)
        assert _forget_write_sets(world) == 2
        assert world.rows(WRITE_SET) == []

    def test_not_before_every_id_has_appeared(self, world: TxnWorld) -> None:
        first, _ = world.write(UPDATE)
        world.commit(first)
        assert _forget_write_sets(world) == 0
        world.grow_old()
        assert _forget_write_sets(world) == 1


def test_housekeeping_of_an_idle_metastore_changes_nothing(world: TxnWorld) -> None:
    before = {table.name: world.rows(table) for table in (TXNS, WRITE_SET, TXN_TO_WRITE_ID)}
    for _ in range(3):
        world.housekeep()
        world.time.advance_ms(10**9)
    assert before == {table.name: world.rows(table) for table in (TXNS, WRITE_SET, TXN_TO_WRITE_ID)}


def test_time_outs_come_in_limited_portions(
    world: TxnWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(housekeeping, "TIMED_OUT_MAX", 2)
    ids = world.open(5)
    world.time.advance_ms(world.settings.timeout_ms + 1)
    portions = [_time_out(world) for _ in range(4)]
    assert portions == [ids[:2], ids[2:4], ids[4:], []]


def test_settings_count(world: TxnWorld) -> None:
    world.settings = replace(world.settings, timeout_ms=10)
    ids = world.open(1)
    world.time.advance_ms(11)
    assert _time_out(world) == ids
