"""Which formats of insert-only tables are read, and what the SerDe of lines is told."""

from dataclasses import replace

import pytest

from hms_bridge.model.catalog import Column, SerDe, Storage, Table
from hms_bridge.plans.formats import format_of, is_divisible, require_alike, text_settings
from hms_bridge.plans.requests import PlanError
from tests.conformance import objects

PARQUET = (
    "org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
    "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe",
)
LINES = (
    "org.apache.hadoop.mapred.TextInputFormat",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)
OTHER_SERDE = "org.apache.hadoop.hive.serde2.OpenCSVSerde"
COLUMNS = (Column(name="a", type="int"), Column(name="b", type="struct<date:date,c:char(3)>"))


def _storage(
    names: tuple[str, str], columns: tuple[Column, ...] = COLUMNS, **settings: str
) -> Storage:
    serde = SerDe(library=names[1], parameters=settings)
    return replace(objects.orc_storage(columns), input_format=names[0], serde=serde)


def _table(storage: Storage, kind: str = "insert_only", **parameters: str) -> Table:
    marks = {"transactional": "true", "transactional_properties": kind}
    return objects.acid_table("db", storage=storage, parameters=marks | parameters)


def test_formats() -> None:
    assert format_of(_table(_storage(PARQUET))) == "parquet"
    assert format_of(_table(_storage(LINES))) == "text"
    assert format_of(_table(objects.orc_storage(COLUMNS))) == "orc"


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (_table(_storage(LINES), kind="default"), "TextInputFormat, and only ORC"),
        (_table(_storage((LINES[0], OTHER_SERDE))), "OpenCSVSerde"),
        (_table(_storage(("x.Avro", "x.Serde"))), "files of Avro"),
        (_table(_storage(LINES), **{"Skip.header.line.count": "1"}), "skip.header.line.count = 1"),
        (_table(_storage(PARQUET, **{"parquet.column.index.access": "true"})), "index.access"),
    ],
)
def test_what_is_refused(table: Table, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        format_of(table)


@pytest.mark.parametrize(
    ("partition", "said"),
    [
        (_storage(PARQUET), "MapredParquetInputFormat"),
        (_storage((LINES[0], OTHER_SERDE)), "other settings"),
        (_storage(LINES, **{"field.delim": ";"}), "other settings"),
        (_storage(LINES, (Column(name="a", type="bigint"),)), "column a as int"),
        (_storage(LINES, COLUMNS[:1]), "without CASCADE"),
    ],
)
def test_a_partition_must_be_stored_as_its_table(partition: Storage, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        require_alike(_table(_storage(LINES)), partition)


def test_a_partition_of_parquet_may_lack_columns() -> None:
    require_alike(_table(_storage(PARQUET)), _storage(PARQUET, COLUMNS[:1]))


def test_settings_of_lines() -> None:
    storage = _storage(LINES, **{"field.delim": ",", "collection.delim": "|", "mine": "x"})
    assert text_settings(_table(storage, **{"serialization.null.format": "nix"})) == {
        "field.delim": ",",
        "colelction.delim": "|",
        "serialization.null.format": "nix",
        "columns": "c0,c1",
        "columns.types": "int:struct<f0:string,f1:varchar(3)>",
    }


def test_what_is_compressed_as_a_whole_is_not_cut() -> None:
    assert [is_divisible(f"t/{name}") for name in ("000000_0", "a.csv", "000000_0.GZ")] == [
        True, True, False,
    ]  # fmt: skip
