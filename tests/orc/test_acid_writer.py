from __future__ import annotations

import io
from typing import Any

import pyarrow as pa
import pytest

from hms_bridge.acid.row_id import RowId
from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.acid_layout import (
    AcidStats,
    acid_layout,
    acid_schema,
    format_key_index,
    parse_key_index,
)
from hms_bridge.orc.acid_reader import OrcFile
from hms_bridge.orc.acid_writer import AcidOrcWriter, WrittenFile
from hms_bridge.orc.assembly import OrcSettings
from hms_bridge.orc.blocks import Compression
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.stripe_reader import ReadForm
from hms_bridge.orc.tail import Calendar, tail_of_file
from hms_bridge.orc.timestamps import TimestampForm
from hms_bridge.orc.types import struct_type
from tests.support.acid_events import BUCKET, events, read_back
from tests.support.orc_values import as_array

TABLE = parse_hive_type("struct<a:bigint,s:string>")


def rows(count: int, first: int = 0) -> pa.Array:
    return as_array([{"a": at, "s": f"s{at}" * 20} for at in range(first, first + count)], TABLE)


def write(*batches: pa.RecordBatch, **options: Any) -> tuple[bytes, WrittenFile]:
    sink = io.BytesIO()
    writer = AcidOrcWriter(sink, TABLE, **options)
    for batch in batches:
        writer.write(batch)
    return sink.getvalue(), writer.close()


def test_one_key_for_each_stripe() -> None:
    sink = io.BytesIO()
    writer = AcidOrcWriter(sink, TABLE, stripe_bytes=64 * 1024)
    for first in range(0, 9000, 1500):
        writer.write(events(rows(1500, first), row_ids=range(first, first + 1500)))
    written = writer.close()
    back = read_back(sink.getvalue())
    lasts = [RowId(1, BUCKET, batch.column("rowId")[-1].as_py()) for batch in back]
    assert len(back) > 3
    assert written.stripe_last_keys == tuple(lasts)
    tail = tail_of_file(sink)
    assert parse_key_index(tail.user_metadata["hive.acid.key.index"]) == tuple(lasts)
    assert len(tail.stripe_statistics()) == len(back)
    statistics = tail.column_statistics()[4].int_statistics
    assert (statistics.minimum, statistics.maximum) == (0, 8999)
    assert written == WrittenFile(
        size_bytes=len(sink.getvalue()),
        stats=AcidStats(inserts=9000),
        stripe_last_keys=tuple(lasts),
    )
    assert pa.concat_batches(back).column("rowId").to_pylist() == list(range(9000))


def test_one_huge_batch_makes_several_stripes() -> None:
    sink = io.BytesIO()
    writer = AcidOrcWriter(sink, TABLE, stripe_bytes=256 * 1024)
    writer.write(events(rows(10_000)))
    writer.close()
    assert len(tail_of_file(sink).stripes) > 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"write_ids": 2}, {"write_ids": 1}),
        ({"buckets": BUCKET + 1}, {"buckets": BUCKET}),
        ({"row_ids": [5]}, {"row_ids": [4]}),
        ({"row_ids": [5]}, {"row_ids": [5]}),
        ({"operation": 2, "current": 7}, {"operation": 2, "current": 8}),
    ],
)
def test_disorder_is_refused(first: dict[str, Any], second: dict[str, Any]) -> None:
    with pytest.raises(AcidFormatError, match="ascend"):
        write(events(rows(1), **first), events(rows(1), **second))
    one = pa.concat_batches([events(rows(1), **first), events(rows(1), **second)])
    with pytest.raises(AcidFormatError, match="ascend"):
        write(one)


def test_keys_ascend_by_write_id_then_bucket_then_row_id() -> None:
    given = events(
        rows(5),
        write_ids=[1, 1, 1, 2, 2],
        buckets=[5, 6, 6, 1, 1],
        row_ids=[9, 0, 1, 0, 7],
    )
    _, written = write(given)
    assert written.stripe_last_keys == (RowId(2, 1, 7),)


def test_a_row_may_be_deleted_twice() -> None:
    _, written = write(
        events(rows(2).slice(0, 1), operation=2, current=9),
        events(rows(2).slice(1), row_ids=[0], operation=2, current=8),
    )
    assert written.stats == AcidStats(deletes=2)


def test_wrong_batches_are_refused() -> None:
    with pytest.raises(AcidFormatError, match="columns"):
        write(events(rows(1)).select([0, 1, 2]))
    with pytest.raises(AcidFormatError, match="operation 7"):
        write(events(rows(1), operation=7))
    with pytest.raises(AcidFormatError, match="1 columns given for 2"):
        write(events(as_array([{"a": 1}], parse_hive_type("struct<a:bigint>"))))
    for settings in (
        OrcSettings(block_size_bytes=1000),
        OrcSettings(compression=Compression.LZO),
    ):
        with pytest.raises(AcidFormatError, match="choose NONE, ZLIB"):
            write(events(rows(1)), settings=settings)


def test_a_file_without_events() -> None:
    content, _ = write()
    sink = io.BytesIO()
    written = AcidOrcWriter(sink, TABLE).close()
    assert (written.stats, written.stripe_last_keys) == (AcidStats(), ())
    tail = tail_of_file(sink)
    assert tail.user_metadata["hive.acid.key.index"] == b""
    assert tail.user_metadata["hive.acid.stats"] == b"0,0,0"
    assert read_back(sink.getvalue()) == []
    assert content  # the header


def test_timestamps_may_change_their_form_between_stripes() -> None:
    table = parse_hive_type("struct<t:timestamp>")
    sink = io.BytesIO()
    writer = AcidOrcWriter(sink, table)
    parts = as_array([{"t": {"seconds": -(10**11), "nanos": 5}}], table)
    nanos = pa.array([{"t": 7}], pa.struct([("t", pa.timestamp("ns"))]))
    writer.write(events(nanos, row_ids=[0]))
    writer.write(events(parts, row_ids=[1]))
    writer.write(events(nanos, row_ids=[2]))
    writer.close()
    found = [batch.column("row").to_pylist()[0]["t"] for batch in read_back(sink.getvalue())]
    assert found == [
        {"seconds": 0, "nanos": 7},
        {"seconds": -(10**11), "nanos": 5},
        {"seconds": 0, "nanos": 7},
    ]


def test_days_as_stored_and_as_shown() -> None:
    table = parse_hive_type("struct<d:date>")
    days = pa.array([{"d": -200_000}], pa.struct([("d", pa.date32())]))
    sink = io.BytesIO()
    writer = AcidOrcWriter(sink, table)
    writer.write(events(days))
    writer.close()
    shown = read_back(sink.getvalue())[0].column("row")
    stored = read_back(sink.getvalue(), ReadForm(calendar=None))[0].column("row")
    assert shown.equals(days)
    assert not stored.equals(days)
    # What a compactor does: stored days in, the same stored days out.
    sink = io.BytesIO()
    writer = AcidOrcWriter(sink, table, given_calendar=None)
    writer.write(events(stored))
    writer.close()
    assert tail_of_file(sink).calendar is Calendar.JULIAN_GREGORIAN
    assert read_back(sink.getvalue())[0].column("row").equals(days)


def test_chosen_columns_and_keys_alone() -> None:
    sink = io.BytesIO()
    writer = AcidOrcWriter(sink, TABLE)
    writer.write(events(rows(2)))
    writer.close()
    opened = OrcFile(sink, tail_of_file(sink), ReadForm())
    assert opened.read_events(0, [1]).column("row").type.names == ["s"]
    assert opened.read_events(0, []).schema.names[-1] == "currentTransaction"
    assert opened.read_keys(0).schema.names == [
        "originalTransaction",
        "bucket",
        "rowId",
        "currentTransaction",
    ]


def test_names_of_the_acid_columns_in_any_case() -> None:
    schema = acid_schema(TABLE)
    lower = struct_type([name.lower() for name in schema.names], schema.children)
    layout = acid_layout(lower)
    assert layout == acid_layout(schema)
    assert layout is not None
    assert (layout.key_ids, layout.row, layout.row_type) == ((2, 3, 4), 6, TABLE)
    assert acid_layout(struct_type(schema.names[:5], schema.children[:5])) is None
    assert acid_layout(TABLE) is None


def test_user_metadata_texts() -> None:
    keys = (RowId(1, BUCKET, 2), RowId(3, BUCKET, 4))
    text = b"1,536870912,2;3,536870912,4;"
    assert format_key_index(keys) == text
    assert parse_key_index(text) == keys
    assert parse_key_index(b"") == ()
    assert AcidStats.parse(b"12,0,3") == AcidStats(inserts=12, deletes=3)
    for bad in (b"1,2", b"a,b,c", b"1,2,3,4", b"\xff"):
        with pytest.raises(AcidFormatError, match="malformed"):
            parse_key_index(bad + b";")
        with pytest.raises(AcidFormatError, match="malformed"):
            AcidStats.parse(bad)


def test_lossless_reading_is_what_the_writer_takes() -> None:
    table = parse_hive_type("struct<t:timestamp>")
    far = {"t": {"seconds": 253_402_300_799, "nanos": 999_999_999}}
    near = {"t": {"seconds": 1, "nanos": 2}}
    for row in (far, near):
        sink = io.BytesIO()
        writer = AcidOrcWriter(sink, table)
        writer.write(events(as_array([row], table)))
        writer.close()
        lossless = read_back(sink.getvalue(), ReadForm(timestamps=TimestampForm.LOSSLESS))[0]
        again = io.BytesIO()
        writer = AcidOrcWriter(again, table)
        writer.write(lossless)
        writer.close()
        assert read_back(again.getvalue())[0].column("row").to_pylist() == [row]
