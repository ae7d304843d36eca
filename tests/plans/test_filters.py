"""No partition is left out that may have a row for which the filter is true."""

import sqlite3
from contextlib import closing
from itertools import product
from typing import Any

import pytest

from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Column
from hms_bridge.plans.filters import PartitionFilter
from hms_bridge.plans.partition_values import typed_value


@pytest.mark.parametrize(
    ("kind", "text", "op", "literal", "is_kept"),
    [
        ("int", "07", "=", ("integer", 7), True),
        ("int", DEFAULT_PARTITION_VALUE, "=", ("integer", 7), False),
        ("string", DEFAULT_PARTITION_VALUE, "=", ("string", DEFAULT_PARTITION_VALUE), True),
        ("string", "ab", "=", ("string collate UNICODE", "AB"), True),
        ("char(4)", "ab", "starts_with", ("string", "ab "), True),
        ("char(4)", "ab", "=", ("string", "abc"), False),
        ("timestamp", "1970-01-01 00:00:01", "=", ("timestamp", 1), True),
        ("decimal(9,2)", "1.50", "<", ("decimal(2,1)", "1.5"), False),
        ("double", "NaN", "=", ("double", "NaN"), True),
    ],
)
def test_values_are_compared_as_spark_compares_them(
    kind: str, text: str, op: str, literal: tuple[str, object], is_kept: bool
) -> None:
    column = Column(name="p", type=kind)
    tree = {"op": op, "column": ["p"], "value": dict(zip(("type", "value"), literal, strict=True))}
    assert PartitionFilter(tree, [column]).keeps([typed_value(column, text)]) is is_kept


def test_what_is_left_out_has_no_row_for_which_it_is_true() -> None:
    """SQLite says which pairs of values have one."""
    three_or_null = [{"type": "int", "value": value} for value in (3, None)]
    leaves: list[tuple[dict[str, Any], str]] = [
        ({"op": "is_null", "column": ["data"]}, "data is null"),
        ({"op": "in", "column": ["q"], "values": three_or_null}, "q in (3, null)"),
    ]
    for op, name, value in product(("=", "<=>", ">="), ("p", "data"), (None, 2)):
        test = {"op": op, "column": [name], "value": {"type": "long", "value": value}}
        leaves.append((test, f"{name} {op.replace('<=>', 'is')} {value or 'null'}"))
    numbers = "(select null v union values (1), (2), (3))"
    rows = f"(select x.v p, y.v q, z.v data from {numbers} x, {numbers} y, {numbers} z)"
    columns = [Column(name="p", type="int"), Column(name="q", type="int")]
    with closing(sqlite3.connect(":memory:")) as database:
        for op, (left, a), (right, b) in product(("and", "or"), leaves, leaves):
            tree = {"op": op, "children": [left, {"op": "not", "child": right}]}
            query = f"select distinct p, q from {rows} where ({a}) {op} not ({b})"
            needed = set(database.execute(query))
            pairs = product((None, 1, 2, 3), repeat=2)
            kept = set(filter(PartitionFilter(tree, columns).keeps, pairs))
            assert needed <= kept, query
            assert needed == kept or "data" in a + b, query
