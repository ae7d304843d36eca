"""Values that Spark or ORC cannot hold: none is written otherwise than it was given."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from changemanager.location import FsspecResolver
from hms_bridge.adoption.adopt import adopt
from hms_bridge.adoption.look import look
from hms_bridge.adoption.plan import AdoptionRequest
from hms_bridge.connect import LocalStore
from hms_bridge.errors import DmlError
from hms_bridge.model.valid_ids import ValidWriteIdList
from tests.support.golden import GoldenStage, golden_stages

pytestmark = [pytest.mark.spark, pytest.mark.golden]

NANOSECONDS = "g11_types/02-after-minor"


def register_table(stage: GoldenStage, store: LocalStore, root: Path) -> None:
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
