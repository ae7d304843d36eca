"""The history of compactions: what it keeps, and that it is never read as a whole."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
from sqlalchemy import insert

from hms_bridge.backend.schema.txn_tables import COMPLETED_COMPACTIONS
from hms_bridge.model.compaction import Compaction, CompactionState, CompactionType
from hms_bridge.model.ids import CompactionId
from hms_bridge.model.target import Target
from hms_bridge.txn import history_purge
from hms_bridge.txn.history_purge import HistoryPurge
from tests.support.databases import SERVER_URL
from tests.support.sqlite_steps import steps
from tests.support.txns import Txns
from tests.support.world import World

DAY_MS = 24 * 3_600_000


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
    dropped = history_purge.overtaken(history, 4 * DAY_MS)
    assert sorted(dropped) == list(range(1, 7 - kept))


@pytest.mark.parametrize("state", [FAILED, DID_NOT, REFUSED])
def test_what_was_made_good_is_dropped_after_a_week(state: CompactionState) -> None:
    def is_dropped(old: CompactionType, new: CompactionType, days: int = 8, newer: int = 2) -> bool:
        history = [_entry(1, state, type=old), _entry(newer, SUCCEEDED, type=new)]
        return bool(history_purge.overtaken(history, (3 + days) * DAY_MS))

    minor, major = CompactionType.MINOR, CompactionType.MAJOR
    assert is_dropped(minor, minor)
    assert is_dropped(minor, major)
    assert is_dropped(major, major)
    assert not is_dropped(major, minor)
    assert not is_dropped(minor, minor, days=7)
    assert not is_dropped(minor, minor, newer=0)


def test_another_target_makes_nothing_good() -> None:
    elsewhere = replace(
        _entry(2, SUCCEEDED, type=CompactionType.MAJOR), target=Target("d", "t", "p=1")
    )
    assert history_purge.overtaken([_entry(1, FAILED), elsewhere], 13 * DAY_MS) == ()


def test_purging(world: World, txns: Txns) -> None:
    for _ in range(5):
        txns.compact()
        txns.fail(txns.start_compaction(1))
    assert world.do(HistoryPurge().purge, 0) == 2
    assert sorted(number for number, _ in txns.show()) == [3, 4, 5]


class TestByAndBy:
    """Four entries at once: the next call goes on where the last one ended, and looks at all
    entries of a target whose turn it is."""

    @pytest.fixture(autouse=True)
    def _four_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(history_purge, "ENTRIES_MAX", 4)

    def test_every_target_has_its_turn(self, world: World) -> None:
        targets = [Target("d", "t"), Target("d", "u", "p=1"), Target("d", "u", "p=2")]
        _put(world, *(target for target in targets for _ in range(5)))
        purge = HistoryPurge()
        assert [world.do(purge.purge, 0) for _ in range(4)] == [2, 2, 2, 0]
        assert _left(world) == [3, 4, 5, 8, 9, 10, 13, 14, 15]

    def test_entries_that_lie_far_apart(self, world: World) -> None:
        rare, busy = Target("d", "rare"), Target("d", "busy", "p=1")
        _put(world, rare, *[busy] * 3, *[Target("d", f"t{n}") for n in range(9)], *[rare] * 3)
        assert world.do(HistoryPurge().purge, 0) == 1
        assert _left(world) == list(range(2, 17))

    def test_a_table_is_none_of_its_partitions(self, world: World) -> None:
        _put(world, *[Target("d", "t")] * 3, *[Target("d", "t", "p=1")] * 3)
        assert world.do(HistoryPurge().purge, 0) == 0

    def test_it_begins_again_at_the_oldest(self, world: World) -> None:
        """What a Hive beside us adds to targets that had their turn."""
        table = Target("d", "t")
        _put(world, *[table] * 3, *[Target("d", f"t{n}") for n in range(3)])
        purge = HistoryPurge()
        assert [world.do(purge.purge, 0) for _ in range(2)] == [0, 0]
        _put(world, table, first=7)
        assert [world.do(purge.purge, 0) for _ in range(2)] == [1, 0]
        assert 1 not in _left(world)

    def test_a_target_with_many(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(history_purge, "DROPPED_MAX", 4)
        _put(world, *[Target("d", "t")] * 14)
        purge = HistoryPurge()
        assert [world.do(purge.purge, 0) for _ in range(4)] == [4, 4, 3, 0]
        assert _left(world) == [12, 13, 14]


@pytest.mark.skipif(SERVER_URL is not None, reason="counts the steps that SQLite takes")
def test_a_call_takes_no_longer_over_a_long_history(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_purge, "ENTRIES_MAX", 20)
    taken = []
    for many in range(2):
        first = 1 + 200 * many
        targets = [Target("d", f"t{n}") for n in range(first, first + 200 + 3000 * many)]
        _put(world, *targets, first=first)
        purge = HistoryPurge()
        taken.append(max(steps(world, partial(purge.purge, before_ms=0)) for _ in range(3)))
    assert taken[1] < 1.5 * taken[0]


def _put(world: World, *targets: Target, first: int = 1) -> None:
    rows = [
        {
            "CC_ID": number,
            "CC_DATABASE": target.database,
            "CC_TABLE": target.table,
            "CC_PARTITION": target.partition,
            "CC_STATE": SUCCEEDED.stored,
            "CC_TYPE": CompactionType.MINOR.stored,
        }
        for number, target in enumerate(targets, first)
    ]
    with world.engine.transaction(write=True) as connection:
        connection.execute(insert(COMPLETED_COMPACTIONS), rows)


def _left(world: World) -> list[int]:
    return [row["CC_ID"] for row in world.records(COMPLETED_COMPACTIONS)]
