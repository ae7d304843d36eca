"""Values that compactions must keep as they are, though few writers make them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import orc

from changemanager.location import FsspecResolver
from hms_bridge.compaction.executor import always
from hms_bridge.compaction.kernel import BucketKernel, LocalExecutor
from hms_bridge.compaction.worker import Worker
from hms_bridge.model.catalog import Column
from hms_bridge.model.compaction import VerifyMode
from hms_bridge.rows.scan import plan_scan, read_scan_split
from hms_bridge.session.transaction import current_snapshot
from tests.conformance import objects
from tests.support.world import WHO, World

SECOND = 10**9
# The last second before 1970, as Arrow's C++ writer can store it, and its neighbours.
NANOS = [5, -SECOND // 2, -1, -SECOND, -3 * SECOND // 2, SECOND // 2, 1_577_934_245_123_456_789]
TEXTS = [
    "1969-12-31 23:59:59.5",
    "1969-12-31 23:59:59.999999999",
    "1969-12-31 23:59:59",
    "1969-12-31 23:59:58.5",
    "1970-01-01 00:00:00.5",
    "2020-01-02 03:04:05.123456789",
]


def _table(world: World, kind: str) -> Path:
    columns = (Column(name="id", type="int"), Column(name="v", type=kind))
    world.metastore.create_table(
        objects.acid_table(world.database, "t", storage=objects.orc_storage(columns))
    )
    return world.path("t")


def _original(directory: Path, values: pa.Array) -> None:
    """A file from before the table was ACID, written by Arrow's C++ writer."""
    ids = pa.array(range(len(values)), pa.int32())
    directory.mkdir(parents=True, exist_ok=True)
    orc.write_table(pa.table({"id": ids, "v": values}), str(directory / "000000_0"))


def _changed(world: World, kind: str) -> None:
    """ALTER TABLE … CHANGE v v KIND: older files stay as they are."""
    table = world.describe("t")
    columns = (table.storage.columns[0], Column(name="v", type=kind))
    world.metastore.alter_table(
        world.database, "t", replace(table, storage=replace(table.storage, columns=columns))
    )


def _compacted(world: World, verify: VerifyMode) -> list[dict[str, Any]]:
    """Rows after a major compaction that has a delete to carry out."""
    world.delete("t", 0)
    before = world.rows("t")
    world.request_compaction("t")
    kernel = BucketKernel(resolver=world.resolve, verify=verify)
    worker = Worker(world.metastore, always(LocalExecutor(kernel=kernel)), FsspecResolver(), WHO)
    outcome = worker.run_once()
    assert outcome is not None
    assert outcome.state == "compacted", outcome.message
    assert world.rows("t") == before
    return before


def _selected(world: World) -> list[Any]:
    """Column v as tasks of a SELECT read it, which take timestamps in microseconds."""
    table, txns = world.describe("t"), current_snapshot(world.metastore)
    (write_ids,) = world.metastore.get_valid_write_ids([table.full_name], txns)
    splits = plan_scan(world.metastore, world.resolve, table, txns=txns, write_ids=write_ids)
    batches = [
        batch
        for split in splits
        for batch in read_scan_split(world.resolve, split, table.storage.columns, has_row_ids=False)
    ]
    rows = pa.Table.from_batches(batches).sort_by("id")
    values: list[Any] = rows.column("v").to_pylist()
    return values


@pytest.mark.parametrize("verify", VerifyMode)
def test_the_last_second_before_1970_stays(tmp_path: Path, verify: VerifyMode) -> None:
    world = World(tmp_path)
    _original(_table(world, "timestamp"), pa.array(NANOS, pa.timestamp("ns")))
    rows = _compacted(world, verify)
    assert [row["v"] for row in rows] == TEXTS


@pytest.mark.parametrize("verify", VerifyMode)
def test_a_timestamp_that_has_become_text_keeps_all_digits(
    tmp_path: Path, verify: VerifyMode
) -> None:
    """As Hive reads it: docs/hive/acid.md §20."""
    world = World(tmp_path)
    _original(_table(world, "timestamp"), pa.array(NANOS, pa.timestamp("ns")))
    _changed(world, "string")
    assert _selected(world) == ["1970-01-01 00:00:00.000000005", *TEXTS]
    assert [row["v"] for row in _compacted(world, verify)] == TEXTS
    assert _selected(world) == TEXTS


@pytest.mark.parametrize("verify", VerifyMode)
@pytest.mark.parametrize("kind", ["string", "varchar(6)", "char(6)"])
def test_a_char_that_has_become_another_text(tmp_path: Path, verify: VerifyMode, kind: str) -> None:
    world = World(tmp_path)
    _table(world, "char(4)")
    world.insert("t", (0, "zero"), (1, "a"), (2, "  b"), (3, ""), (4, None), (5, "full"))
    _changed(world, kind)
    rows = _compacted(world, verify)
    assert [(row["v"] or "").rstrip() for row in rows] == ["a", "  b", "", "", "full"]
