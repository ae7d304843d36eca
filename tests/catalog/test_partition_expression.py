"""An expression selects the partitions that Hive's own evaluator selects."""

from __future__ import annotations

import pytest

from hms_bridge.catalog.partition_expression import BoundExpression, bind_expression
from hms_bridge.catalog.partition_values import UnknownTypeError
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Column
from hms_bridge.model.expression import Call, ColumnReference, Constant, Function
from hms_bridge.wire.expression import read_expression
from tests.support.partition_expressions import SentExpression, sent_expressions

ANSWERS = {True: "+", False: "-", None: "?"}
# Texts that are no proper value of their type, though Hive finds something in them; we say that
# they may or may not match.
ODD = {
    "d": {"-2024-01-01"},
    "s": set(),
    "ts": {
        "2024-01-02 03:04", "2024-01-02 03:04:05+01:00", "2024-01-02 03:04:05 Europe/Berlin",
        "2024-01-02 24:00:00", "2024-01-02 03:04:05.1234567891",
    },
    "db": {"0x1p3"},
}  # fmt: skip


def _bound(sent: SentExpression) -> BoundExpression:
    return bind_expression(read_expression(sent.data), sent.columns)


def _is_odd(sent: SentExpression, values: tuple[str, ...]) -> bool:
    return any(
        value in ODD.get(column.name, ())
        for column, value in zip(sent.columns, values, strict=True)
    )


@pytest.mark.parametrize(
    "sent", [one for one in sent_expressions() if one.is_served], ids=lambda one: one.text
)
def test_hives_own_answer(sent: SentExpression) -> None:
    bound = _bound(sent)
    different = {}
    for values, hives in sent.answers.items():
        ours = ANSWERS[bound.verdict(values)]
        if ours != hives and not (ours == "?" and _is_odd(sent, values)):
            different[values] = (hives, ours)
    assert different == {}


def test_what_the_database_may_leave_out_is_never_selected() -> None:
    left_out = 0
    for sent in sent_expressions():
        if not sent.is_served:
            continue
        required = _bound(sent).required_values
        for values, hives in sent.answers.items():
            if any(values[place] not in texts for place, texts in required.items()):
                assert hives == "-", (sent.text, values)
                left_out += 1
    assert left_out, "no expression lets the database leave anything out"


def test_a_column_that_is_none() -> None:
    call = Call(Function.IS_NULL, (ColumnReference("gone", "int"),), "boolean")
    with pytest.raises(MetaError, match="gone is no partition column"):
        bind_expression(call, [Column(name="p", type="int")])


@pytest.mark.parametrize(
    "expression",
    [
        ColumnReference("p", "int"),
        Call(Function.EQUAL, (ColumnReference("p", "int"), Constant("1", "string")), "boolean"),
        Call(Function.NOT, (), "boolean"),
        Call(Function.IN, (ColumnReference("p", "int"),), "boolean"),
        Call(Function.BETWEEN, (ColumnReference("p", "int"),) * 4, "boolean"),
    ],
    ids=str,
)
def test_what_has_no_meaning_is_refused_before_any_partition_is_looked_at(
    expression: Call | ColumnReference,
) -> None:
    with pytest.raises(UnknownTypeError):
        bind_expression(expression, [Column(name="p", type="int")])
