from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hms_bridge.backend.schema.txn_tables import MIN_HISTORY_LEVEL, TXNS
from hms_bridge.config.settings import TxnSettings
from hms_bridge.errors import BackendError, MetaError
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import TxnState, TxnType
from tests.support.simulated_clock import SimulatedClock
from tests.support.txns import Txns
from tests.support.world import World

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


def _listed(txns: Txns) -> list[tuple[int, str]]:
    return [(txn.id, txn.state.value) for txn in txns.all().txns]


def test_the_first_ids(txns: Txns) -> None:
    assert txns.all().high_watermark == 0
    assert txns.all().min_open_txn is None
    assert txns.open(3) == [1, 2, 3]
    assert txns.all().high_watermark == 3
    assert txns.all().min_open_txn == 1


@pytest.mark.parametrize("count", [0, -1])
def test_no_transactions_are_refused(txns: Txns, count: int) -> None:
    with pytest.raises(MetaError, match="ask for 1 or more"):
        txns.open(count)


def test_too_many_at_once_are_clipped(world: World, txns: Txns) -> None:
    world.start(txn=TxnSettings(open_batch_max=5))
    assert len(txns.open(9)) == 5


def test_gaps_below_young_rows_are_open_and_below_old_ones_dead(world: World, txns: Txns) -> None:
    for row in (_row(3, "c", OLD), _row(5, "a", OLD), _row(8, "c", YOUNG)):
        world.put(TXNS, **row)
    # 1, 2 and 4 are dead; 6 and 7 may still appear.
    assert _listed(txns) == [(5, "a"), (6, "o"), (7, "o")]
    assert txns.all().min_open_txn == 6
    world.clock.advance_ms(2)
    assert _listed(txns) == [(5, "a")]


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


def test_gaps_as_hive_counts_them(world: World, txns: Txns) -> None:
    @settings(deadline=None)
    @given(
        rows=st.dictionaries(
            st.integers(1, 25), st.tuples(st.sampled_from("oac"), st.booleans()), max_size=12
        )
    )
    def check(rows: dict[int, tuple[str, bool]]) -> None:
        world.execute(TXNS.delete().where(TXNS.c.TXN_ID > 0))
        for txn_id, (state, is_young) in rows.items():
            world.put(TXNS, **_row(txn_id, state, YOUNG if is_young else OLD))
        ordered = [(0, "c", False), *((one, *rows[one]) for one in sorted(rows))]
        assert _listed(txns) == _as_hive_tells(ordered)
        assert txns.all().high_watermark == max([0, *rows])

    check()


def test_read_only_transactions_are_left_out_but_count_as_lowest(world: World, txns: Txns) -> None:
    reader = txns.open_one(TxnType.READ_ONLY)
    writer = txns.open_one()
    found = txns.all()
    assert [txn.id for txn in found.txns] == [writer]
    assert found.min_open_txn == reader
    assert found.high_watermark == writer
    everyone = world.metastore.get_open_txns(frozenset())
    assert [txn.id for txn in everyone.txns] == [reader, writer]


def test_one_without_a_type_is_a_usual_one(world: World, txns: Txns) -> None:
    """Hive 3 writes none."""
    writer, untyped = txns.open(2)
    compacting = txns.open_one(TxnType.COMPACTION)
    world.execute(TXNS.update().where(untyped == TXNS.c.TXN_ID).values(TXN_TYPE=None))
    everyone = world.metastore.get_open_txns(frozenset())
    assert [txn.type for txn in everyone.txns] == [
        TxnType.DEFAULT, TxnType.DEFAULT, TxnType.COMPACTION,
    ]  # fmt: skip
    others = world.metastore.get_open_txns(frozenset({TxnType.DEFAULT}))
    assert [txn.id for txn in others.txns] == [compacting]
    assert others.min_open_txn == writer


def test_info_tells_who_and_why(world: World, txns: Txns) -> None:
    first, second = txns.open(2)
    txns.abort_many([first])
    infos = world.metastore.get_open_txns_info()
    assert [(one.id, one.state, one.user, one.host) for one in infos] == [
        (first, TxnState.ABORTED, "u", "h"),
        (second, TxnState.OPEN, "u", "h"),
    ]
    assert infos[0].meta == "Abort by query command"


def test_every_open_transaction_holds_history(world: World, txns: Txns) -> None:
    (first,) = txns.open()
    txns.grow_old()
    (second,) = txns.open()
    txns.commit(first)
    txns.grow_old()
    (third,) = txns.open()
    rows = {row["MHL_TXNID"]: row["MHL_MIN_OPEN_TXNID"] for row in world.records(MIN_HISTORY_LEVEL)}
    assert rows == {second: first, third: second}
    txns.abort(second)
    assert [row["MHL_TXNID"] for row in world.records(MIN_HISTORY_LEVEL)] == [third]


def test_watermark_waits_for_young_gaps(world: World, txns: Txns) -> None:
    def watermark() -> int:
        return world.metastore.min_open_txn_watermark()

    assert watermark() == 1
    first, second = txns.open(2)
    txns.commit(second)
    txns.commit(first)
    assert watermark() == 1
    world.clock.advance_ms(world.settings.txn.open_timeout_ms)
    assert watermark() == 1
    world.clock.advance_ms(1)
    assert watermark() == 3
    third = txns.open_one(TxnType.READ_ONLY)
    assert watermark() == 3
    txns.grow_old()
    assert watermark() == third


class _JumpingClock(SimulatedClock):
    """Time passes with every look."""

    def now_ms(self) -> int:
        self.advance_ms(1100)
        return super().now_ms()


def test_an_opening_that_takes_too_long_leaves_nothing(fast_folder: Path) -> None:
    slow = World(fast_folder, clock=_JumpingClock())
    with pytest.raises(BackendError, match=r"longer than 1\.0 s.*gave up after 10 attempts"):
        slow.txns.open()
    assert [row["TXN_ID"] for row in slow.records(TXNS)] == [0]
    # A reader writes nothing, so nobody minds if it was counted as dead.
    assert slow.txns.open(1, TxnType.READ_ONLY)


class _SetBackClock(SimulatedClock):
    """With every look time passes, and somebody sets it back as far."""

    def now_ms(self) -> int:
        self.advance_ms(1100)
        self.set_back_ms(1100)
        return super().now_ms()


def test_an_opening_that_takes_too_long_is_noticed_though_the_time_is_set_back(
    fast_folder: Path,
) -> None:
    slow = World(fast_folder, clock=_SetBackClock())
    with pytest.raises(BackendError, match="gave up after 10 attempts"):
        slow.txns.open()
    assert [row["TXN_ID"] for row in slow.records(TXNS)] == [0]


def test_the_limit_closes_and_opens_again(world: World, txns: Txns) -> None:
    world.start(txn=TxnSettings(open_txns_max=10))

    def is_closed() -> bool:
        world.clock.advance_ms(1000)
        try:
            (txn_id,) = txns.open()
        except MetaError as error:
            assert "hive.max.open.txns" in str(error)
            return True
        txns.abort(txn_id)
        return False

    ids = txns.open(9)
    assert not is_closed()
    ids += txns.open(1)
    assert is_closed()
    txns.commit(ids.pop())
    assert is_closed()
    txns.commit(ids.pop())
    assert not is_closed()
    ids += txns.open(1)
    assert not is_closed()


def test_the_limit_counts_once_a_second(world: World, txns: Txns) -> None:
    world.start(txn=TxnSettings(open_txns_max=1))
    txns.open()
    txns.open()
    world.clock.advance_ms(1000)
    with pytest.raises(MetaError):
        txns.open()


def test_the_limit_counts_again_after_the_time_was_set_back(world: World, txns: Txns) -> None:
    world.start(txn=TxnSettings(open_txns_max=1))
    ids = txns.open()
    world.clock.advance_ms(1000)
    with pytest.raises(MetaError):
        txns.open()
    txns.commit(*ids)
    world.clock.set_back_ms(3_600_000)
    world.clock.advance_ms(1000)
    assert txns.open()


def test_openers_go_by_what_was_looked_up_a_moment_ago(world: World, txns: Txns) -> None:
    (first,) = txns.open()
    txns.grow_old()
    txns.commit(first)
    (second,) = txns.open()
    txns.commit(second)
    world.execute(TXNS.update().values(TXN_STARTED=0))
    (third,) = txns.open()
    held = {row["MHL_TXNID"]: row["MHL_MIN_OPEN_TXNID"] for row in world.records(MIN_HISTORY_LEVEL)}
    assert held == {third: second}, "the clock stands: more is kept, and never less"
    txns.commit(third)
    txns.grow_old()
    (fourth,) = txns.open()
    held = {row["MHL_TXNID"]: row["MHL_MIN_OPEN_TXNID"] for row in world.records(MIN_HISTORY_LEVEL)}
    assert held == {fourth: fourth}


def test_seeded_ids(world: World, txns: Txns) -> None:
    txns.open(2)
    world.metastore.seed_txn_id(TxnId(2000))
    # What was left out does not count as open, not even while it is young.
    assert _listed(txns) == [(1, "o"), (2, "o")]
    assert txns.open() == [2000]
    for passed in (100, 2000):
        with pytest.raises(MetaError, match="given already"):
            world.metastore.seed_txn_id(TxnId(passed))
    world.metastore.seed_txn_id(TxnId(2001))
    assert txns.open(2) == [2001, 2002]


@pytest.mark.parametrize("seed", [2**62 + 1, 2**63 - 1])
def test_a_seed_after_which_no_transactions_follow_is_refused(
    world: World, txns: Txns, seed: int
) -> None:
    with pytest.raises(MetaError, match="the highest seed is"):
        world.metastore.seed_txn_id(TxnId(seed))
    assert txns.open() == [1]


def test_ids_are_never_given_twice(world: World, txns: Txns) -> None:
    ids = txns.open(3)
    world.execute(MIN_HISTORY_LEVEL.delete())
    world.execute(TXNS.delete().where(TXNS.c.TXN_ID > 0))
    assert min(txns.open(2)) > max(ids)
