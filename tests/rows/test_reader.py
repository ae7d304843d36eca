from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pytest
from pyarrow import orc

from changemanager.filesystem.local import LocalVolume
from hms_bridge.directories.listing import list_acid_directory
from hms_bridge.errors import AcidFormatError, NotOrcError
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.orc.acid_writer import AcidOrcWriter
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.timestamps import TimestampForm
from hms_bridge.rows.reader import Projection, SnapshotReader, has_raw_rows
from hms_bridge.snapshot.plan import ReadPlan, plan_read
from tests.support.acid_events import BUCKET, events
from tests.support.orc_values import as_array
from tests.support.plan_rows import read_plan

LOCAL = LocalVolume()
TABLE = parse_hive_type("struct<a:int,s:string>")
EVERYTHING = ValidWriteIdList.everything()


def put(path: Path, *batches: pa.RecordBatch, stripe_bytes: int = 1 << 26) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as sink:
        writer = AcidOrcWriter(sink, TABLE, stripe_bytes=stripe_bytes)
        for one in batches:
            writer.write(one)
        writer.close()


def some_rows(count: int, first: int = 0) -> pa.Array:
    return as_array([{"a": at, "s": f"s{at}"} for at in range(first, first + count)], TABLE)


def deletes(row_ids: Sequence[int], *, current: int, write_ids: int = 1) -> pa.RecordBatch:
    empty = pa.nulls(len(row_ids), some_rows(0).type)
    return events(empty, operation=2, current=current, write_ids=write_ids, row_ids=row_ids)


def plan(root: Path, seen: ValidWriteIdList = EVERYTHING) -> ReadPlan:
    listing = list_acid_directory(
        LOCAL, str(root), has_raw_rows=lambda path: has_raw_rows(LOCAL, path)
    )
    return plan_read(listing, txns=ValidTxnList.everything(), write_ids=seen)


def read(root: Path, seen: ValidWriteIdList = EVERYTHING, **fields: Any) -> list[dict[str, Any]]:
    projection = Projection(**({"table": TABLE} | fields))
    return [
        row for batch in read_plan(LOCAL, plan(root, seen), projection) for row in batch.to_pylist()
    ]


def test_projections(tmp_path: Path) -> None:
    put(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", events(some_rows(2)))
    assert read(tmp_path, columns=("S", "a")) == [{"s": "s0", "a": 0}, {"s": "s1", "a": 1}]
    row_id = {"writeid": 1, "bucketid": BUCKET, "rowid": 0}
    assert read(tmp_path, columns=(), has_row_id=True)[0] == {"ROW__ID": row_id}
    batches = list(read_plan(LOCAL, plan(tmp_path), Projection(table=TABLE, columns=())))
    assert [(one.num_rows, one.num_columns) for one in batches] == [(2, 0)]
    with pytest.raises(AcidFormatError, match="no column nope"):
        read(tmp_path, columns=("nope",))
    with pytest.raises(AcidFormatError, match="PARTS"):
        read(tmp_path, timestamps=TimestampForm.LOSSLESS)


def test_missing_and_renamed_columns(tmp_path: Path) -> None:
    put(tmp_path / "delta_0000001_0000001_0000" / "bucket_00000", events(some_rows(1)))
    later = parse_hive_type("struct<s:bigint,b:string,c:array<int>>")
    assert read(tmp_path, table=later) == [{"s": 0, "b": "s0", "c": None}]
    assert read(tmp_path, table=later, columns=("c",)) == [{"c": None}]
    changed = parse_hive_type("struct<a:int,s:int>")
    with pytest.raises(AcidFormatError, match=r"bucket_00000.*column s.*string.*int"):
        read(tmp_path, table=changed)


def test_deletes_over_many_stripes(tmp_path: Path) -> None:
    count = 20_000
    base = [
        events(some_rows(2000, at), row_ids=range(at, at + 2000)) for at in range(0, count, 2000)
    ]
    put(tmp_path / "base_0000001" / "bucket_00000", *base, stripe_bytes=60_000)
    gone = set(range(0, count, 7)) | set(range(5000, 9000))
    for number, part in enumerate((sorted(gone)[::2], sorted(gone)[1::2])):
        put(
            tmp_path / f"delete_delta_000000{number + 2}_000000{number + 2}_0000" / "bucket_00000",
            deletes(part, current=number + 2),
            stripe_bytes=40_000,
        )
    assert [row["a"] for row in read(tmp_path)] == sorted(set(range(count)) - gone)
    first_only = ValidWriteIdList(table=None, high_watermark=WriteId(2))
    wanted = sorted(set(range(count)) - set(sorted(gone)[::2]))
    assert [row["a"] for row in read(tmp_path, first_only)] == wanted


class CountingVolume(LocalVolume):
    """Local files, and how often each was opened."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: Counter[str] = Counter()

    def open_input(self, path: str) -> BinaryIO:
        self.opened[path] += 1
        return super().open_input(path)


def test_small_deltas_do_not_open_delete_files_again_and_again(tmp_path: Path) -> None:
    for write_id in range(1, 31):
        name = f"delta_{write_id:07d}_{write_id:07d}_0000"
        put(tmp_path / name / "bucket_00000", events(some_rows(2), write_ids=write_id))
    empty = pa.nulls(30, some_rows(0).type)
    gone = events(empty, operation=2, write_ids=list(range(1, 31)), row_ids=[1] * 30, current=31)
    put(tmp_path / "delete_delta_0000031_0000031_0000" / "bucket_00000", gone)
    volume = CountingVolume()
    batches = list(read_plan(volume, plan(tmp_path), Projection(table=TABLE)))
    assert [row for one in batches for row in one.column("a").to_pylist()] == [0] * 30
    counts = {path.split("/")[-2].partition("_")[0]: n for path, n in volume.opened.items()}
    assert counts == {"delta": 1, "delete": 2}  # the tail, then its stripe


def test_rows_and_deletes_of_unseen_writes(tmp_path: Path) -> None:
    mixed = events(some_rows(3), write_ids=[1, 2, 3], row_ids=[0, 0, 0])
    put(tmp_path / "delta_0000001_0000003" / "bucket_00000", mixed)
    put(
        tmp_path / "delete_delta_0000001_0000003" / "bucket_00000",
        deletes([0], current=3),
        deletes([0], current=2, write_ids=2),
    )
    aborted = ValidWriteIdList(table=None, high_watermark=WriteId(3), aborted_ids=(WriteId(3),))
    assert [row["a"] for row in read(tmp_path, aborted)] == [0]
    assert [row["a"] for row in read(tmp_path)] == [2]


def test_files_out_of_order_still_lose_their_victims(tmp_path: Path) -> None:
    """A query-based compactor of 2020 sorted by (bucket, write id, row id)."""
    shuffled = [(2, 5, 0), (1, 7, 1), (2, 5, 1), (1, 6, 0)]
    parts = [
        events(some_rows(1, at), write_ids=one[0], buckets=BUCKET + one[1], row_ids=[one[2]])
        for at, one in enumerate(shuffled)
    ]
    whole = pa.concat_batches(parts)
    _put_unordered(tmp_path / "base_0000002" / "bucket_00000", whole)
    victims = [shuffled[2], shuffled[1]]
    empty = pa.nulls(2, some_rows(0).type)
    unordered = events(
        empty,
        operation=2,
        current=3,
        write_ids=[one[0] for one in victims],
        buckets=[BUCKET + one[1] for one in victims],
        row_ids=[one[2] for one in victims],
    )
    _put_unordered(tmp_path / "delete_delta_0000003_0000003_0000" / "bucket_00000", unordered)
    assert [row["a"] for row in read(tmp_path)] == [0, 3]


def _put_unordered(path: Path, batch: pa.RecordBatch) -> None:
    path.parent.mkdir(parents=True)
    orc.write_table(pa.Table.from_batches([batch]), str(path))


def original(path: Path, first: int, count: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_struct_array(some_rows(count, first))
    orc.write_table(table, str(path), stripe_size=1)


def test_originals_are_numbered_through(tmp_path: Path) -> None:
    original(tmp_path / "000000_0", 0, 2)
    original(tmp_path / "000000_0_copy_1", 2, 3)
    original(tmp_path / "000001_0", 5, 1)
    put(
        tmp_path / "delete_delta_0000001_0000001_0000" / "bucket_00000",
        deletes([3], current=1, write_ids=0),
    )
    found = read(tmp_path, has_row_id=True)
    assert [(row["a"], *row["ROW__ID"].values()) for row in found] == [
        (0, 0, BUCKET, 0),
        (1, 0, BUCKET, 1),
        (2, 0, BUCKET, 2),
        (4, 0, BUCKET, 4),
        (5, 0, BUCKET + (1 << 16), 0),
    ]


def test_loaded_files_carry_the_write_id_of_their_directory(tmp_path: Path) -> None:
    original(tmp_path / "delta_0000004_0000004_0002" / "000000_0", 0, 1)
    (row,) = read(tmp_path, has_row_id=True)
    assert list(row["ROW__ID"].values()) == [4, BUCKET + 2, 0]
    unseen = ValidWriteIdList(table=None, high_watermark=WriteId(3))
    assert read(tmp_path, unseen) == []


def test_a_streaming_writers_side_file_bounds_the_file(tmp_path: Path) -> None:
    path = tmp_path / "delta_0000001_0000002" / "bucket_00000"
    put(path, events(some_rows(2)))
    length = path.stat().st_size
    path.write_bytes(path.read_bytes() + b"unfinished stripe")
    side = path.with_name("bucket_00000_flush_length")
    side.write_bytes((0).to_bytes(8, "big") + length.to_bytes(8, "big") + b"half")
    assert len(read(tmp_path)) == 2
    side.write_bytes(b"half")
    with pytest.raises(AcidFormatError, match="flush_length"):
        read(tmp_path)


def test_bad_files_are_named(tmp_path: Path) -> None:
    path = tmp_path / "delta_0000001_0000001_0000" / "bucket_00000"
    path.parent.mkdir()
    path.write_bytes(b"this is no ORC file at all")
    with pytest.raises(NotOrcError, match=str(path)):
        read(tmp_path)
    put(path, events(some_rows(1), operation=1))
    with pytest.raises(AcidFormatError, match="before Hive 3"):
        read(tmp_path)
    path.unlink()
    original(path, 0, 1)
    with pytest.raises(AcidFormatError, match="no ACID columns"):
        read(tmp_path)


def test_insert_only_tables_have_no_row_ids(tmp_path: Path) -> None:
    original(tmp_path / "delta_0000001_0000001_0000" / "000000_0", 0, 2)
    listing = list_acid_directory(LOCAL, str(tmp_path), is_insert_only=True)
    known = plan_read(
        listing,
        txns=ValidTxnList.everything(),
        write_ids=EVERYTHING,
        is_insert_only=True,
    )
    found = pa.Table.from_batches(read_plan(LOCAL, known, Projection(table=TABLE)))
    assert found.column("a").to_pylist() == [0, 1]
    with pytest.raises(AcidFormatError, match="no ROW__ID"):
        list(read_plan(LOCAL, known, Projection(table=TABLE, has_row_id=True)))


def test_acid_columns_where_none_should_be(tmp_path: Path) -> None:
    put(tmp_path / "000000_0", events(some_rows(1)))
    with pytest.raises(AcidFormatError, match="should have none"):
        read(tmp_path)


def test_a_file_that_vanished(tmp_path: Path) -> None:
    path = tmp_path / "delta_0000001_0000001_0000" / "bucket_00000"
    put(path, events(some_rows(1)))
    known = plan(tmp_path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        list(read_plan(LOCAL, known, Projection(table=TABLE)))


def test_bucket_splits_read_the_same(tmp_path: Path) -> None:
    for write_id in (1, 2, 3):
        for bucket in (0, 1):
            put(
                tmp_path / f"delta_000000{write_id}_000000{write_id}_0000" / f"bucket_0000{bucket}",
                events(
                    some_rows(2, write_id * 10), write_ids=write_id, buckets=BUCKET + (bucket << 16)
                ),
            )
    put(tmp_path / "delete_delta_0000004_0000004_0000" / "bucket_00000", deletes([1], current=4))
    known = plan(tmp_path)
    reader = SnapshotReader(LOCAL, known.write_ids, Projection(table=TABLE, has_row_id=True))
    by_bucket = [b for split in known.bucket_splits() for b in reader.read(split)]
    by_file = [b for split in known.file_splits() for b in reader.read(split)]
    assert sum(batch.num_rows for batch in by_bucket) == 11
    texts = [
        sorted(map(str, pa.Table.from_batches(found).to_pylist())) for found in (by_bucket, by_file)
    ]
    assert texts[0] == texts[1]
    assert all(batch.schema == reader.schema for batch in by_file)


@pytest.mark.parametrize("is_original", [False, True])
def test_pieces_of_a_file_read_the_same(tmp_path: Path, is_original: bool) -> None:
    """Each stripe is of one piece, and rows keep their numbers; the file has grown meanwhile."""
    if is_original:
        original(tmp_path / "000000_0", 0, 3)
        table = pa.Table.from_struct_array(some_rows(20_000, 3))
        orc.write_table(table, str(tmp_path / "000000_0_copy_1"), stripe_size=1, batch_size=1024)
    else:
        path = tmp_path / "delta_0000001_0000001_0000" / "bucket_00000"
        pieces = [some_rows(2_000, first) for first in range(0, 20_000, 2_000)]
        ids = [range(first, first + 2_000) for first in range(0, 20_000, 2_000)]
        put(
            path,
            *(events(rows, row_ids=row_ids) for rows, row_ids in zip(pieces, ids, strict=True)),
            stripe_bytes=1,
        )
    gone = [5, 7_777, 19_999]
    put(
        tmp_path / "delete_delta_0000002_0000002_0000" / "bucket_00000",
        deletes(gone, current=2, write_ids=0 if is_original else 1),
    )
    known = plan(tmp_path)
    projection = Projection(table=TABLE, has_row_id=True)
    whole = pa.Table.from_batches(read_plan(LOCAL, known, projection)).to_pylist()
    assert [row["ROW__ID"]["rowid"] for row in whole] == [
        number for number in range(20_003 if is_original else 20_000) if number not in gone
    ]
    for bytes_max in (1_000, 7_001, 10**9):
        splits = known.file_splits(bytes_max)
        read_rows = [
            list(SnapshotReader(LOCAL, known.write_ids, projection).read(split)) for split in splits
        ]
        assert sum(map(bool, read_rows)) > 2 or bytes_max == 10**9
        assert [row for one in read_rows for batch in one for row in batch.to_pylist()] == whole
        sizes = sum(file.size_bytes for file in known.files)
        assert sum(split.size_bytes for split in splits) == sizes


def test_what_comes_behind_the_length_that_was_listed_is_read(tmp_path: Path) -> None:
    path = tmp_path / "delta_0000001_0000001_0000" / "bucket_00000"
    put(path, events(some_rows(100)))
    known = plan(tmp_path)
    longer = [
        events(some_rows(2_000, first), row_ids=range(first, first + 2_000))
        for first in range(0, 8_000, 2_000)
    ]
    put(path, *longer, stripe_bytes=1)
    batches = read_plan(LOCAL, known, Projection(table=TABLE), bytes_max=100)
    assert sum(batch.num_rows for batch in batches) == 8_000


def test_a_file_that_is_still_written_is_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "delta_0000001_0000002/bucket_00000"
    put(path, events(some_rows(2)))
    path.with_name("bucket_00000_flush_length").write_bytes(path.stat().st_size.to_bytes(8, "big"))
    (split,) = plan(tmp_path).file_splits(10)
    assert (split.start, split.end) == (0, None)


def test_has_raw_rows(tmp_path: Path) -> None:
    put(tmp_path / "acid", events(some_rows(1)))
    original(tmp_path / "raw", 0, 1)
    (tmp_path / "text").write_text("no ORC")
    assert [has_raw_rows(LOCAL, str(tmp_path / name)) for name in ("acid", "raw", "text")] == [
        False,
        True,
        True,
    ]


def test_a_bucket_of_which_nothing_is_flushed_has_no_rows(tmp_path: Path) -> None:
    """Hive's streaming writer begins a side file with a 0 (OrcRecordUpdater)."""
    put(tmp_path / "delta_0000001_0000002/bucket_00000", events(some_rows(2)))
    begun = tmp_path / "delta_0000001_0000002/bucket_00001"
    begun.write_bytes(b"ORC")
    begun.with_name("bucket_00001_flush_length").write_bytes(bytes(8))
    assert [row["a"] for row in read(tmp_path)] == [0, 1]


@pytest.mark.parametrize("name", ["delta_0000001_0000001_0000/part-00000.orc", "part-00000.orc"])
def test_files_of_other_names_are_refused_by_name(tmp_path: Path, name: str) -> None:
    """Their rows, if they are any, would be missing without a word."""
    put(tmp_path / "delta_0000001_0000001_0000/bucket_00000", events(some_rows(2)))
    put(tmp_path / name, events(some_rows(2)))
    with pytest.raises(AcidFormatError, match="part-00000"):
        plan(tmp_path).require_all_read()
    (tmp_path / name).write_bytes(b"")
    plan(tmp_path).require_all_read()
