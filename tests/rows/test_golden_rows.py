"""Every full-ACID ORC stage of the goldens reads exactly what real Hive read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from changemanager.filesystem.local import LocalVolume
from hms_bridge.directories.listing import list_acid_directory
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.orc.timestamps import TimestampForm
from hms_bridge.rows.reader import Projection, has_raw_rows
from hms_bridge.snapshot.plan import plan_read
from tests.support.golden import GoldenStage, golden_stages
from tests.support.golden_values import golden_rows, partition_value, table_type
from tests.support.plan_rows import read_plan

pytestmark = pytest.mark.golden

STAGES = [stage for stage in golden_stages("full_acid") if stage.has_rows]


@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_reads_what_hive_read(stage: GoldenStage) -> None:
    known = sorted(map(_text, stage.rows or []))
    assert sorted(map(_text, _read(stage))) == known
    assert sorted(map(_text, _read(stage, bytes_max=200))) == known


def test_there_are_goldens() -> None:
    assert len(STAGES) > 20


def _text(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True, ensure_ascii=False)


def _read(stage: GoldenStage, bytes_max: int | None = None) -> list[dict[str, Any]]:
    volume = LocalVolume()
    definition = stage.state["metastore_table"]
    table = table_type(definition["columns"])
    keys = table_type(definition["partition_columns"])
    projection = Projection(table=table, has_row_id=True, timestamps=TimestampForm.PARTS)
    rows = []
    for partition in stage.partitions:
        listing = list_acid_directory(
            volume, stage.root(partition), has_raw_rows=lambda path: has_raw_rows(volume, path)
        )
        plan = plan_read(
            listing, txns=stage.txns, write_ids=stage.write_ids, is_bucketed=stage.is_bucketed
        )
        values = {}
        if partition is not None:
            pairs = zip(parse_partition_name(partition), keys.children, strict=True)
            values = {name: partition_value(text, node) for (name, text), node in pairs}
        for batch in read_plan(volume, plan, projection, bytes_max):
            for row in golden_rows(batch, table):
                row["values"] |= values
                rows.append(row)
    return rows
