"""What is written comes back: from our reader always, from others for what they can hold."""

from __future__ import annotations

import io
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyorc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import orc

from hms_bridge.orc.acid_writer import AcidOrcWriter
from hms_bridge.orc.assembly import OrcSettings
from hms_bridge.orc.blocks import Compression
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.tail import Calendar
from hms_bridge.orc.types import OrcType, struct_type
from tests.support.acid_events import events, read_back
from tests.support.orc_values import as_array, comparable, orc_types, values

WRITABLE = [one for one in Compression if one not in {Compression.LZO, Compression.BROTLI}]


@st.composite
def tables(draw: st.DrawFn) -> tuple[OrcType, list[Any]]:
    children = draw(st.lists(orc_types(), min_size=1, max_size=3))
    table = struct_type([f"c{at}" for at in range(len(children))], children)
    row = st.tuples(*[values(child) for child in children])
    rows = draw(st.lists(row, min_size=1, max_size=12))
    return table, [dict(zip(table.names, one, strict=True)) for one in rows]


def write(batches: list[pa.RecordBatch], table: OrcType, **options: Any) -> bytes:
    sink = io.BytesIO()
    with AcidOrcWriter(sink, table, **options) as writer:
        for batch in batches:
            writer.write(batch)
        writer.close()
    return sink.getvalue()


@settings(max_examples=80, deadline=None)
@given(
    tables(),
    st.sampled_from(WRITABLE),
    st.sampled_from([Calendar.JULIAN_GREGORIAN, Calendar.PROLEPTIC_GREGORIAN]),
    st.integers(0, 12),
)
def test_any_rows_come_back(
    given_table: tuple[OrcType, list[Any]], compression: Compression, calendar: Calendar, cut: int
) -> None:
    table, rows = given_table
    batch = events(as_array(rows, table))
    # Slices: encoders must not look beyond them.
    parts = [part for part in (batch.slice(0, cut), batch.slice(cut)) if part.num_rows]
    chosen = OrcSettings(compression=compression, calendar=calendar)
    content = write(parts, table, settings=chosen)
    back = pa.Table.from_batches(read_back(content))
    assert comparable(back.column("row").to_pylist()) == comparable(batch.column("row").to_pylist())
    assert back.drop_columns("row").equals(pa.Table.from_batches([batch]).drop_columns("row"))


@settings(max_examples=20, deadline=None)
@given(tables())
def test_every_slice_is_written_as_itself(given_table: tuple[OrcType, list[Any]]) -> None:
    table, rows = given_table
    batch = events(as_array(rows, table))
    for at in range(batch.num_rows):
        back = read_back(write([batch.slice(at, 1)], table))
        assert comparable(back[0].column("row").to_pylist()) == comparable(
            [batch.column("row")[at].as_py()]
        )


TAME = (
    "struct<i:int,s:string,c:char(4),v:varchar(5),d:decimal(10,2),t:timestamp,day:date,"
    "l:array<int>>"
)
ROW = {
    "i": 1,
    "s": "é",
    "c": "ab  ",
    "v": "vvv",
    "d": None,
    "t": {"seconds": 1_700_000_000, "nanos": 123_456_789},
    "day": date(2020, 2, 29),
    "l": [1, None],
}


@pytest.mark.parametrize("compression", WRITABLE)
def test_other_readers_agree(compression: Compression) -> None:
    table = parse_hive_type(TAME)
    batch = events(as_array([ROW, dict.fromkeys(ROW), ROW], table), write_ids=7)
    content = write([batch], table, settings=OrcSettings(compression=compression))
    by_pyarrow = orc.ORCFile(pa.BufferReader(content))
    assert by_pyarrow.read().column("row").to_pylist()[0] == ROW | {
        "t": pa.scalar(1_700_000_000_123_456_789, pa.timestamp("ns")).as_py()
    }
    reader = pyorc.Reader(io.BytesIO(content))
    assert str(reader.schema) == (
        "struct<operation:int,originalTransaction:bigint,bucket:int,rowId:bigint,"
        f"currentTransaction:bigint,row:{TAME}>"
    )
    assert reader.user_metadata == {
        "hive.acid.key.index": b"7,536870912,2;",
        "hive.acid.stats": b"3,0,0",
        "hive.acid.version": b"2",
    }
    first, second, _ = list(reader)
    assert first[:5] == (0, 7, 536870912, 0, 7)
    assert first[5][5].replace(tzinfo=None) == datetime(2023, 11, 14, 22, 13, 20, 123456)
    assert second[5] == (None,) * 8


def test_delete_events_have_null_rows_for_all_readers() -> None:
    table = parse_hive_type(TAME)
    batch = events(pa.nulls(3, as_array([], table).type), operation=2, current=9)
    content = write([batch], table)
    assert orc.ORCFile(pa.BufferReader(content)).read().column("row").null_count == 3
    assert [row[5] for row in pyorc.Reader(io.BytesIO(content))] == [None] * 3
    assert read_back(content)[0].column("row").null_count == 3
    assert pyorc.Reader(io.BytesIO(content)).user_metadata["hive.acid.stats"] == b"0,0,3"


def test_values_below_a_null_struct_do_not_shift() -> None:
    # pyarrow's own encoder loses the True here.
    table = parse_hive_type("struct<a:struct<b:boolean>>")
    rows = [{"a": None}, {"a": {"b": None}}, {"a": {"b": True}}, {"a": {"b": None}}]
    batch = events(as_array(rows, table))
    content = write([batch], table)
    assert read_back(content)[0].column("row").to_pylist() == rows
    assert [row[5] for row in pyorc.Reader(io.BytesIO(content))] == [
        (None,),
        ((None,),),
        ((True,),),
        ((None,),),
    ]


def test_timestamps_of_a_zone_keep_their_wall_clock() -> None:
    # Written by liborc in New York: a reader of wall clocks sees what was meant, DST or not.
    sink = io.BytesIO()
    wall = [datetime(2020, 7, 1, 12, 0, 0, 5), datetime(1960, 1, 1, 0, 0, 0, 250_000)]
    from zoneinfo import ZoneInfo

    zone = ZoneInfo("America/New_York")
    with pyorc.Writer(sink, "struct<t:timestamp>", timezone=zone) as writer:
        writer.writerows([(one.replace(tzinfo=zone),) for one in wall])
    from hms_bridge.orc.acid_reader import OrcFile
    from hms_bridge.orc.stripe_reader import ReadForm
    from hms_bridge.orc.tail import tail_of_file

    opened = OrcFile(sink, tail_of_file(sink), ReadForm())
    assert [row["t"] for row in opened.read_rows(0).to_pylist()] == wall
