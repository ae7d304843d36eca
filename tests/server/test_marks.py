"""Marks on partitions (docs/hive/metastore.md §40)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hms_bridge.clock import Clock, SystemClock
from hms_bridge.config.reading import settings_from
from hms_bridge.errors import MetaError, MetastoreError, NoSuchObjectError
from hms_bridge.model.catalog import Column, Database, Storage, Table
from tests.support.served_metastore import ServedMetastore, served_metastore
from tests.support.simulated_clock import SimulatedClock
from tests.support.stored_rows import rows_of

DAY_MS = 86_400_000


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedMetastore]:
    """Table db.p, partitioned by ds and hr."""
    with serving(tmp_path, SystemClock()) as served:
        yield served


@contextmanager
def serving(folder: Path, clock: Clock, **settings: Any) -> Iterator[ServedMetastore]:
    keys = (Column(name="ds", type="string"), Column(name="hr", type="int"))
    storage = Storage(columns=(Column(name="a", type="int"),))
    table = Table(name="p", database_name="db", storage=storage, partition_columns=keys)
    with served_metastore(folder, clock, **settings) as served:
        served.metastore.create_database(Database(name="db"))
        served.metastore.create_table(table)
        yield served


def _ask(served: ServedMetastore, name: str, *, table: str = "P", kind: int = 1, **of: str) -> Any:
    return served.call(name, db_name="DB", tbl_name=table, part_vals=of, eventType=kind)


def test_a_partition_is_marked_once(served: ServedMetastore) -> None:
    mark, is_marked = "markPartitionForEvent", "isPartitionMarkedForEvent"
    assert _ask(served, is_marked, ds="1", hr="2") is False
    for _ in range(2):
        _ask(served, mark, HR="2", ds="1")
    assert _ask(served, is_marked, ds="1", hr="2") is True
    assert _ask(served, is_marked, ds="2", hr="1") is False
    (row,) = rows_of(served.database_url, "PARTITION_EVENTS")
    assert (row["PARTITION_NAME"], row["DB_NAME"], row["TBL_NAME"]) == ("1,2", "db", "p")


@pytest.mark.parametrize(("setting", "kept"), [("0s", {"1,2", "2,2"}), ("2d", {"2,2"})])
def test_marks_go_after_the_time_that_hives_setting_names(
    tmp_path: Path, setting: str, kept: set[str]
) -> None:
    events = settings_from({"hive.metastore.event.expiry.duration": setting}).events
    clock = SimulatedClock()
    with serving(tmp_path, clock, events=events) as served:
        for day in ("1", "2"):
            _ask(served, "markPartitionForEvent", ds=day, hr="2")
            served.metastore.run_housekeeping()
            clock.advance_ms(int(1.5 * DAY_MS))
        served.metastore.run_housekeeping()
        rows = rows_of(served.database_url, "PARTITION_EVENTS")
    assert {row["PARTITION_NAME"] for row in rows} == kept


def test_what_is_no_partition_cannot_be_marked(served: ServedMetastore) -> None:
    for name in ("markPartitionForEvent", "isPartitionMarkedForEvent"):
        with pytest.raises(MetaError, match="the partition columns of db.p are ds, hr"):
            _ask(served, name, ds="1")
        with pytest.raises(MetaError, match="7 is no kind of event"):
            _ask(served, name, kind=7, ds="1", hr="2")
        with pytest.raises(NoSuchObjectError):
            _ask(served, name, table="none", ds="1", hr="2")
    with pytest.raises(MetastoreError, match="at most 767 fit"):
        _ask(served, "markPartitionForEvent", ds="d" * 767, hr="2")
