"""Tables that a real Hive left behind, adopted into a new metastore: the rows that Hive read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.adoption.adopt import adopt
from hms_bridge.adoption.look import look
from hms_bridge.adoption.plan import AdoptionPlan, AdoptionRequest
from hms_bridge.connect import LocalStore
from hms_bridge.model.catalog import Column
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.rows.scan import plan_scan, read_scan_split
from hms_bridge.session.transaction import current_snapshot
from tests.support.golden import GoldenStage, golden_stages
from tests.support.golden_values import golden_value

pytestmark = pytest.mark.golden

STAGES = [stage for stage in golden_stages("full_acid") if stage.has_rows]
RENAMED = {"g14_evolution", "g24_positional"}
"""Files tell the names that columns had when they were written."""


def request_for(stage: GoldenStage, location: Path | None = None, **given: Any) -> AdoptionRequest:
    definition = stage.state["metastore_table"]
    values: dict[str, Any] = {
        "database_name": "left",
        "table_name": stage.scenario,
        "location": str(location or stage.files),
        "partition_types": dict(map(tuple, definition["partition_columns"])),
        "bucket_columns": tuple(definition["bucket_columns"]),
        "bucket_count": definition["num_buckets"],
        "valid_write_ids": ValidWriteIdList.parse(stage.state["valid_write_id_list"]),
        "is_open_aborted": True,
        "owner": "ann",
    } | given
    return AdoptionRequest(**values)


def adopted(stage: GoldenStage, store: LocalStore, **given: Any) -> AdoptionPlan:
    plan = look(request_for(stage, **given), FsspecResolver())
    adopt(plan, store.metastore, user="ann", host="here")
    return plan


def scanned(store: LocalStore, database: str, name: str) -> list[str]:
    """Every row with its ROW__ID, as text; columns by position."""
    table = store.metastore.get_table(database, name)
    txns = current_snapshot(store.metastore)
    (write_ids,) = store.metastore.get_valid_write_ids([table.full_name], txns)
    columns = (*table.storage.columns, *table.partition_columns)
    splits = plan_scan(store.metastore, store.resolver, table, txns=txns, write_ids=write_ids)
    return sorted(
        _text(row["row__id"].values(), [_value(row[c.name], c) for c in columns])
        for split in splits
        for batch in read_scan_split(store.resolver, split, columns, has_row_ids=True)
        for row in batch.to_pylist()
    )


def told(stage: GoldenStage) -> list[str]:
    definition = stage.state["metastore_table"]
    columns = [*definition["columns"], *definition["partition_columns"]]
    return sorted(
        _text(
            row["row__id"],
            [_told_value(row["values"][name], kind) for name, kind in columns],
        )
        for row in stage.rows or []
    )


def _text(row_id: Any, values: list[Any]) -> str:
    return json.dumps([list(row_id), values], ensure_ascii=False)


def _value(value: Any, column: Column) -> Any:
    if "timestamp" in column.type:
        return None
    return golden_value(value, parse_hive_type(column.type))


def _told_value(value: Any, kind: str) -> Any:
    if "timestamp" in kind:  # seen through another form in tests/rows
        return None
    return value


def _columns(stage: GoldenStage) -> tuple[Column, ...]:
    return tuple(
        Column(name=name, type=kind) for name, kind in stage.state["metastore_table"]["columns"]
    )


@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_reads_what_hive_read(stage: GoldenStage, store: LocalStore) -> None:
    is_told = stage.scenario in RENAMED or not any(
        path["path"].rpartition("/")[2][0].isalnum() for path in stage.state["files"]
    )
    given = {"columns": _columns(stage)} if is_told else {}
    plan = adopted(stage, store, **given)
    assert scanned(store, "left", stage.scenario) == told(stage)
    own = [(c.name, c.type) for c in plan.table.storage.columns]
    assert own == list(map(tuple, stage.state["metastore_table"]["columns"]))


def test_there_are_goldens() -> None:
    assert len(STAGES) > 60
