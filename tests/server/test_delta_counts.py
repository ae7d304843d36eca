"""How many deltas a table has, as Hive's workers say it after a compaction (docs/hive/metastore.md
§25)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from hms_bridge.errors import MetaError, NoSuchObjectError
from hms_bridge.model.catalog import Column, Database, Storage, Table
from hms_bridge.wire.structs import hive
from tests.conformance.objects import partition
from tests.support.served_metastore import ServedMetastore, served_metastore

OBSOLETE, DELTAS, SMALL = range(3)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedMetastore]:
    """Tables db.t, and db.p with partitions p=1 and p=2."""
    storage = Storage(columns=(Column(name="a", type="int"),))
    plain = Table(name="t", database_name="db", storage=storage)
    keys = (Column(name="p", type="string"),)
    parted = Table(name="p", database_name="db", storage=storage, partition_columns=keys)
    with served_metastore(tmp_path) as served:
        served.metastore.create_database(Database(name="db"))
        for table in (plain, parted):
            served.metastore.create_table(table)
        served.metastore.add_partitions("db", "p", [partition("db", "p", n) for n in "12"])
        yield served


def _kept(served: ServedMetastore) -> list[tuple[object, ...]]:
    """Table, partition, kind, value and version of each row."""
    with create_engine(served.database_url).connect() as connection:
        rows = connection.execute(
            text(
                'SELECT "CMC_TABLE", "CMC_PARTITION", "CMC_METRIC_TYPE", "CMC_METRIC_VALUE", '
                '"CMC_VERSION" FROM "COMPACTION_METRICS_CACHE"'
            )
        )
        return sorted((tuple(row) for row in rows), key=str)


def _update(
    served: ServedMetastore, kind: int, value: int, threshold: int | None, **where: str
) -> Any:
    data = hive.CompactionMetricsDataStruct(
        **{"dbname": "DB", "tblname": "T"} | where, type=kind, metricvalue=value,
        threshold=threshold,
    )  # fmt: skip
    return served.call("update_compaction_metrics_data", data=data)


def test_a_count_is_kept_while_it_reaches_the_threshold(served: ServedMetastore) -> None:
    assert _update(served, DELTAS, 9, 10) is True
    assert _kept(served) == []
    assert _update(served, DELTAS, 10, 10) is True
    assert _update(served, OBSOLETE, 3, None) is True
    assert _update(served, DELTAS, 12, 10) is True
    assert _kept(served) == [("t", None, "NUM_DELTAS", 12, 2),
                            ("t", None, "NUM_OBSOLETE_DELTAS", 3, 1)]  # fmt: skip
    assert _update(served, DELTAS, 9, 10) is True
    assert _kept(served) == [("t", None, "NUM_OBSOLETE_DELTAS", 3, 1)]


def test_counts_of_partitions(served: ServedMetastore) -> None:
    for value in ("1", "2"):
        for kind in (DELTAS, SMALL):
            assert _update(served, kind, 5, 5, tblname="p", partitionname=f"p={value}")
    assert _update(served, SMALL, 6, 5, tblname="p", partitionname="p=1")
    few = [row for row in _kept(served) if row[2] == "NUM_SMALL_DELTAS"]
    assert few == [("p", "p=1", "NUM_SMALL_DELTAS", 6, 2), ("p", "p=2", "NUM_SMALL_DELTAS", 5, 1)]
    remove = "remove_compaction_metrics_data"
    of_table = {"dbName": "Db", "tblName": "P"}
    request = hive.CompactionMetricsDataRequest(**of_table, partitionName="p=1", type=SMALL)
    for _ in range(2):
        served.call(remove, request=request)
    assert len(_kept(served)) == 3
    served.call(remove, request=hive.CompactionMetricsDataRequest(**of_table, type=DELTAS))
    assert _kept(served) == few[1:]


def test_what_is_not_there_has_no_count(served: ServedMetastore) -> None:
    """Hive keeps it for ever: its rows go with the table."""
    for where in ({"tblname": "none"}, {"tblname": "p", "partitionname": "p=3"}):
        with pytest.raises(NoSuchObjectError):
            _update(served, DELTAS, 5, 0, **where)
    with pytest.raises(MetaError, match="kind 7.*NUM_OBSOLETE_DELTAS"):
        _update(served, 7, 5, 0)
    assert _kept(served) == []
