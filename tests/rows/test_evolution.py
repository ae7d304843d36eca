from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from hms_bridge.errors import AcidFormatError
from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.timestamps import TimestampForm
from hms_bridge.rows.evolution import adapt


def adapted(values: list[Any], source: str, target: str) -> list[Any]:
    node, wanted = parse_hive_type(source), parse_hive_type(target)
    array = pa.array(values, arrow_type(node))
    result = adapt(array, node, wanted, TimestampForm.MICROS)
    assert result.type == arrow_type(wanted)
    return result.to_pylist()


@pytest.mark.parametrize(
    ("source", "target", "values", "wanted"),
    [
        ("int", "bigint", [1, None], [1, None]),
        ("bigint", "int", [1, 2**31, -(2**31)], [1, None, -(2**31)]),
        ("tinyint", "double", [-3, None], [-3.0, None]),
        ("bigint", "float", [2**40 + 1], [float(2**40)]),
        ("float", "double", [1.5], [1.5]),
        ("int", "decimal(12,2)", [7, None], [Decimal("7.00"), None]),
        ("bigint", "decimal(3,1)", [99, 100, -100], [Decimal("99.0"), None, None]),
        ("decimal(5,2)", "decimal(10,3)", [Decimal("1.25")], [Decimal("1.250")]),
        (
            "decimal(5,2)",
            "decimal(3,1)",
            [Decimal("1.25"), Decimal("-1.25"), Decimal("99.95"), Decimal("99.94")],
            [Decimal("1.3"), Decimal("-1.3"), None, Decimal("99.9")],
        ),
        ("decimal(38,18)", "decimal(38,0)", [Decimal("1.5"), None], [Decimal(2), None]),
        ("string", "varchar(3)", ["abcd", "é€😀x", None], ["abc", "é€😀", None]),
        ("varchar(9)", "varchar(2)", ["abc"], ["ab"]),
        ("varchar(2)", "varchar(9)", ["ab"], ["ab"]),
        ("string", "char(3)", ["a", "abcd", "€"], ["a  ", "abc", "€  "]),
        ("char(4)", "string", ["ab  "], ["ab"]),
        ("char(4)", "char(6)", ["ab  "], ["ab    "]),
        ("char(4)", "char(2)", ["ab  "], ["ab"]),
        ("int", "string", [12, None], ["12", None]),
        ("date", "string", [date(2020, 1, 2)], ["2020-01-02"]),
        (
            "timestamp",
            "string",
            [datetime(2020, 1, 2, 3, 4, 5, 670000), datetime(1969, 12, 31, 23, 59, 59), None],
            ["2020-01-02 03:04:05.67", "1969-12-31 23:59:59", None],
        ),
        ("timestamp", "varchar(10)", [datetime(2020, 1, 2, 3, 4, 5)], ["2020-01-02"]),
        ("array<int>", "array<bigint>", [[1, None], None, []], [[1, None], None, []]),
        ("map<string,int>", "map<string,string>", [[("k", 1)], None], [[("k", "1")], None]),
        (
            "struct<a:int>",
            "struct<z:bigint,n:array<timestamp>>",
            [{"a": 1}, None],
            [{"z": 1, "n": None}, None],
        ),
        ("struct<a:int,b:int>", "struct<a:int>", [{"a": 1, "b": 2}], [{"a": 1}]),
        ("timestamp", "timestamp", [None], [None]),
    ],
)
def test_changes_of_type(source: str, target: str, values: list[Any], wanted: list[Any]) -> None:
    assert adapted(values, source, target) == wanted


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("string", "int"),
        ("double", "string"),
        ("timestamp", "date"),
        ("timestamp", "timestamp with local time zone"),
        ("array<int>", "int"),
        ("uniontype<int,string>", "uniontype<int,bigint>"),
    ],
)
def test_what_is_not_supported_is_named(source: str, target: str) -> None:
    with pytest.raises(AcidFormatError):
        adapted([None], source, target)
