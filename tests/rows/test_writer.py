from __future__ import annotations

from collections.abc import Iterator
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from changemanager.filesystem.local import LocalVolume
from changemanager.filesystem.opening import open_volume
from changemanager.filesystem.volume import Volume
from hms_bridge.directories.listing import list_acid_directory
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.tail import read_tail
from hms_bridge.orc.types import OrcType
from hms_bridge.rows.reader import Projection, has_raw_rows, read_plan
from hms_bridge.rows.writer import DeltaTarget, write_delete_delta, write_insert_delta
from hms_bridge.snapshot.plan import ReadPlan, plan_read

TABLE = parse_hive_type("struct<a:int,s:string>")
ROW_IDS = pa.struct([("writeid", pa.int64()), ("bucketid", pa.int32()), ("rowid", pa.int64())])


@pytest.fixture(params=["file", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Volume, str]]:
    volume = open_volume(request.param, "")
    root = str(tmp_path / "t") if request.param == "file" else f"/{tmp_path.name}/t"
    volume.make_working_directory(root)
    yield volume, root
    if request.param == "memory":
        volume.remove_tree(f"/{tmp_path.name}")


def target(root: str, write_id: int, statement_id: int = 0, table: OrcType = TABLE) -> DeltaTarget:
    return DeltaTarget(
        root=root,
        table=table,
        write_id=WriteId(write_id),
        statement_id=statement_id,
        token=f"w{write_id}s{statement_id}",
    )


def batch(*rows: tuple[Any, ...], table: OrcType = TABLE) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(table.names, row, strict=True)) for row in rows])


def plan(volume: Volume, root: str, seen: ValidWriteIdList | None = None) -> ReadPlan:
    listing = list_acid_directory(volume, root, has_raw_rows=partial(has_raw_rows, volume))
    return plan_read(
        listing,
        txns=ValidTxnList.everything(),
        write_ids=seen or ValidWriteIdList.everything(),
    )


def rows(
    volume: Volume, root: str, table: OrcType = TABLE, seen: ValidWriteIdList | None = None
) -> dict[tuple[int, ...], tuple[Any, ...]]:
    projection = Projection(table=table, has_row_id=True)
    found: dict[tuple[int, ...], tuple[Any, ...]] = {}
    for one in read_plan(volume, plan(volume, root, seen), projection):
        for row in one.to_pylist():
            key = tuple(row.pop("ROW__ID").values())
            assert key not in found
            found[key] = tuple(row.values())
    return found


def victims(*keys: tuple[int, int, int]) -> list[pa.Array]:
    return [pa.array([dict(zip(ROW_IDS.names, key, strict=True)) for key in keys], ROW_IDS)]


B00, B01, B10 = 536870912, 536870913, 536936448


def test_insert_update_delete(place: tuple[Volume, str]) -> None:
    volume, root = place
    first = write_insert_delta(
        volume, target(root, 1), [(0, batch((1, "x"))), (1, batch((3, "z"))), (0, batch((2, "y")))]
    )
    assert first is not None
    assert first.path == f"{root}/delta_0000001_0000001_0000"
    assert [one.path.rpartition("/")[2] for one in first.buckets] == [
        "bucket_00000",
        "bucket_00001",
    ]
    assert first.event_count == 3
    assert volume.read(f"{first.path}/_orc_acid_version") == b"2"
    assert rows(volume, root) == {
        (1, B00, 0): (1, "x"),
        (1, B00, 1): (2, "y"),
        (1, B10, 0): (3, "z"),
    }
    gone = write_delete_delta(volume, target(root, 2), victims((1, B10, 0), (1, B00, 0)))
    write_insert_delta(volume, target(root, 2, 1), [(0, batch((30, "zz")))])
    assert gone is not None
    assert gone.path.endswith("/delete_delta_0000002_0000002_0000")
    assert [one.bucket_id for one in gone.buckets] == [0, 1]
    assert gone.event_count == 2
    assert rows(volume, root) == {(1, B00, 1): (2, "y"), (2, B01, 0): (30, "zz")}
    before = ValidWriteIdList(table=None, high_watermark=WriteId(1))
    assert len(rows(volume, root, seen=before)) == 3
    assert not [one for one in volume.children(root) if "_tmp_" in one.name]


def test_nothing_leaves_nothing(place: tuple[Volume, str]) -> None:
    volume, root = place
    assert write_insert_delta(volume, target(root, 1), []) is None
    assert write_delete_delta(volume, target(root, 1), []) is None
    assert write_delete_delta(volume, target(root, 1), victims()) is None
    assert volume.children(root) == ()


def test_a_failure_leaves_nothing(place: tuple[Volume, str]) -> None:
    volume, root = place

    def failing() -> Iterator[tuple[int, pa.RecordBatch]]:
        yield 0, batch((1, "x"))
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="broke"):
        write_insert_delta(volume, target(root, 1), failing())
    with pytest.raises(AcidFormatError, match="ROW__ID is null"):
        write_delete_delta(volume, target(root, 1), [pa.array([None], ROW_IDS)])
    assert volume.children(root) == ()


def test_a_killed_writer_is_seen_by_nobody(tmp_path: Path) -> None:
    volume, root = LocalVolume(), str(tmp_path)

    def killed() -> Iterator[tuple[int, pa.RecordBatch]]:
        yield 0, batch((1, "x"))
        # What a reader finds while the writer is at work, and after a kill at this point.
        assert rows(volume, root) == {}
        assert plan(volume, root).unread == ()
        yield 0, batch((2, "y"))

    write_insert_delta(volume, target(root, 1), killed())
    assert len(rows(volume, root)) == 2


def test_a_delta_is_written_once(place: tuple[Volume, str]) -> None:
    volume, root = place
    write_insert_delta(volume, target(root, 1), [(0, batch((1, "x")))])
    with pytest.raises(AcidFormatError, match="written once"):
        write_insert_delta(volume, target(root, 1), [(0, batch((2, "y")))])
    assert rows(volume, root) == {(1, B00, 0): (1, "x")}


def test_which_file_systems_rename() -> None:
    assert open_volume("file", "").capabilities.has_atomic_rename
    assert not open_volume("memory", "").capabilities.has_atomic_rename


WIDE = parse_hive_type(
    "struct<n:bigint,d:decimal(8,2),c:char(4),v:varchar(2),day:date,t:timestamp,"
    "l:array<string>,m:map<string,int>,st:struct<x:smallint,y:timestamp>>"
)


def test_values_are_taken_as_the_table_wants_them(place: tuple[Volume, str]) -> None:
    volume, root = place
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
    write_insert_delta(volume, target(root, 5, table=WIDE), [(0, given)])
    assert list(rows(volume, root, WIDE).values()) == [
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
        (pa.record_batch({"a": [1]}), "1 values for 2 columns"),
        (pa.record_batch({"a": ["x"], "s": ["y"]}), "column a: values of string"),
        (
            pa.record_batch({"a": [1], "s": pa.array([1], pa.duration("s"))}),
            "column s: Arrow type duration",
        ),
    ],
)
def test_what_does_not_fit_is_named(
    given: pa.RecordBatch, message: str, place: tuple[Volume, str]
) -> None:
    volume, root = place
    with pytest.raises(AcidFormatError, match=message):
        write_insert_delta(volume, target(root, 1), [(0, given)])
    assert volume.children(root) == ()


def test_many_deletes_in_any_order(tmp_path: Path) -> None:
    volume, root = LocalVolume(), str(tmp_path)
    count = 5000
    write_insert_delta(
        volume, target(root, 1), [(at % 2, batch(*[(at, "s")] * 100)) for at in range(count // 100)]
    )
    keys = list(rows(volume, root))
    chosen = [key for at, key in enumerate(keys) if at % 3 == 0][::-1]
    write_delete_delta(volume, target(root, 2), victims(*chosen))
    assert set(rows(volume, root)) == set(keys) - set(chosen)
    tail = read_tail(volume, f"{root}/delete_delta_0000002_0000002_0000/bucket_00001")
    assert tail.user_metadata["hive.acid.stats"] == f"0,0,{tail.row_count}".encode()
