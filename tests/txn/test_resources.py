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
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.target import TableName
from hms_bridge.txn import resources
from tests.support.txn_world import TxnWorld

WRITE_IDS = (TXN_TO_WRITE_ID, NEXT_WRITE_ID)
FORGOTTEN = (
    TXN_COMPONENTS,
    COMPLETED_TXN_COMPONENTS,
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPACTION_METRICS_CACHE,
)
LEFT = (HIVE_LOCKS, WRITE_SET)


def _fill(world: TxnWorld) -> None:
    places = [(table, partition) for table in ("t", "u") for partition in ("p=1", "p=2")]
    for table, partition in places:
        done, _ = world.write(DataOperation.UPDATE, partition, table)
        world.commit(done)
        world.write(DataOperation.INSERT, partition, table)
        world.compact(table, partition)
        world.fail(world.start_compaction(1))
        row = {"CMC_DATABASE": "db", "CMC_TABLE": table, "CMC_PARTITION": partition}
        more = {"CMC_METRIC_TYPE": "NUM_DELTAS", "CMC_METRIC_VALUE": 1, "CMC_VERSION": 1}
        world.put(COMPACTION_METRICS_CACHE, row | more)
    for table, partition in places:
        world.compact(table, partition)


def _names(world: TxnWorld, column: str, *tables: object) -> set[str]:
    return {
        value
        for table in tables
        for row in world.rows(table)  # type: ignore[arg-type]
        for name, value in row.items()
        if name.endswith(column)
    }


def test_a_dropped_table(world: TxnWorld) -> None:
    _fill(world)
    world.do(lambda c: resources.forget_table(c, "DB", "T"))
    for table in (*FORGOTTEN, *WRITE_IDS):
        assert _names(world, "_TABLE", table) == {"u"}, table.name
    for table in LEFT:
        assert _names(world, "_TABLE", table) == {"t", "u"}
    assert world.allocate(world.open_one()) == [1]


def test_dropped_partitions(world: TxnWorld) -> None:
    _fill(world)
    world.do(lambda c: resources.forget_partitions(c, "db", "t", ["p=1", "p=3"]))
    for table in FORGOTTEN:
        left = {
            (row[f"{_prefix(row)}_TABLE"], row[f"{_prefix(row)}_PARTITION"])
            for row in world.rows(table)
        }
        assert left == {("t", "p=2"), ("u", "p=1"), ("u", "p=2")}, table.name
    assert _names(world, "_TABLE", *WRITE_IDS) == {"t", "u"}


def _prefix(row: dict[str, object]) -> str:
    return next(iter(row)).split("_")[0]


def test_a_dropped_database(world: TxnWorld) -> None:
    _fill(world)
    world.allocate(world.open_one(), database="other")
    world.do(lambda c: resources.forget_database(c, "Db"))
    for table in FORGOTTEN:
        assert world.rows(table) == []
    assert _names(world, "_DATABASE", *WRITE_IDS) == {"other"}


def test_a_renamed_table(world: TxnWorld) -> None:
    _fill(world)
    world.do(lambda c: resources.rename_table(c, TableName("DB", "T"), TableName("New", "V")))
    for table in (*FORGOTTEN, *WRITE_IDS, *LEFT):
        assert _names(world, "_TABLE", table) == {"u", "v"}, table.name
    assert _names(world, "_DATABASE", *FORGOTTEN) == {"db", "new"}
    assert world.valid("new.v").high_watermark == 4


def test_a_renamed_partition(world: TxnWorld) -> None:
    _fill(world)
    world.do(lambda c: resources.rename_partition(c, "db", "t", "p=1", "p=9"))
    for table in (*FORGOTTEN, *LEFT):
        assert _names(world, "_PARTITION", table) == {"p=1", "p=2", "p=9"}, table.name


def test_another_case_is_no_other_name(world: TxnWorld) -> None:
    _fill(world)
    before = world.rows(TXN_COMPONENTS)
    world.do(lambda c: resources.rename_table(c, TableName("db", "t"), TableName("DB", "T")))
    world.do(lambda c: resources.rename_partition(c, "db", "t", "p=1", "p=1"))
    assert world.rows(TXN_COMPONENTS) == before
