"""Column statistics stay at the source; a comparison tells of them only if asked."""

from __future__ import annotations

from dataclasses import replace

from hms_bridge.model.ids import WriteId
from hms_bridge.model.statistics import (
    ColumnStatistics,
    ObjectStatistics,
    StatisticsKind,
    StatisticsQuery,
    StatisticsUpdate,
)
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.repl.compare.described import Finding, Verdict
from hms_bridge.repl.handover.own_part import Access, set_access
from hms_bridge.service.metastore_service import MetastoreService
from tests.support.repl_world import ReplWorld
from tests.support.side_comparison import compare, told

ID = ColumnStatistics(
    column="id", type="int", kind=StatisticsKind.LONG, low=1, high=3, distinct_count=3
)
V = ColumnStatistics(
    column="v",
    type="string",
    kind=StatisticsKind.STRING,
    null_count=1,
    distinct_count=2,
    average_length=1.5,
    length_max=2,
)


def analyze(
    store: MetastoreService,
    database: str,
    table: str,
    *columns: ColumnStatistics,
    partition: str | None = None,
) -> None:
    txns = store.get_open_txns().snapshot()
    (seen,) = store.get_valid_write_ids([f"{database}.{table}"], txns)
    store.set_column_statistics(
        StatisticsUpdate(
            database_name=database,
            table_name=table,
            objects=(ObjectStatistics(columns=columns, partition_name=partition),),
            write_id=WriteId(seen.high_watermark),
            valid_write_ids=ValidWriteIdList.format(seen),
        )
    )


def of(store: MetastoreService, database: str, table: str) -> tuple[ObjectStatistics, ...]:
    query = StatisticsQuery(database_name=database, table_name=table, columns=["id", "v"])
    return store.get_column_statistics(query)


def test_events_of_statistics_are_passed_over_and_counted(busy_world: ReplWorld) -> None:
    """Hive answers queries from statistics that are said to be right; no commit that a load replays
    makes those of a replica wrong (docs/hive/replication.md §31)."""
    world = busy_world
    world.replicate()
    analyze(world.source, "src", "t", ID)
    analyze(world.source, "src", "parted", ID, partition="p=x")
    loaded = world.replicate()[1]
    assert loaded.passed == {"EVENT_UPDATE_TABLE_COL_STAT": 1, "EVENT_UPDATE_PART_COL_STAT": 1}
    assert (len(of(world.source, "src", "t")), of(world.target, "dst", "t")) == (1, ())


def test_statistics_are_compared_only_if_asked(busy_world: ReplWorld) -> None:
    world = busy_world
    analyze(world.source, "src", "t", ID, V)
    analyze(world.source, "src", "parted", ID, partition="p=x")
    world.replicate()
    assert told(compare(world)) == []
    report = compare(world, statistics=True)
    assert report.exit_code == 2
    assert [
        (one.table, one.partition, one.what, one.source, one.replica) for one in told(report)
    ] == [
        ("parted", "p=x", "statistics of id", "int: from 1 to 3, nulls 0, distinct 3", None),
        ("t", None, "statistics of id", "int: from 1 to 3, nulls 0, distinct 3", None),
        (
            "t",
            None,
            "statistics of v",
            "string: nulls 1, distinct 2, average length 1.5, longest 2",
            None,
        ),
    ]
    set_access(world.target, "dst", Access.WRITES)
    analyze(world.target, "dst", "t", ID, replace(V, length_max=3))
    (found,) = told(compare(world, "t", statistics=True))
    assert (found.what, found.replica) == (
        "statistics of v",
        "string: nulls 1, distinct 2, average length 1.5, longest 3",
    )
    analyze(world.target, "dst", "t", V)
    analyze(world.target, "dst", "parted", ID, partition="p=x")
    report = compare(world, statistics=True)
    assert told(report) == []
    assert {one.table: one.what.rpartition(", ")[2] for one in report.of(Verdict.EQUAL)} == {
        "parted": "statistics of 1 column",
        "t": "statistics of 2 columns",
    }


def test_statistics_that_the_source_changed_since_are_undecided(busy_world: ReplWorld) -> None:
    world = busy_world
    world.replicate()
    analyze(world.source, "src", "t", ID)
    found: list[Finding] = told(compare(world, "t", statistics=True))
    assert [(one.verdict, one.what) for one in found] == [(Verdict.UNDECIDED, "statistics of id")]
    assert "UPDATE_TBL_COL_STAT_EVENT" in found[0].why
    assert told(compare(world, "t")) == []
