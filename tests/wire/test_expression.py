"""Hive's partition expressions are read, within limits; nothing that they name is ever made."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest

from hms_bridge.model.expression import Call, ColumnReference, Constant, Function
from hms_bridge.wire import expression, kryo_input
from hms_bridge.wire.expression import read_expression
from hms_bridge.wire.kryo_input import UnreadableError
from tests.support.partition_expressions import SentExpression, sent_expressions, sent_for

FUNCTION = b"org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDes\xe3"
ARRAY_LIST = b"java.util.ArrayLis\xf4"


@pytest.mark.parametrize(
    "sent", [one for one in sent_expressions() if one.is_served], ids=lambda one: one.text
)
def test_what_hive_sent_is_read(sent: SentExpression) -> None:
    read_expression(sent.data)


@pytest.mark.parametrize(
    "sent", [one for one in sent_expressions() if not one.is_served], ids=lambda one: one.text
)
def test_other_functions_are_unreadable(sent: SentExpression) -> None:
    with pytest.raises(UnreadableError):
        read_expression(sent.data)


@pytest.mark.parametrize(
    ("text", "constant"),
    [
        ("(b = 9223372036854775807L)", Constant(2**63 - 1, "bigint")),
        ("(b = -10000000000L)", Constant(-(10**10), "bigint")),
        ("(db = -1.5E300D)", Constant(-1.5e300, "double")),
        ("(de = -12345678.91)", Constant(Decimal("-12345678.91"), "decimal(10,2)")),
        ("(d = DATE'0001-01-01')", Constant((1, 1, 1), "date")),
        ("(s = 'ü日本')", Constant("ü日本", "string")),
        ("(s = '')", Constant("", "string")),
        ("(bo = true)", Constant(True, "boolean")),
        ("(ts = TIMESTAMP'2024-01-02 00:00:00')",
         Constant((2024, 1, 2, 0, 0, 0, 0), "timestamp")),
        ("(ts = TIMESTAMP'2024-01-02 03:00:00')",
         Constant((2024, 1, 2, 3, 0, 0, 0), "timestamp")),
        ("(ts = TIMESTAMP'2024-01-02 03:04:05.123456789')",
         Constant((2024, 1, 2, 3, 4, 5, 123456789), "timestamp")),
    ],
)  # fmt: skip
def test_constants_keep_their_value(text: str, constant: Constant) -> None:
    read = read_expression(sent_for(text).data)
    assert isinstance(read, Call)
    assert read.function is Function.EQUAL
    assert isinstance(read.operands[0], ColumnReference)
    assert read.operands[1] == constant


def test_a_cut_or_changed_message_is_unreadable_or_an_expression() -> None:
    """Any error but the one meant for it would end the test."""
    randomness = random.Random(4)
    for sent in sent_expressions():
        for _ in range(15):
            data = bytearray(sent.data)
            if randomness.random() < 0.3:
                del data[randomness.randrange(len(data)) :]
            for _ in range(randomness.randrange(4)):
                if data:
                    data[randomness.randrange(len(data))] = randomness.randrange(256)
            try:
                read_expression(bytes(data))
            except UnreadableError:
                continue


def _nested(levels: int) -> bytes:
    """``not (not (…`` without an end: each level a call whose only operand is the next one."""
    first = b"\x01\x00" + FUNCTION + b"\x01\x01\x01" + ARRAY_LIST + b"\x01\x02"
    return first + b"\x01\x00\x01\x01\x01\x01\x02" * levels


def test_depth_is_limited() -> None:
    with pytest.raises(UnreadableError, match="inside each other"):
        read_expression(_nested(100_000))


def test_size_and_lengths_are_limited() -> None:
    with pytest.raises(UnreadableError, match="bytes; at most"):
        read_expression(bytes(kryo_input.BYTES_MAX + 1))
    head = b"\x01\x00" + FUNCTION + b"\x01\x01\x01" + ARRAY_LIST + b"\x01"
    with pytest.raises(UnreadableError, match="a length of"):
        read_expression(head + b"\x7f\xff\xff\xff\x0f")


def test_a_class_that_is_not_known_is_refused_by_name() -> None:
    gadget = b"com.sun.rowset.JdbcRowSetImp\xec"
    with pytest.raises(UnreadableError, match="JdbcRowSetImpl"):
        read_expression(b"\x01\x00" + gadget + b"\x01\x00\x00")


def test_shared_operands_count_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few bytes could otherwise stand for 2^40 nodes."""
    monkeypatch.setattr(expression, "NODES_MAX", 5)
    sent = sent_for("(((s = 'a') or (i = 1)) and ((s = 'b') or (i = 2)))")
    with pytest.raises(UnreadableError, match="more than 5 nodes"):
        read_expression(sent.data)
