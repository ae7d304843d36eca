from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_bridge.backend.schema.txn_tables import MIN_HISTORY_LEVEL, TXNS
from hms_bridge.errors import BackendError, MetaError
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import TxnState, TxnType
from hms_bridge.txn import open_txns
from hms_bridge.txn.write_ids import seed_txn_id
from tests.support.simulated_clock import SimulatedClock
from tests.support.txn_world import TxnWorld

NOW = SimulatedClock().now_ms()
OLD, YOUNG = NOW - 1000, NOW - 999


def _row(txn_id: int, state: str, started_ms: int, kind: int = 0) -> dict[str, object]:
    return {
        "TXN_ID": txn_id,
        "TXN_STATE": state,
        "TXN_STARTED": started_ms,
        "TXN_LAST_HEARTBEAT": started_ms,
        "TXN_USER": "u",
        "TXN_HOST": "h",
        "TXN_TYPE": kind,
    }


def _listed(world: TxnWorld) -> list[tuple[int, str]]:
    return [(txn.id, txn.state.value) for txn in world.open_txns().txns]


def test_the_first_ids(world: TxnWorld) -> None:
    assert world.open_txns().high_watermark == 0
    assert world.open_txns().min_open_txn is None
    assert world.open(3) == [1, 2, 3]
    assert world.open_txns().high_watermark == 3
    assert world.open_txns().min_open_txn == 1


@pytest.mark.parametrize("count", [0, -1])
def test_no_transactions_are_refused(world: TxnWorld, count: int) -> None:
    with pytest.raises(MetaError, match="ask for 1 or more"):
        world.open(count)


def test_too_many_at_once_are_clipped(world: TxnWorld) -> None:
    world.settings = replace(world.settings, open_batch_max=5)
    assert len(world.open(9)) == 5


def test_gaps_below_young_rows_are_open_and_below_old_ones_dead(world: TxnWorld) -> None:
    world.put(TXNS, _row(3, "c", OLD), _row(5, "a", OLD), _row(8, "c", YOUNG))
    # 1, 2 and 4 are dead; 6 and 7 may still appear.
    assert _listed(world) == [(5, "a"), (6, "o"), (7, "o")]
    assert world.open_txns().min_open_txn == 6
    world.time.advance_ms(2)
    assert _listed(world) == [(5, "a")]


def _as_hive_tells(rows: list[tuple[int, str, bool]]) -> list[tuple[int, str]]:
    """Hive's own algorithm over all rows (the product reads only those that matter)."""
    listed: list[tuple[int, str]] = []
    low = 0
    for txn_id, state, is_young in rows:
        if is_young:
            low += 1
            while low < txn_id:
                listed.append((low, "o"))
                low += 1
        else:
            low = txn_id
        if state != "c":
            listed.append((txn_id, state))
    return listed


def test_gaps_as_hive_counts_them(world: TxnWorld) -> None:
    @settings(deadline=None)
    @given(
        rows=st.dictionaries(
            st.integers(1, 25), st.tuples(st.sampled_from("oac"), st.booleans()), max_size=12
        )
    )
    def check(rows: dict[int, tuple[str, bool]]) -> None:
        world.do(lambda c: c.execute(TXNS.delete().where(TXNS.c.TXN_ID > 0)))
        stored = [
            _row(txn_id, state, YOUNG if is_young else OLD)
            for txn_id, (state, is_young) in rows.items()
        ]
        if stored:
            world.put(TXNS, *stored)
        ordered = [(0, "c", False), *((one, *rows[one]) for one in sorted(rows))]
        assert _listed(world) == _as_hive_tells(ordered)
        assert world.open_txns().high_watermark == max([0, *rows])

    check()


def test_read_only_transactions_are_left_out_but_count_as_lowest(world: TxnWorld) -> None:
    reader = world.open_one(TxnType.READ_ONLY)
    writer = world.open_one()
    found = world.open_txns()
    assert [txn.id for txn in found.txns] == [writer]
    assert found.min_open_txn == reader
    assert found.high_watermark == writer
    everyone = world.do(lambda c: open_txns.get_open_txns(world.work(c), frozenset()))
    assert [txn.id for txn in everyone.txns] == [reader, writer]


def test_info_tells_who_and_why(world: TxnWorld) -> None:
    first, second = world.open(2)
    world.abort_many([first])
    infos = world.do(lambda c: open_txns.get_open_txns_info(world.work(c)))
    assert [(one.id, one.state, one.user, one.host) for one in infos] == [
        (first, TxnState.ABORTED, "u", "h"),
        (second, TxnState.OPEN, "u", "h"),
    ]
    assert infos[0].meta == "Abort by query command"


def test_every_open_transaction_holds_history(world: TxnWorld) -> None:
    (first,) = world.open()
    world.grow_old()
    (second,) = world.open()
    world.commit(first)
    world.grow_old()
    (third,) = world.open()
    rows = {row["MHL_TXNID"]: row["MHL_MIN_OPEN_TXNID"] for row in world.rows(MIN_HISTORY_LEVEL)}
    assert rows == {second: first, third: second}
    world.abort(second)
    assert [row["MHL_TXNID"] for row in world.rows(MIN_HISTORY_LEVEL)] == [third]


def test_watermark_waits_for_young_gaps(world: TxnWorld) -> None:
    def watermark() -> int:
        return world.do(lambda c: open_txns.min_open_txn_watermark(world.work(c)))

    assert watermark() == 1
    first, second = world.open(2)
    world.commit(second)
    world.commit(first)
    assert watermark() == 1
    world.time.advance_ms(world.settings.open_timeout_ms)
    assert watermark() == 1
    world.time.advance_ms(1)
    assert watermark() == 3
    third = world.open_one(TxnType.READ_ONLY)
    assert watermark() == 3
    world.grow_old()
    assert watermark() == third


class _JumpingClock(SimulatedClock):
    """Time passes with every look."""

    def now_ms(self) -> int:
        self.advance_ms(600)
        return super().now_ms()


def test_an_opening_that_takes_too_long_leaves_nothing(world: TxnWorld) -> None:
    slow = TxnWorld(world.database, _JumpingClock())
    with pytest.raises(BackendError, match="gave up after 10 attempts"):
        slow.open()
    assert [row["TXN_ID"] for row in world.rows(TXNS)] == [0]
    # A reader writes nothing, so nobody minds if it was counted as dead.
    assert slow.open(1, TxnType.READ_ONLY)


class _SetBackClock(SimulatedClock):
    """With every look time passes, and somebody sets it back as far."""

    def now_ms(self) -> int:
        self.advance_ms(600)
        self.set_back_ms(600)
        return super().now_ms()


def test_an_opening_that_takes_too_long_is_noticed_though_the_time_is_set_back(
    world: TxnWorld,
) -> None:
    slow = TxnWorld(world.database, _SetBackClock())
    with pytest.raises(BackendError, match="gave up after 10 attempts"):
        slow.open()
    assert [row["TXN_ID"] for row in world.rows(TXNS)] == [0]


def test_the_limit_closes_and_opens_again(world: TxnWorld) -> None:
    settings = replace(world.settings, open_txns_max=10)
    limit = open_txns.OpenTxnLimit(settings, world.clock)

    def is_closed() -> bool:
        world.time.advance_ms(1000)
        try:
            world.do(limit.check)
        except MetaError as error:
            assert "hive.max.open.txns" in str(error)
            return True
        return False

    ids = world.open(9)
    assert not is_closed()
    ids += world.open(1)
    assert is_closed()
    world.commit(ids.pop())
    assert is_closed()
    world.commit(ids.pop())
    assert not is_closed()
    ids += world.open(1)
    assert not is_closed()


def test_the_limit_counts_once_a_second(world: TxnWorld) -> None:
    limit = open_txns.OpenTxnLimit(replace(world.settings, open_txns_max=1), world.clock)
    world.do(limit.check)
    world.open()
    world.do(limit.check)
    world.time.advance_ms(1000)
    with pytest.raises(MetaError):
        world.do(limit.check)


def test_the_limit_counts_again_after_the_time_was_set_back(world: TxnWorld) -> None:
    limit = open_txns.OpenTxnLimit(replace(world.settings, open_txns_max=1), world.clock)
    ids = world.open()
    with pytest.raises(MetaError):
        world.do(limit.check)
    world.commit(*ids)
    world.time.set_back_ms(3_600_000)
    world.time.advance_ms(1000)
    world.do(limit.check)


def test_seeded_ids(world: TxnWorld) -> None:
    world.open(2)
    world.do(lambda c: seed_txn_id(c, TxnId(2000)))
    # What was left out does not count as open, not even while it is young.
    assert _listed(world) == [(1, "o"), (2, "o")]
    assert world.open() == [2000]
    for passed in (100, 2000):
        with pytest.raises(MetaError, match="given already"):
            world.do(lambda c, seed=passed: seed_txn_id(c, TxnId(seed)))
    world.do(lambda c: seed_txn_id(c, TxnId(2001)))
    assert world.open(2) == [2001, 2002]


@pytest.mark.parametrize("seed", [2**62 + 1, 2**63 - 1])
def test_a_seed_after_which_no_transactions_follow_is_refused(world: TxnWorld, seed: int) -> None:
    with pytest.raises(MetaError, match="the highest seed is"):
        world.do(lambda c: seed_txn_id(c, TxnId(seed)))
    assert world.open() == [1]


def test_ids_are_never_given_twice(world: TxnWorld) -> None:
    ids = world.open(3)
    world.do(lambda c: c.execute(MIN_HISTORY_LEVEL.delete()))
    world.do(lambda c: c.execute(TXNS.delete().where(TXNS.c.TXN_ID > 0)))
    assert min(world.open(2)) > max(ids)
