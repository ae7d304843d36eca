"""A verb of the metastore that fails at any call has changed nothing, or all, and says so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from changemanager.manifest import Pin, PinKind
from hms_bridge.model.catalog import Column, Database, Table
from hms_bridge.model.compaction import CompactionType
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind
from hms_bridge.model.function import Function
from hms_bridge.model.ids import LockId
from hms_bridge.model.lock import LockType
from hms_bridge.model.replication import (
    CycleOutcome,
    CycleResult,
    PolicySide,
    ReplicationPolicy,
)
from hms_bridge.model.statistics import (
    ColumnStatistics,
    ObjectStatistics,
    StatisticsKind,
    StatisticsUpdate,
)
from hms_bridge.model.target import TableName
from hms_bridge.model.txn import DynamicPartitions
from tests.conformance import objects
from tests.failures.failing import Tried, Verb
from tests.failures.scene import Saved, Scene, scene_of_one
from tests.support.world import COLUMNS, PARTITION_COLUMNS, World

ADDED = Column(name="added", type="int")
KEY = ColumnConstraint(name="k", kind=ConstraintKind.PRIMARY_KEY, column="id")
CHECK = ColumnConstraint(name="c", kind=ConstraintKind.NOT_NULL, column="v")
POLICY = ReplicationPolicy(
    name="sales",
    root="/dumps",
    source=PolicySide(metastore="thrift://elsewhere:9083", database="db"),
    target=PolicySide(database="copy"),
)
PIN = Pin(holder="hold:a", kind=PinKind.HOLD, reason="by hand", created_at_ms=1, database="db")
STATISTICS = StatisticsUpdate(
    database_name="db",
    table_name="t",
    objects=(
        ObjectStatistics(
            columns=(
                ColumnStatistics(
                    column="id", type="int", kind=StatisticsKind.LONG, low=1, high=2, null_count=0
                ),
            )
        ),
    ),
)


def fill(world: World) -> None:
    """A replication source with tables of each kind, and another database."""
    world.create_table("t")
    world.insert("t", (1, "a"), (2, "b"))
    world.delete("t", 2)
    world.create_table("p", is_partitioned=True)
    for value in ("a", "b"):
        name = world.add_partition("p", value)
        world.insert("p", (1, "a"), (2, "b"), partition=name)
    metastore = world.metastore
    metastore.create_database(Database(name="other"))
    for name in ("x", "y"):
        metastore.create_table(plain_partitioned("other", name))
    metastore.add_partitions("other", "x", [objects.partition("other", "x", "a")])
    place = metastore.get_partition("other", "x", ["a"]).storage.location
    file = Path(str(place).removeprefix("file:")) / "part-0"
    file.write_bytes(b"rows")
    metastore.add_constraints("db", "t", [KEY])
    metastore.create_function(Function(name="f", database_name="db", class_name="a.B"))


def plain_partitioned(database: str, name: str) -> Table:
    return objects.acid_table(
        database,
        name,
        storage=objects.orc_storage(COLUMNS),
        partition_columns=PARTITION_COLUMNS,
        parameters={"EXTERNAL": "TRUE", "external.table.purge": "TRUE"},
        type="EXTERNAL_TABLE",
    )


def renamed(world: World) -> Table:
    return replace(world.describe("t"), name="t2")


def widened(world: World) -> Table:
    table = world.describe("t")
    return replace(table, storage=replace(table.storage, columns=(*COLUMNS, ADDED)))


def renaming_of_a_partition(world: World) -> Verb:
    old = world.metastore.get_partition("db", "p", ["a"])
    return lambda: world.metastore.rename_partition("db", "p", ["a"], replace(old, values=("c",)))


def truncation(world: World, table: str, names: list[str] | None) -> Verb:
    txn = world.begin()
    txn.lock(table)
    given = txn.write_id(table)
    return lambda: world.metastore.truncate_table("db", table, names, write_id=given)


def dynamic(world: World) -> Verb:
    txn = world.begin()
    written = DynamicPartitions(
        txn_id=txn.id,
        write_id=txn.write_id("p"),
        database_name="db",
        table_name="p",
        partition_names=("p=a",),
    )
    return lambda: world.metastore.add_dynamic_partitions(written)


def commit(world: World) -> Verb:
    txn = world.begin()
    txn.lock("t")
    txn.insert("t", [(3, "c")])
    return txn.commit


def abort(world: World) -> Verb:
    txn = world.begin()
    txn.lock("t")
    txn.insert("t", [(3, "c")])
    return txn.abort


def several_aborts(world: World) -> Verb:
    txns = [world.begin() for _ in range(3)]
    for txn in txns:
        txn.lock("t")
    return lambda: world.metastore.abort_txns([txn.id for txn in txns])


def waiting(world: World) -> Verb:
    """A lock that waits, until it is looked at again."""
    first, second = world.open(), world.open()
    part = objects.component("db", "t", LockType.EXCLUSIVE)
    world.metastore.lock(objects.request(part, txn=first))
    answer = world.metastore.lock(objects.request(part, txn=second))
    world.abort(first)
    return lambda: world.metastore.check_lock(answer.lock_id)


def unlocking(world: World) -> Verb:
    answer = world.metastore.lock(objects.request(objects.component("db")))
    return lambda: world.metastore.unlock(answer.lock_id)


def claiming(world: World) -> Verb:
    world.request_compaction("t")
    return lambda: world.metastore.find_next_compaction("w", "1")


def ending_a_compaction(verb: str, world: World) -> Verb:
    world.request_compaction("t")
    entry = world.metastore.find_next_compaction("w", "1")
    assert entry is not None
    txn = objects.open_txn(world.metastore)
    mine = replace(entry, highest_write_id=objects_highest(world), error_message="why")
    if verb == "update_compactor_state":
        return lambda: world.metastore.update_compactor_state(mine, txn)
    world.metastore.update_compactor_state(mine, txn)
    return lambda: getattr(world.metastore, verb)(replace(mine, txn_id=txn))


def objects_highest(world: World):  # type: ignore[no-untyped-def]
    return world.metastore.get_max_allocated_write_id("db", "t")


def ended_compaction(world: World) -> Verb:
    world.request_compaction("t")
    (entry,) = world.metastore.show_compactions()
    return lambda: world.metastore.abort_compactions([entry.id])


def with_policy(call: Callable[[World], object], world: World) -> Verb:
    world.metastore.policies.add_policies([POLICY])
    return lambda: call(world)


def begun_cycle(world: World) -> Verb:
    store = world.metastore.policies
    store.add_policies([POLICY])
    number = store.begin_cycle("sales", "here")
    result = CycleResult(outcome=CycleOutcome.REPLICATED, event_count=1)
    return lambda: store.end_cycle("sales", number, result)


def housekeeping(world: World) -> Verb:
    commit(world)
    world.request_compaction("t")
    world.metastore.find_next_compaction("w", "1")
    world.clock.advance_ms(2 * 86_400_000)
    return world.metastore.run_housekeeping


def m(call: Callable[[World], object]) -> Callable[[World], Verb]:
    """What needs nothing before."""
    return lambda world: partial(call, world)


VERBS: dict[str, Callable[[World], Verb]] = {
    "create_database": m(lambda w: w.metastore.create_database(Database(name="new"))),
    "alter_database": m(
        lambda w: w.metastore.alter_database(
            "db", replace(w.metastore.get_database("db"), parameters={"a": "b"})
        )
    ),
    "drop_database": m(lambda w: w.metastore.drop_database("other", is_cascade=True)),
    "create_table": m(lambda w: w.metastore.create_table(objects.acid_table("db", "new"))),
    "alter_table": m(lambda w: w.metastore.alter_table("db", "t", widened(w))),
    "rename": lambda w: partial(w.metastore.alter_table, "db", "t", renamed(w)),
    "drop_table": m(lambda w: w.metastore.drop_table("db", "t")),
    "drop_table, partitioned": m(lambda w: w.metastore.drop_table("db", "p")),
    "truncate_table": lambda w: truncation(w, "t", None),
    "truncate_table, partition": lambda w: truncation(w, "p", ["p=a"]),
    "truncate_table, no ACID": m(lambda w: w.metastore.truncate_table("other", "x", None)),
    "add_partitions": m(
        lambda w: w.metastore.add_partitions(
            "db", "p", [objects.partition("db", "p", one) for one in ("c", "d")]
        )
    ),
    "alter_partitions": m(
        lambda w: w.metastore.alter_partitions(
            "db",
            "p",
            [replace(one, parameters={"a": "b"}) for one in w.metastore.get_partitions("db", "p")],
        )
    ),
    "rename_partition": renaming_of_a_partition,
    "drop_partitions": m(lambda w: w.metastore.drop_partitions("db", "p", ["p=a", "p=b"])),
    "exchange_partitions": m(
        lambda w: w.metastore.exchange_partitions(
            {"p": "a"}, TableName("other", "x"), TableName("other", "y")
        )
    ),
    "add_constraints": m(lambda w: w.metastore.add_constraints("db", "t", [CHECK])),
    "drop_constraint": m(lambda w: w.metastore.drop_constraint("db", "t", "k")),
    "create_function": m(
        lambda w: w.metastore.create_function(
            Function(name="g", database_name="db", class_name="a.B")
        )
    ),
    "drop_function": m(lambda w: w.metastore.drop_function("db", "f")),
    "set_column_statistics": m(lambda w: w.metastore.set_column_statistics(STATISTICS)),
    "open_txns": m(lambda w: w.open()),
    "commit_txn": commit,
    "abort_txn": abort,
    "abort_txns": several_aborts,
    "allocate_table_write_ids": lambda w: partial(w.begin().write_id, "t"),
    "lock": lambda w: partial(w.begin().lock, "t"),
    "check_lock": waiting,
    "unlock": unlocking,
    "heartbeat": lambda w: partial(w.metastore.heartbeat, w.begin().id, LockId(0)),
    "add_dynamic_partitions": dynamic,
    "compact": m(lambda w: w.txns.compact("t", kind=CompactionType.MAJOR)),
    "find_next_compaction": claiming,
    **{
        verb: partial(ending_a_compaction, verb)
        for verb in ("update_compactor_state", "mark_compacted", "mark_failed", "mark_refused")
    },
    "abort_compactions": ended_compaction,
    "run_housekeeping": housekeeping,
    "recycle_directory": m(
        lambda w: w.metastore.recycle_directory(f"{w.describe('t').storage.location}")
    ),
    "add_policies": m(lambda w: w.metastore.policies.add_policies([POLICY])),
    "set_paused": partial(
        with_policy, lambda w: w.metastore.policies.set_paused("sales", is_paused=True)
    ),
    "remove_policy": partial(with_policy, lambda w: w.metastore.policies.remove_policy("sales")),
    "begin_cycle": partial(
        with_policy, lambda w: w.metastore.policies.begin_cycle("sales", "here")
    ),
    "end_cycle": begun_cycle,
    "put_pin": m(lambda w: w.metastore.manifest.put_pin(PIN)),
}


OF_STEPS = {"truncate_table, no ACID", "run_housekeeping"}
"""Files go one by one; parts of housekeeping are transactions of their own."""


@pytest.fixture(scope="module")
def scene(fast_root: Path) -> Iterator[Scene]:
    with scene_of_one(fast_root / "failing", fill) as scene:
        yield scene


@pytest.fixture(scope="module")
def start(scene: Scene) -> Saved:
    return scene.save()


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_that_fails(verb: str, scene: Scene, start: Saved) -> None:
    scene.restore(start)
    (world,) = scene.worlds
    Tried(scene, VERBS[verb](world), is_of_steps=verb in OF_STEPS).run()
