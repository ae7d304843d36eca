"""What a statement's events hold on the disk, and who sees them when."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from changemanager.filesystem.opening import open_volume
from hms_bridge.config.settings import Settings
from hms_bridge.connect import LocalStore, open_local
from hms_bridge.directories.listing import list_acid_directory
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.catalog import ORC_INPUT_FORMAT, ORC_OUTPUT_FORMAT, Column, Storage, Table
from hms_bridge.model.ids import WriteId
from hms_bridge.model.txn import AllocateWriteIdsRequest, OpenTxnsRequest
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.orc.hive_types import hive_type_text, parse_hive_type
from hms_bridge.orc.tail import read_tail
from hms_bridge.orc.types import OrcType
from hms_bridge.rows.reader import Projection, has_raw_rows
from hms_bridge.snapshot.plan import ReadPlan, plan_read
from tests.support.plan_rows import read_plan
from tests.support.table_write import TableWrite

TABLE = parse_hive_type("struct<a:int,s:string>")
Rows = dict[tuple[int, ...], tuple[Any, ...]]


class Place:
    """A table, and statements that write to it: write ids count from 1."""

    def __init__(self, store: LocalStore, uri: str) -> None:
        self.store = store
        self.uri = uri
        self.volume = store.resolver(uri).volume
        self.create(TABLE)

    def create(self, row: OrcType) -> None:
        columns = (
            Column(name=name, type=hive_type_text(kind))
            for name, kind in zip(row.names, row.children, strict=True)
        )
        self.row = row
        self.name = f"t{len(row.names)}"
        self.location = self.store.resolver(f"{self.uri}/{self.name}")
        self.store.metastore.create_table(
            Table(
                name=self.name, database_name="default", parameters={"transactional": "true"},
                storage=Storage(
                    columns=tuple(columns), location=self.location.uri,
                    input_format=ORC_INPUT_FORMAT, output_format=ORC_OUTPUT_FORMAT,
                ),
            )
        )  # fmt: skip

    def write(self) -> TableWrite:
        metastore = self.store.metastore
        (txn,) = metastore.open_txns(OpenTxnsRequest(user="u", host="h"))
        (given,) = metastore.allocate_table_write_ids(
            AllocateWriteIdsRequest(database_name="default", table_name=self.name, txn_ids=(txn,))
        )
        table = metastore.get_table("default", self.name)
        return TableWrite(metastore, self.store.resolver, table, txn, given.write_id)

    def names(self, directory: str = "") -> set[str]:
        place = self.location.child(directory) if directory else self.location
        if place.status() is None:  # a file system without directories
            return set()
        return {status.name for status in self.volume.children(place.path)}

    def plan(self, seen: ValidWriteIdList | None = None) -> ReadPlan:
        look = partial(has_raw_rows, self.volume)
        listing = list_acid_directory(self.volume, self.location.path, has_raw_rows=look)
        return plan_read(
            listing,
            txns=ValidTxnList.everything(),
            write_ids=seen or ValidWriteIdList.everything(),
        )

    def rows(self, seen: ValidWriteIdList | None = None) -> Rows:
        projection = Projection(table=self.row, has_row_id=True)
        found: Rows = {}
        for one in read_plan(self.volume, self.plan(seen), projection):
            for row in one.to_pylist():
                key = tuple(row.pop("ROW__ID").values())
                assert key not in found
                found[key] = tuple(row.values())
        return found


@pytest.fixture(params=["file", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path, empty_database: Path) -> Iterator[Place]:
    shutil.copy(empty_database, tmp_path / "m.db")
    settings = Settings(warehouse=f"{tmp_path}/wh")
    store = open_local(f"sqlite:///{tmp_path}/m.db", settings, is_created=False)
    found = Place(store, f"{request.param}:{tmp_path}/wh")
    yield found
    if (root := store.resolver(found.uri)).status() is not None:
        found.volume.remove_tree(root.path)
    store.metastore.close()


def batch(*rows: tuple[Any, ...]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(TABLE.names, row, strict=True)) for row in rows])


B00, B01, B10 = 536870912, 536870913, 536936448


def test_insert_update_delete(place: Place) -> None:
    place.write().insert([batch((1, "x")), batch((2, "y"))], [batch((3, "z"))])
    delta = "delta_0000001_0000001_0000"
    assert place.names() == {delta}
    assert place.names(delta) == {"_orc_acid_version", "bucket_00000_0", "bucket_00001_0"}
    version = place.location.child(f"{delta}/_orc_acid_version")
    assert place.volume.read(version.path) == b"2"
    assert place.rows() == {
        (1, B00, 0): (1, "x"),
        (1, B00, 1): (2, "y"),
        (1, B10, 0): (3, "z"),
    }
    update = place.write()
    update.delete([(1, B10, 0), (1, B00, 0)])
    update.insert([batch((30, "zz"))], statement_id=1)
    delete_delta = "delete_delta_0000002_0000002_0000"
    assert place.names() == {delta, delete_delta, "delta_0000002_0000002_0001"}
    assert place.names(delete_delta) == {"_orc_acid_version", "bucket_00000", "bucket_00001"}
    assert place.rows() == {(1, B00, 1): (2, "y"), (2, B01, 0): (30, "zz")}
    before = ValidWriteIdList(table=None, high_watermark=WriteId(1))
    assert len(place.rows(before)) == 3


def test_nothing_leaves_nothing(place: Place) -> None:
    place.write().insert([], [batch((1, "x")).slice(1)])
    place.write().delete([])
    assert place.names() == set()


def test_a_failure_leaves_nothing(place: Place) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield batch((1, "x"))
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="broke"):
        place.write().insert(failing())
    assert place.names() == set()


def test_a_killed_writer_is_seen_by_nobody(place: Place) -> None:
    def killed() -> Iterator[pa.RecordBatch]:
        yield batch((1, "x"))
        # What a reader finds while the writer is at work, and after a kill at this point.
        assert place.rows() == {}
        assert place.plan().unread == ()
        yield batch((2, "y"))

    place.write().insert(killed())
    assert len(place.rows()) == 2


def test_a_delta_is_written_once(place: Place) -> None:
    write = place.write()
    write.insert([batch((1, "x"))])
    with pytest.raises(AcidFormatError, match="written once"):
        write.insert([batch((2, "y"))])
    assert place.rows() == {(1, B00, 0): (1, "x")}


def test_which_file_systems_rename() -> None:
    assert open_volume("file", "").capabilities.has_atomic_rename
    assert not open_volume("memory", "").capabilities.has_atomic_rename


WIDE = parse_hive_type(
    "struct<n:bigint,d:decimal(8,2),c:char(4),v:varchar(2),day:date,t:timestamp,"
    "l:array<string>,m:map<string,int>,st:struct<x:smallint,y:timestamp>>"
)


def test_values_are_taken_as_the_table_wants_them(place: Place) -> None:
    place.create(WIDE)
    far = datetime(9999, 12, 31, 23, 59, 59, 999999)
    given = pa.record_batch(
        {
            "n": pa.array([1, None], pa.int16()),
            "d": pa.array([7, 10**9], pa.int64()),
            "c": pa.array(["é", None], pa.large_string()),
            "v": pa.array(["abc", "d"], pa.string_view()),
            "day": pa.array([date(1, 1, 1), date(9999, 12, 31)]),
            "t": pa.array([datetime(1815, 6, 18, 11, 30, 0, 250000), far]),
            "l": pa.array([["a"], None], pa.large_list(pa.large_string())),
            "m": pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int8())),
            "st": pa.array(
                [{"x": 1, "y": None}, None], pa.struct([("x", pa.int8()), ("y", pa.timestamp("s"))])
            ),
        }
    )
    place.write().insert([given])
    assert list(place.rows().values()) == [
        (
            1,
            Decimal("7.00"),
            "é   ",
            "ab",
            date(1, 1, 1),
            datetime(1815, 6, 18, 11, 30, 0, 250000),
            ["a"],
            [("k", 1)],
            {"x": 1, "y": None},
        ),
        (None, None, None, "d", date(9999, 12, 31), far, None, [], None),
    ]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (pa.record_batch({"a": ["x"], "s": ["y"]}), "column a: values of string"),
        (
            pa.record_batch({"a": [1], "s": pa.array([1], pa.duration("s"))}),
            "column s: Arrow type duration",
        ),
    ],
)
def test_what_does_not_fit_is_named(given: pa.RecordBatch, message: str, place: Place) -> None:
    with pytest.raises(AcidFormatError, match=message):
        place.write().insert([given])
    assert place.names() == set()


def test_many_deletes_in_any_order(place: Place) -> None:
    parts = [batch(*[(at, "s")] * 100) for at in range(50)]
    place.write().insert(parts[::2], parts[1::2])
    keys = list(place.rows())
    chosen = [key for at, key in enumerate(keys) if at % 3 == 0][::-1]
    place.write().delete(chosen)  # type: ignore[arg-type]
    assert set(place.rows()) == set(keys) - set(chosen)
    bucket = place.location.child("delete_delta_0000002_0000002_0000/bucket_00001")
    tail = read_tail(place.volume, bucket.path)
    assert tail.user_metadata["hive.acid.stats"] == f"0,0,{tail.row_count}".encode()
