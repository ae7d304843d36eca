"""An expression selects the partitions that Hive's own evaluator selects."""

from __future__ import annotations

import pytest

from hms_bridge.catalog import partition_expression
from hms_bridge.catalog.partition_expression import BoundExpression, bind_expression
from hms_bridge.catalog.partition_values import UnknownTypeError
from hms_bridge.catalog.text_bounds import TextBounds
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


DAY = ColumnReference("d", "date")
DAY_COLUMN = Column(name="d", type="date")


@pytest.mark.parametrize(
    "expression",
    [
        Call(Function.NOT_EQUAL, (DAY, Constant("2024-01-01", "date")), "boolean"),
        Call(Function.LESS, (DAY, Constant((2024, 1), "date")), "boolean"),
        Call(Function.EQUAL, (DAY, Constant(True, "int")), "boolean"),
        Call(Function.EQUAL, (DAY, Constant((2024, 1, 1), "date")), "double"),
        Call(Function.NOT, (DAY,), "boolean"),
        Call(Function.IN, (DAY, Constant(1.5, "date"), Constant(None, "date")), "boolean"),
        Call(Function.IS_NULL, (Call(Function.CAST, (DAY,), "decimal(99999,-5)"),), "boolean"),
    ],
    ids=str,
)
def test_values_that_are_none_of_their_type_are_refused(expression: Call) -> None:
    with pytest.raises(UnknownTypeError):
        bind_expression(expression, [DAY_COLUMN])


def test_a_column_whose_type_was_changed_since_is_refused() -> None:
    expression = Call(
        Function.NOT_EQUAL, (ColumnReference("d", "string"), Constant("x", "string")), "boolean"
    )
    with pytest.raises(UnknownTypeError, match="the column is of type date"):
        bind_expression(expression, [DAY_COLUMN])


@pytest.mark.parametrize(
    ("kind", "members"),
    [("char(5)", ("ab   ",)), ("int", ("1",)), ("int", (1, 2)), ("date", ("2024-01-01",))],
)
def test_constant_structs_of_other_members_are_refused(
    kind: str, members: tuple[int | str, ...]
) -> None:
    """Hive writes chars with their blanks; a row that it would find must not be passed over."""
    struct = Call(Function.STRUCT, (ColumnReference("c", kind),), "struct")
    expression = Call(Function.IN, (struct, Constant(members, "struct")), "boolean")
    with pytest.raises(UnknownTypeError, match="in over structs"):
        bind_expression(expression, [Column(name="c", type=kind)])


def test_an_expression_that_would_take_days_ends_in_perhaps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(partition_expression, "EVALUATIONS_MAX", 10)
    expression = Call(Function.EQUAL, (ColumnReference("c", "int"), Constant(1, "int")), "boolean")
    bound = bind_expression(expression, [Column(name="c", type="int")])
    assert [bound.verdict(["1"]) for _ in range(4)] == [True, True, True, None]


def test_to_rule_out_is_bounded_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_expression, "EVALUATIONS_MAX", 60)
    expression = Call(Function.EQUAL, (ColumnReference("c", "int"), Constant(1, "int")), "boolean")
    bound = bind_expression(expression, [Column(name="c", type="int")])
    assert [bound.rules_out(["2"]) for _ in range(3)] == [True, True, False]
    assert [bound.verdict(["1"]) for _ in range(20)] == [True] * 20


S, IS_A, IS_NEW_YEAR = (
    ColumnReference("s", "string"),
    Call(Function.EQUAL, (ColumnReference("s", "string"), Constant("a", "string")), "boolean"),
    Call(Function.EQUAL, (DAY, Constant((2024, 1, 1), "date")), "boolean"),
)
TWO_COLUMNS = (Column(name="s", type="string"), DAY_COLUMN)


def test_what_is_decided_without_an_odd_value_is_decided() -> None:
    both = bind_expression(Call(Function.AND, (IS_A, IS_NEW_YEAR), "boolean"), TWO_COLUMNS)
    either = bind_expression(Call(Function.OR, (IS_A, IS_NEW_YEAR), "boolean"), TWO_COLUMNS)
    odd = "-2024-01-01"
    assert [both.verdict([text, odd]) for text in ("a", "b")] == [None, False]
    assert [either.verdict([text, odd]) for text in ("a", "b")] == [True, None]
    assert [both.rules_out([text]) for text in ("a", "b")] == [False, True]
    assert not either.rules_out(["b"])


def test_a_char_with_blanks_is_looked_for_as_it_is_compared() -> None:
    """A string column's value has no blanks at its end where the char is given with some."""
    padded, other = Constant("a  ", "char(3)"), Constant("b", "string")
    within = (Constant(False, "boolean"), S, padded, other)
    for call in (
        Call(Function.EQUAL, (S, padded), "boolean"),
        Call(Function.IN, (S, padded, other), "boolean"),
        Call(Function.GREATER_OR_EQUAL, (S, padded), "boolean"),
        Call(Function.BETWEEN, within, "boolean"),
    ):
        bound = bind_expression(call, TWO_COLUMNS)
        assert bound.verdict(["a", "x"]) is True
        assert "a" in bound.required_values.get(0, "a")
        assert bound.bounds.get(0, TextBounds("a")).least == "a"


def test_bounds_of_an_expression() -> None:
    def bounds(*operands: Call) -> object:
        both = Call(Function.AND, (*operands, IS_NEW_YEAR), "boolean")
        return bind_expression(both, TWO_COLUMNS, "none").bounds

    a, b, null = (Constant(text, "string") for text in ("a", "b", None))
    least = Call(Function.LESS, (a, S), "boolean")
    most = Call(Function.LESS_OR_EQUAL, (S, b), "boolean")
    within = (Constant(False, "boolean"), S, a, b)
    wanted = {0: TextBounds("a", "b", "none")}
    assert bounds(least, most) == bounds(Call(Function.BETWEEN, within, "boolean")) == wanted
    for operands in ((Constant(True, "boolean"), S, a, b), (within[0], S, null, b)):
        assert bounds(Call(Function.BETWEEN, operands, "boolean")) == {}
    assert bounds(Call(Function.OR, (least, most), "boolean")) == {}
    assert bounds(Call(Function.LESS, (S, null), "boolean")) == {}
