"""``spark.read.format("hive_acid")``: snapshots of tables that a real Hive wrote."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.adoption.adopt import adopt
from hms_bridge.adoption.look import look
from hms_bridge.adoption.plan import AdoptionRequest
from hms_bridge.connect import LocalStore
from hms_bridge.model.txn import TxnType
from hms_bridge.model.valid_ids import ValidWriteIdList
from tests.support.golden import GoldenStage, golden_stages

pytestmark = [pytest.mark.spark, pytest.mark.golden]

WANTED = {
    "g02_iud/11-after-major2-cleaner", "g05_load/02-after-load2", "g06_converted/02-before-minor",
    "g07_part/03-after-minor-cleaner", "g08_bucketed/05-after-major",
    "g10_aborts/01-open-and-aborts", "g15_truncate/03-after-minor"
}  # fmt: skip
STAGES = [stage for stage in golden_stages("full_acid") if str(stage) in WANTED]


def register_table(stage: GoldenStage, store: LocalStore, root: Path) -> str:
    shutil.copytree(stage.files, root, dirs_exist_ok=True)
    definition = stage.state["metastore_table"]
    request = AdoptionRequest(
        database_name="default",
        table_name="t",
        location=str(root),
        partition_types=dict(map(tuple, definition["partition_columns"])),
        bucket_columns=tuple(definition["bucket_columns"]),
        bucket_count=definition["num_buckets"],
        valid_write_ids=ValidWriteIdList.parse(stage.state["valid_write_id_list"]),
        is_open_aborted=True,
        owner="test",
    )
    adopt(look(request, FsspecResolver()), store.metastore, user="test", host="test")
    return "default.t"


def reader(spark: Any, url: str, table: str = "default.t") -> Any:
    return spark.read.format("hive_acid").option("metastore", url).option("table", table)


def plain(row: Any) -> str:
    """A row as the golden files spell it, but for decimals' and dates' texts."""
    values = row.asDict(recursive=True)
    key = values.pop("row__id", None)
    values.pop("row__partition", None)
    ids = [key["writeid"], key["bucketid"], key["rowid"]] if key else None
    return json.dumps([ids, {k: None if v is None else str(v) for k, v in values.items()}])


def told(row: dict[str, Any]) -> str:
    values = {k: None if v is None else str(v) for k, v in row["values"].items()}
    return json.dumps([row.get("row__id"), values])


def test_all_wanted_stages_are_there() -> None:
    assert {str(stage) for stage in STAGES} == WANTED


@pytest.mark.parametrize("stage", STAGES, ids=str)
def test_reads_what_hive_read(
    stage: GoldenStage, spark: Any, store: LocalStore, url: str, tmp_path: Path
) -> None:
    table = register_table(stage, store, tmp_path / "adopted")
    frame = reader(spark, url, table).option("row_ids", "true").load()
    assert sorted(map(plain, frame.collect())) == sorted(map(told, stage.rows or []))


def test_a_read_is_protected_by_a_transaction(
    spark: Any, store: LocalStore, url: str, tmp_path: Path
) -> None:
    """I3: as long as the lease lives, the cleaner counts this reader."""
    register_table(STAGES[0], store, tmp_path / "adopted")
    assert reader(spark, url).load().count() > 0
    leases = [txn for txn in store.metastore.get_open_txns_info() if txn.type is TxnType.READ_ONLY]
    assert len(leases) == 1
    assert store.metastore.min_open_txn_watermark() <= leases[0].id


def test_an_empty_table(spark: Any, store: LocalStore, url: str, run: Any) -> None:
    """Nothing to read is no rows, with and without identifiers, and after a DELETE of all."""
    run("CREATE TABLE t (id INT, name STRING)")
    frame = reader(spark, url).option("row_ids", "true").load()
    assert frame.columns == ["id", "name", "row__id", "row__partition"]
    assert frame.collect() == []
    assert run("SELECT count(*) FROM t; SELECT * FROM t") == [[(0,)], []]
    assert run("UPDATE t SET name = 'x'; DELETE FROM t WHERE id = 1") == [
        "0 rows updated, nothing was written", "0 rows deleted, nothing was written"
    ]  # fmt: skip


def test_chosen_columns(spark: Any, store: LocalStore, url: str, tmp_path: Path) -> None:
    register_table(STAGES[0], store, tmp_path / "adopted")
    assert reader(spark, url).option("columns", "name,ID").load().columns == ["name", "id"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"table": "default.nowhere"}, "nowhere"),
        ({"columns": "zzz"}, "zzz is no column of default.t"),
        ({"metastore": ""}, "needs"),
    ],
)
def test_bad_options(
    options: dict[str, str], message: str, spark: Any, store: LocalStore, url: str, tmp_path: Path
) -> None:
    register_table(STAGES[0], store, tmp_path / "adopted")
    chosen = reader(spark, url)
    for name, value in options.items():
        chosen = chosen.option(name, value)
    with pytest.raises(Exception, match=message):
        chosen.load().collect()
