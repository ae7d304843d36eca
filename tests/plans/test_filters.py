"""No partition is left out that may have a row for which the filter is true."""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Column
from hms_bridge.plans.filters import PartitionFilter
from hms_bridge.plans.partition_values import typed_value

NUMBERS = (None, 1, 2, 3)


def _column(kind: str, name: str = "p") -> Column:
    return Column(name=name, type=kind)


def _test(op: str, kind: str, value: object, column: str = "p") -> dict[str, Any]:
    return {"op": op, "column": [column], "value": {"type": kind, "value": value}}


@pytest.mark.parametrize(
    ("kind", "text", "op", "literal", "is_kept"),
    [
        ("int", "07", "=", ("integer", 7), True),
        ("int", "7", "<", ("long", 7), False),
        ("int", DEFAULT_PARTITION_VALUE, "<=>", ("integer", None), True),
        ("int", DEFAULT_PARTITION_VALUE, "=", ("integer", None), False),
        ("int", DEFAULT_PARTITION_VALUE, "=", ("integer", 7), False),
        ("string", DEFAULT_PARTITION_VALUE, "=", ("string", DEFAULT_PARTITION_VALUE), True),
        ("string", "ab ", "=", ("string", "ab"), False),
        ("string", "ab", "starts_with", ("string", "b"), False),
        ("string", "ab", "=", ("string collate UNICODE", "AB"), True),
        ("char(4)", "ab", "=", ("string", "ab"), True),
        ("char(4)", "ab", "=", ("char(4)", "ab  "), True),
        ("char(4)", "ab", "starts_with", ("string", "ab "), True),
        ("char(4)", "ab", "=", ("string", "abc"), False),
        ("date", "1970-01-03", ">", ("date", 2), False),
        ("date", "1970-01-03", ">", ("string", "1970"), True),
        ("timestamp", "1970-01-01 00:00:01", "=", ("timestamp_ntz", 1_000_000), True),
        ("timestamp", "1970-01-01 00:00:01", "=", ("timestamp_ntz", 1), False),
        ("timestamp", "1970-01-01 00:00:01", "=", ("timestamp", 1), True),
        ("decimal(9,2)", "1.50", "=", ("decimal(2,1)", "1.5"), True),
        ("decimal(9,2)", "1.50", "<", ("decimal(2,1)", "1.5"), False),
        ("double", "NaN", "=", ("double", "NaN"), True),
        ("float", "0.1", "=", ("float", 0.1), True),
        ("boolean", "true", "=", ("boolean", False), False),
    ],
)
def test_values_are_compared_as_spark_compares_them(
    kind: str, text: str, op: str, literal: tuple[str, object], is_kept: bool
) -> None:
    value = typed_value(_column(kind), text)
    assert PartitionFilter(_test(op, *literal), [_column(kind)]).keeps([value]) is is_kept


def test_values_as_json_has_them() -> None:
    found = [
        typed_value(_column(kind), text)
        for kind, text in [("decimal(9,2)", "-1.5"), ("double", "-inf"), ("float", "0.5")]
    ]
    assert found == [str(Decimal("-1.50")), "-Infinity", 0.5]


_LEAVES = st.one_of(
    st.builds(
        lambda op, column, value: _test(op, "integer", value, column),
        st.sampled_from(["=", "<=>", "<", ">="]),
        st.sampled_from(["p", "q", "data"]),
        st.sampled_from(NUMBERS),
    ),
    st.sampled_from([{"op": "true"}, {"op": "false"}, {"op": "is_null", "column": ["data"]}]),
    st.just({"op": "in", "column": ["q"], "values": [{"type": "int", "value": v} for v in (1, 3)]}),
)
_TREES = st.recursive(
    _LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda child: {"op": "not", "child": child}, inner),
        st.builds(
            lambda op, children: {"op": op, "children": children},
            st.sampled_from(["and", "or"]),
            st.lists(inner, max_size=3),
        ),
    ),
    max_leaves=6,
)


def _judged(tree: dict[str, Any], row: dict[str, int | None]) -> bool | None:
    """SQL, by the letter."""
    op = tree["op"]
    if op in {"true", "false"}:
        return op == "true"
    if op == "not":
        inner = _judged(tree["child"], row)
        return None if inner is None else not inner
    if op in {"and", "or"}:
        found = [_judged(child, row) for child in tree["children"]]
        decisive = op == "or"
        return decisive if decisive in found else (None if None in found else not decisive)
    value = row[tree["column"][0]]
    if op == "is_null":
        return value is None
    if op == "in":
        return None if value is None else value in {one["value"] for one in tree["values"]}
    other = tree["value"]["value"]
    if op == "<=>":
        return value == other
    if value is None or other is None:
        return None
    return {"=": value == other, "<": value < other, ">=": value >= other}[op]


@given(_TREES)
def test_what_is_left_out_has_no_row_for_which_it_is_true(tree: dict[str, Any]) -> None:
    judged = PartitionFilter(tree, [_column("int"), _column("int", "q")])
    for p, q in product(NUMBERS, NUMBERS):
        rows = [_judged(tree, {"p": p, "q": q, "data": data}) for data in NUMBERS]
        assert judged.keeps([p, q]) or True not in rows
        if "data" not in str(tree):
            assert judged.keeps([p, q]) is (True in rows)
