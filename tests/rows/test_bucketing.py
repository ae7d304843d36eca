from __future__ import annotations

import struct
from datetime import date
from decimal import Decimal
from typing import Any

import mmh3
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.types import OrcKind, OrcType
from hms_bridge.rows.bucketing import bucket_ids
from tests.support.golden import GoldenStage, golden_stages

SEED = 104_729
BUCKETED = [stage for stage in golden_stages("full_acid") if stage.is_bucketed and stage.rows]


def _parsed(value: Any, node: OrcType) -> Any:
    if value is None:
        return None
    match node.kind:
        case OrcKind.DECIMAL:
            return Decimal(value)
        case OrcKind.DATE:
            return date.fromisoformat(value)
        case _:
            return value


@pytest.mark.golden
@pytest.mark.parametrize("stage", BUCKETED, ids=str)
def test_rows_lie_where_hive_put_them(stage: GoldenStage) -> None:
    definition = stage.state["metastore_table"]
    types = {name: parse_hive_type(text) for name, text in definition["columns"]}
    names = definition["bucket_columns"]
    rows = stage.rows or []
    columns = [
        pa.array(
            [_parsed(row["values"][name], types[name]) for row in rows], arrow_type(types[name])
        )
        for name in names
    ]
    found = bucket_ids(columns, [types[name] for name in names], definition["num_buckets"])
    assert found.to_pylist() == [row["row__id"][1] >> 16 & 0xFFF for row in rows]


def test_there_are_bucketed_goldens() -> None:
    assert len(BUCKETED) > 3


def _bucket(content: bytes) -> int:
    return (mmh3.hash(content, SEED) & 0x7FFFFFFF) % 1000


def _found(values: list[Any], text: str) -> list[int]:
    node = parse_hive_type(text)
    column = pa.array(values, arrow_type(node))
    return bucket_ids([column], [node], 1000).to_pylist()


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1))
def test_whole_words_hash_as_murmur3(numbers: list[int]) -> None:
    assert _found(numbers, "bigint") == [_bucket(struct.pack(">q", one)) for one in numbers]
    small = [one >> 32 for one in numbers]
    assert _found(small, "int") == [_bucket(struct.pack(">i", one)) for one in small]


@given(st.lists(st.text("abcXYZ019 ~", max_size=20), min_size=1))
def test_plain_texts_hash_as_murmur3(texts: list[str]) -> None:
    assert _found(texts, "string") == [_bucket(one.encode()) for one in texts]
    assert _found(texts, "varchar(20)") == [_bucket(one.encode()) for one in texts]
    padded = [one.ljust(20) for one in texts]
    assert _found(padded, "char(20)") == [_bucket(one.rstrip(" ").encode()) for one in texts]


def test_the_last_bytes_are_signed() -> None:
    # Java adds them without cutting them to eight bits: not what murmur3 is elsewhere.
    assert _found(["é"], "string") != [_bucket("é".encode())]
    # The same tail, once from a text and once from a number.
    assert _found([b"\x80\x01"], "binary") == _found([-32767], "smallint")


def test_nulls_and_decimals() -> None:
    assert _found([None], "string") == [0]
    assert _found([Decimal("90.00"), Decimal("90")], "decimal(10,2)") == [_bucket(b"\x5a")] * 2
    assert _found([Decimal("-1.28")], "decimal(10,2)") == _found([b"\x80"], "binary")
    assert _found([True, False, None], "boolean") == [1, 0, 0]
    assert _found([5], "tinyint") == [5]


def test_several_columns_fold() -> None:
    node = parse_hive_type("boolean")
    column = pa.array([True])
    assert bucket_ids([column, column], [node, node], 1000).to_pylist() == [32]


@pytest.mark.parametrize("text", ["timestamp", "double", "array<int>"])
def test_other_types_are_refused(text: str) -> None:
    with pytest.raises(AcidFormatError, match="bucketed by a column of"):
        _found([None], text)


def test_senseless_bucketing_is_refused() -> None:
    with pytest.raises(AcidFormatError, match="at least one bucket"):
        bucket_ids([], [], 4)
