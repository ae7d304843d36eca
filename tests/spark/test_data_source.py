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
from hms_bridge.errors import DmlError, NoSuchObjectError
from hms_bridge.model.txn import TxnState, TxnType
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.session.transaction import Client
from hms_bridge.spark.data_source import snapshot_options
from tests.support.golden import GoldenStage, golden_stages

pytestmark = [pytest.mark.spark, pytest.mark.golden]

WANTED = {
    "g02_iud/11-after-major2-cleaner", "g05_load/02-after-load2", "g06_converted/02-before-minor",
    "g07_part/03-after-minor-cleaner", "g08_bucketed/05-after-major",
    "g10_aborts/01-open-and-aborts", "g15_truncate/03-after-minor"
}  # fmt: skip
NANOSECONDS = "g11_types/02-after-minor"
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


CLIENT = Client(user="test", host="test", lock_wait_seconds=0.5)


def reader(spark: Any, options: dict[str, str]) -> Any:
    return spark.read.format("hive_acid").options(**options)


def held(url: str, table: str = "default.t") -> Any:
    return snapshot_options(url, table, client=CLIENT)


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
    with held(url, table) as options:
        frame = reader(spark, options).option("row_ids", "true").load()
        assert sorted(map(plain, frame.collect())) == sorted(map(told, stage.rows or []))


def readers(store: LocalStore) -> list[Any]:
    opened = store.metastore.get_open_txns_info()
    return [txn for txn in opened if txn.type is TxnType.READ_ONLY and txn.state is TxnState.OPEN]


def test_a_read_is_protected_by_a_transaction(
    spark: Any, store: LocalStore, url: str, tmp_path: Path
) -> None:
    """I3: until the end of the block the cleaner counts this reader, once, and then no more."""
    register_table(STAGES[0], store, tmp_path / "adopted")
    with held(url) as options:
        for _ in range(2):
            assert reader(spark, options).load().count() > 0
        (lease,) = readers(store)
        assert store.metastore.min_open_txn_watermark() <= lease.id
        assert len(store.metastore.show_locks()) == 1
    assert (readers(store), store.metastore.show_locks()) == ([], ())


def test_a_read_that_fails_holds_nothing(
    spark: Any, store: LocalStore, url: str, tmp_path: Path
) -> None:
    register_table(STAGES[0], store, tmp_path / "adopted")
    with pytest.raises(Exception, match="no option"), held(url) as options:
        reader(spark, options).option("colums", "id").load()
    with pytest.raises(NoSuchObjectError), held(url, "default.nowhere"):
        pass
    assert (readers(store), store.metastore.show_locks()) == ([], ())


def test_each_block_shows_what_is_there_when_it_begins(
    spark: Any, store: LocalStore, url: str, run: Any
) -> None:
    """And a frame that outlives its block says so, instead of showing files that may be gone."""
    run("CREATE TABLE t (id INT); INSERT INTO t VALUES (1)")
    with held(url) as options:
        frame = reader(spark, options).load()
        assert frame.count() == 1
        run("INSERT INTO t VALUES (2)")
        assert frame.count() == reader(spark, options).load().count() == 1
    with held(url) as later:
        assert reader(spark, later).load().count() == 2
    for stale in (frame, reader(spark, options).load()):
        with pytest.raises(Exception, match="the snapshot of this read has ended"):
            stale.collect()


def test_an_empty_table(spark: Any, store: LocalStore, url: str, run: Any) -> None:
    """Nothing to read is no rows, with and without identifiers, and after a DELETE of all."""
    run("CREATE TABLE t (id INT, name STRING)")
    with held(url) as options:
        frame = reader(spark, options).option("row_ids", "true").load()
        assert frame.columns == ["id", "name", "row__id", "row__partition"]
        assert frame.collect() == []
    assert run("SELECT count(*) FROM t; SELECT * FROM t") == [[(0,)], []]
    assert run("UPDATE t SET name = 'x'; DELETE FROM t WHERE id = 1") == [
        "0 rows updated, nothing was written", "0 rows deleted, nothing was written"
    ]  # fmt: skip


def test_chosen_columns(spark: Any, store: LocalStore, url: str, tmp_path: Path) -> None:
    register_table(STAGES[0], store, tmp_path / "adopted")
    with held(url) as options:
        frame = reader(spark, options).option("columns", "name,ID").load()
        assert frame.columns == ["name", "id"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"table": "default.nowhere"}, "nowhere"),
        ({"columns": "zzz"}, "zzz is no column of default.t"),
        ({"metastore": ""}, 'needs .option."metastore"'),
        ({"valid_txns": ""}, "snapshot_options, which gives it"),
        ({"row_id": "true"}, "knows no option row_id; it has columns, row_ids"),
        ({"row_ids": "yes"}, "malformed"),
        ({"txn": "x"}, "malformed"),
    ],
)
def test_bad_options(
    changed: dict[str, str],
    message: str,
    spark: Any,
    store: LocalStore,
    url: str,
    tmp_path: Path,
) -> None:
    register_table(STAGES[0], store, tmp_path / "adopted")
    with held(url) as options, pytest.raises(Exception, match=message):
        reader(spark, options | changed).load().collect()


def test_digits_that_spark_lacks_are_not_cut_off_by_a_write(
    run: Any, store: LocalStore, tmp_path: Path
) -> None:
    """Hive wrote nanoseconds: they are read cut off, but no row is written again without them."""
    (stage,) = (one for one in golden_stages("full_acid") if str(one) == NANOSECONDS)
    register_table(stage, store, tmp_path / "adopted")
    run("CREATE TABLE u (at TIMESTAMP)")
    for statement in (
        "UPDATE t SET c_i = 1",
        "DELETE FROM t WHERE c_ts = TIMESTAMP '1582-10-20 01:02:03'",
        "INSERT INTO u SELECT c_ts FROM t",
        "INSERT INTO u VALUES ('2020-01-01 00:00:00.0000001')",
    ):
        with pytest.raises(DmlError, match="more digits than microseconds"):
            run(statement)
    assert run("SELECT count(c_ts) FROM t; UPDATE u SET at = NULL")[0][0][0] > 0


@pytest.mark.parametrize(
    "value",
    ["DATE'1582-10-10'", "TIMESTAMP'1582-10-05 00:00:00'", "TIMESTAMP'1969-12-31 23:59:59.5'"],
)
def test_what_orc_cannot_hold_is_refused(run: Any, value: str) -> None:
    run("CREATE TABLE t (d DATE, at TIMESTAMP)")
    column = "d" if value.startswith("DATE") else "at"
    with pytest.raises(DmlError, match="cannot be stored"):
        run(f"INSERT INTO t ({column}) VALUES ({value})")
    run("INSERT INTO t VALUES (DATE'1582-10-04', TIMESTAMP'1969-12-31 23:59:58.5')")
    assert run("SELECT CAST(d AS STRING), CAST(at AS STRING) FROM t") == [
        [("1582-10-04", "1969-12-31 23:59:58.5")]
    ]
