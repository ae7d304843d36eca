"""A partition is found by its own name only: MySQL compares texts without the blanks at their ends,
so who asked for ``a `` got ``a``, and who dropped it lost the other's rows. Of locks the rows
decide, as in Hive, whose CheckLockFunction joins them by names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import or_, select

from hms_bridge.backend.schema.txn_tables import HIVE_LOCKS
from hms_bridge.backend.work import Work
from hms_bridge.errors import AlreadyExistsError, BackendError, NoSuchObjectError
from hms_bridge.model.catalog import Column
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.lock import DataOperation, LockComponent, LockRequest, LockState, LockType
from hms_bridge.model.target import Target
from hms_bridge.txn import locks
from tests.conformance.objects import acid_table, partition, request
from tests.support.txns import component
from tests.support.world import World


@pytest.fixture
def world(fast_folder: Path) -> Iterator[World]:
    world = World(fast_folder)
    keys = (Column(name="k", type="string"),)
    world.metastore.create_table(acid_table("db", "t", partition_columns=keys))
    world.metastore.add_partitions("db", "t", [partition("db", "t", "a")])
    yield world
    world.close()


def test_another_is_not_found(world: World) -> None:
    metastore = world.metastore
    with pytest.raises(NoSuchObjectError):
        metastore.get_partition("db", "t", ["a "])
    assert metastore.get_partitions_by_names("db", "t", ["k=a "]) == ()
    (found,) = metastore.get_partitions_by_names("db", "t", ["k=a ", "k=a"])
    assert found.values == ("a",)
    wanted = Target("db", "t", "k=a ")
    with pytest.raises(NoSuchObjectError):
        metastore.compact(CompactionRequest(target=wanted, type=CompactionType.MAJOR))


def test_another_is_not_dropped(world: World) -> None:
    metastore = world.metastore
    with pytest.raises(NoSuchObjectError, match="missing: k=a "):
        metastore.drop_partitions("db", "t", ["k=a "])
    metastore.drop_partitions("db", "t", ["k=a "], is_if_exists=True)
    assert metastore.get_partition_names("db", "t") == ("k=a",)


def test_it_is_added_beside_the_other_or_refused(world: World) -> None:
    metastore = world.metastore
    try:
        metastore.add_partitions("db", "t", [partition("db", "t", "a ")])
    except AlreadyExistsError:
        with pytest.raises(BackendError):
            metastore.add_partitions("db", "t", [partition("db", "t", "a ")], is_if_not_exists=True)
        assert metastore.get_partition_names("db", "t") == ("k=a",)
    else:
        assert metastore.get_partition_names("db", "t") == ("k=a", "k=a ")


Names = tuple[str, str | None, str | None]


def exclusive(database: str, table: str | None, name: str | None) -> LockComponent:
    return component(
        LockType.EXCLUSIVE, DataOperation.NO_TXN, database=database, table=table, partition=name
    )


def is_conflict(work: Work) -> bool:
    """Whether two transactions have locks that the database takes for ones of the same thing."""
    one, other = HIVE_LOCKS.alias().c, HIVE_LOCKS.alias().c
    same = [
        or_(one[name].is_(None), other[name].is_(None), one[name] == other[name])
        for name in ("HL_DB", "HL_TABLE", "HL_PARTITION")
    ]
    rows = select(one.HL_LOCK_EXT_ID).where(one.HL_TXNID < other.HL_TXNID, *same)
    return work.connection.execute(rows).first() is not None


PAIRS = {
    "database": (("db", None, None), ("db ", None, None)),
    "table": (("db", "t", None), ("db", "t ", None)),
    "partition": (("db", "t", "k=a"), ("db", "t", "k=a ")),
    "table of a partition": (("db", "t", None), ("db", "t ", "k=a")),
}


@pytest.mark.parametrize("is_among_others", [False, True])
@pytest.mark.parametrize("is_blank_first", [False, True])
@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS.keys())
def test_no_lock_is_granted_beside_one_that_the_rows_say_conflicts(
    world: World, pair: tuple[Names, Names], *, is_blank_first: bool, is_among_others: bool
) -> None:
    first, second = pair[::-1] if is_blank_first else pair
    others = [exclusive("db", "other", None)] if is_among_others else []
    one, two = world.txns.open(2)
    held = world.txns.lock(one, exclusive(*first))
    asked = world.txns.lock(two, exclusive(*second), *others)

    assert held.state is LockState.ACQUIRED
    waits_or_not = LockState.WAITING if world.do(is_conflict) else LockState.ACQUIRED
    assert asked.state is waits_or_not
    assert world.txns.check(asked.lock_id) is waits_or_not
    world.txns.commit(one)
    assert world.txns.check(asked.lock_id) is LockState.ACQUIRED


def asked_together(requests: Sequence[LockRequest], work: Work) -> list[LockState]:
    answers = locks.ask_each(work, requests)
    if answers is None:
        return [locks.lock(work, request).state for request in requests]
    return [answer.state for answer in answers()]


def test_nor_is_one_of_several_that_come_at_once(world: World) -> None:
    one, two = world.txns.open(2)
    requests = [request(exclusive("db", "t", "k=a"), txn=one)]
    requests.append(request(exclusive("db", "t", "k=a "), txn=two))
    states = world.do(partial(asked_together, requests))
    second = LockState.WAITING if world.do(is_conflict) else LockState.ACQUIRED
    assert states == [LockState.ACQUIRED, second]


def test_nor_one_of_a_batch_beside_one_that_is_held(world: World) -> None:
    holder, one = world.txns.open(2)
    world.txns.lock(holder, exclusive("db", "t", "k=a "))
    requests = [request(exclusive("db", "t", "k=a"), txn=one)]
    states = world.do(partial(asked_together, requests))
    first = LockState.WAITING if world.do(is_conflict) else LockState.ACQUIRED
    assert states == [first]
