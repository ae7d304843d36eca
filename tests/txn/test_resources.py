import pytest
from sqlalchemy import delete

from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_METRICS_CACHE,
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    HIVE_LOCKS,
    NEXT_WRITE_ID,
    TXN_COMPONENTS,
    TXN_TO_WRITE_ID,
    WRITE_SET,
)
from hms_bridge.backend.work import sql
from hms_bridge.errors import MetaError
from hms_bridge.model.compaction import DeltaCount
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.target import TableName, Target
from hms_bridge.txn import resources
from tests.support.txns import Txns
from tests.support.world import World

WRITE_IDS = (TXN_TO_WRITE_ID, NEXT_WRITE_ID)
FORGOTTEN = (
    TXN_COMPONENTS,
    COMPLETED_TXN_COMPONENTS,
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPACTION_METRICS_CACHE,
)
LEFT = (HIVE_LOCKS, WRITE_SET)


def _fill(world: World) -> None:
    places = [(table, partition) for table in ("t", "u") for partition in ("p=1", "p=2")]
    for table, partition in places:
        done, _ = world.txns.write(DataOperation.UPDATE, partition, table)
        world.txns.commit(done)
        world.txns.write(DataOperation.INSERT, partition, table)
        world.txns.compact(table, partition)
        world.txns.fail(world.txns.start_compaction(1))
        world.metastore.put_delta_count(Target("db", table, partition), DeltaCount.ALL, 1)
    for table, partition in places:
        world.txns.compact(table, partition)


def _names(world: World, column: str, *tables: object) -> set[str]:
    return {
        value
        for table in tables
        for row in world.records(table)  # type: ignore[arg-type]
        for name, value in row.items()
        if name.endswith(column)
    }


def test_a_dropped_table(world: World, txns: Txns) -> None:
    _fill(world)
    world.do(sql(resources.forget_table), "DB", "T")
    for table in (*FORGOTTEN, *WRITE_IDS):
        assert _names(world, "_TABLE", table) == {"u"}, table.name
    for table in LEFT:
        assert _names(world, "_TABLE", table) == {"t", "u"}
    assert txns.allocate(txns.open_one()) == [1]


def test_dropped_partitions(world: World) -> None:
    """What is written in them, and not committed, may still come."""
    _fill(world)
    world.do(sql(resources.forget_partitions), "db", "t", ["p=1", "p=3"])
    for table in FORGOTTEN:
        left = {
            (row[f"{_prefix(row)}_TABLE"], row[f"{_prefix(row)}_PARTITION"])
            for row in world.records(table)
        }
        is_uncommitted = table is TXN_COMPONENTS
        gone = set() if is_uncommitted else {("t", "p=1")}
        assert left == {(t, p) for t in "tu" for p in ("p=1", "p=2")} - gone, table.name
    assert _names(world, "_TABLE", *WRITE_IDS) == {"t", "u"}


def _prefix(row: dict[str, object]) -> str:
    return next(iter(row)).split("_")[0]


def test_a_dropped_database(world: World, txns: Txns) -> None:
    _fill(world)
    txns.allocate(txns.open_one(), database="other")
    world.do(sql(resources.forget_database), "Db")
    for table in FORGOTTEN:
        assert world.records(table) == []
    assert _names(world, "_DATABASE", *WRITE_IDS) == {"other"}


def test_a_renamed_table(world: World, txns: Txns) -> None:
    _fill(world)
    world.do(sql(resources.rename_table), TableName("DB", "T"), TableName("New", "V"))
    for table in (*FORGOTTEN, *WRITE_IDS, *LEFT):
        assert _names(world, "_TABLE", table) == {"u", "v"}, table.name
    assert _names(world, "_DATABASE", *FORGOTTEN) == {"db", "new"}
    assert txns.valid("new.v").high_watermark == 4


def test_a_name_under_which_somebody_writes_is_not_taken(world: World, txns: Txns) -> None:
    """As of a CREATE TABLE AS SELECT that goes on: its write ids would be those of the table."""
    _fill(world)
    other = txns.open_one()
    txns.allocate(other, table="v")
    renamed = TableName("db", "t"), TableName("db", "v")
    with pytest.raises(MetaError, match=f"db.t cannot be called db.v: .*txnid:{other}"):
        world.do(sql(resources.rename_table), *renamed)
    assert _names(world, "_TABLE", *WRITE_IDS) == {"t", "u", "v"}


def test_a_name_under_which_somebody_wrote_is_free_again(world: World, txns: Txns) -> None:
    _fill(world)
    for txn in (txns.open_one(), txns.open_one()):
        txns.allocate(txn, table="v")
        txns.commit(txn)
    before = txns.valid("db.t")
    world.execute(delete(TXN_TO_WRITE_ID).where(TXN_TO_WRITE_ID.c.T2W_TABLE == "v"))
    world.do(sql(resources.rename_table), TableName("db", "t"), TableName("db", "v"))
    assert txns.valid("db.v").high_watermark == before.high_watermark
    assert txns.allocate(txns.open_one(), table="v") == [before.high_watermark + 1]


def test_a_table_without_write_ids_takes_those_of_its_new_name(world: World, txns: Txns) -> None:
    writer = txns.open_one()
    txns.allocate(writer, table="v")
    world.do(sql(resources.rename_table), TableName("db", "t"), TableName("db", "v"))
    assert txns.allocate(txns.open_one(), table="v") == [2]


def test_a_renamed_partition(world: World) -> None:
    _fill(world)
    world.do(sql(resources.rename_partition), "db", "t", "p=1", "p=9")
    for table in (*FORGOTTEN, *LEFT):
        assert _names(world, "_PARTITION", table) == {"p=1", "p=2", "p=9"}, table.name


def test_another_case_is_no_other_name(world: World) -> None:
    _fill(world)
    before = world.records(TXN_COMPONENTS)
    world.do(sql(resources.rename_table), TableName("db", "t"), TableName("DB", "T"))
    world.do(sql(resources.rename_partition), "db", "t", "p=1", "p=1")
    assert world.records(TXN_COMPONENTS) == before
