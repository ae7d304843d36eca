"""Partition filters: grammar, types, and what is not known."""

from __future__ import annotations

import time
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.catalog import partition_predicate
from hms_bridge.catalog.partition_filter import (
    DEPTH_MAX,
    Comparison,
    Junction,
    Literal,
    Node,
    Not,
    parse_filter,
)
from hms_bridge.catalog.partition_predicate import bind_filter
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Column

COLUMNS = tuple(
    Column(name=name, type=kind)
    for name, kind in (
        ("s", "string"), ("n", "int"), ("d", "date"), ("t", "timestamp"), ("p", "decimal(10,2)"),
    )
)  # fmt: skip
VALUES = ("2024-01-02", "10", "2024-01-02", "2024-01-02 03:04:05", "1.50")


def selects(text: str, values: tuple[str, ...] = VALUES) -> bool:
    tree = parse_filter(text)
    assert tree is not None
    return bind_filter(tree, COLUMNS).selects(values)


@pytest.mark.parametrize(
    "text",
    [
        's = "2024-01-02"', "S = '2024-01-02'", "'2024-01-02' = s", "`s` = '2024-01-02'",
        "s > '2024-01-01' AND n < 11", "10 >= n", "9 < n", "n in (1, 10)", "not n in (1, 2)",
        "n not in (1)", "n between 10 and 10", "n not between 1 and 9", "n <> 9", "n != 9",
        "(n = 1 or (n = 10 and not s = 'x'))", "d = 2024-01-02", "d = date '2024-01-02'",
        "d > '2023-12-31'", "d between 2024-01-01 and 2024-01-03", "t = '2024-01-02 03:04:05'",
        "t < timestamp '2024-01-02 03:04:06'", "p = 1.5", "p > 1", "s like '2024%'",
        "s like '2024-0_-02'", "s like '.*-02'", "s not like '2023%'", "s = date '2024-01-02'",
        "n = 1 or n = 10 and s = '2024-01-02'", "n = -1 or n = 10",
    ],
)  # fmt: skip
def test_selected(text: str) -> None:
    assert selects(text)


@pytest.mark.parametrize(
    "text",
    ["n = 9", "s = 'x'", "not n = 10", "n > 10", "d < 2024-01-02", "s like '2024'", "p = 2",
     "(n = 10 or s = 'x') and s = 'y'", "s in ('a', 'b')", "n is null"],
)  # fmt: skip
def test_not_selected(text: str) -> None:
    assert not selects(text)


def test_numbers_are_compared_as_numbers() -> None:
    assert selects("n > 9") and selects("n = 10", ("", "010", "", "", ""))


@pytest.mark.parametrize("value", ["", DEFAULT_PARTITION_VALUE, "abc"])
def test_what_is_no_number_is_unknown(value: str) -> None:
    values = ("x", value, "", "", "")
    for text in ("n = 1", "n != 1", "not n = 1", "n in (1)", "not n in (1)"):
        assert not selects(text, values), text
    assert selects("n = 1 or s = 'x'", values)
    assert selects("n is null", values) == (value != "abc")


@pytest.mark.parametrize(
    "text",
    ["s =", "= 'x'", "s", "s ==  'x'", "(s = 'x'", "s = 'x')", "s = 'x' and", "s = 'x' n = 1",
     "s = x", "s like", "s between 'a'", "s in ()", "s in ('a'", "s = 'a", "s ; 'a'", "not",
     "s is 1", "1 = 1", "d = 2024-13-01", "s not = 'x'"],
)  # fmt: skip
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(MetaError, match="Error parsing partition filter"):
        parse_filter(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1", "Specified key <x> is not a partitioning key"),
        ("n = '10'", "Filtering is supported only on partition keys of type string"),
        ("d = 'soon'", "no date"),
        ("t = 'soon'", "no timestamp"),
    ],
)
def test_what_does_not_fit_the_table_is_refused(text: str, message: str) -> None:
    with pytest.raises(MetaError, match=message):
        selects(text)


def test_nothing_nests_without_end() -> None:
    with pytest.raises(MetaError, match="levels"):
        parse_filter("(" * (DEPTH_MAX + 1) + "n = 1" + ")" * (DEPTH_MAX + 1))


def test_values_the_database_may_look_for() -> None:
    tree = parse_filter("s = 'a' and n = 1 and s in ('a', 'b') and (s = 'x' or n = 2)")
    assert tree is not None
    assert dict(bind_filter(tree, COLUMNS).required_values) == {0: frozenset({"a"})}


@given(st.text(max_size=30))
def test_any_text_in_quotes_is_a_value(text: str) -> None:
    quoted = text.replace("\\", "\\\\").replace('"', '\\"')
    assert parse_filter(f's = "{quoted}"') == Comparison("s", "=", (Literal(text),))


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        tree = parse_filter(text)
    except MetaError:
        return
    assert tree is None or isinstance(tree, Comparison | Junction) or tree is not None


@pytest.mark.parametrize("value", ["NaN", "sNaN", "Infinity", "1_000", "٣", "0x10", "1e99999"])
def test_numbers_that_have_no_order_or_are_none(value: str) -> None:
    values = ("x", value, "", "", "")
    for text in ("n < 1", "n > 1", "n = 1000", "n between 0 and 9", "n in (1, 3)"):
        assert not selects(text, values), text


@pytest.mark.parametrize("value", ["2024-01-01T00:00:00+00:00", "2024-01-01 00:00:00Z", "soon"])
def test_timestamps_with_an_offset_are_none(value: str) -> None:
    values = ("", "", "", value, "")
    assert not selects("t < '2030-01-01 00:00:00'", values)
    assert not selects("not t < '2030-01-01 00:00:00'", values)


def test_wildcards_never_take_for_ever() -> None:
    """With an expression that goes back for each wildcard this would not end in a lifetime."""
    started = time.monotonic()
    assert not selects(f"s like '{'%a' * 300}b'", ("a" * 3000, "", "", "", ""))
    assert time.monotonic() - started < 5


def judged(node: Node, values: dict[str, str]) -> bool | None:
    """SQL's three values, by the book."""
    if isinstance(node, Not):
        inner = judged(node.operand, values)
        return None if inner is None else not inner
    if isinstance(node, Junction):
        found = [judged(operand, values) for operand in node.operands]
        if (not node.is_and) in found:
            return not node.is_and
        return None if None in found else node.is_and
    value: object = values[node.column]
    if node.column == "n":
        value = Decimal(values["n"]) if values["n"].isdigit() else None
    if value is None:
        return None
    is_in = value in [literal.value for literal in node.literals]
    return is_in if node.operator in ("=", "in") else not is_in


def comparisons(column: str, values: list[object]) -> st.SearchStrategy[Node]:
    literals = st.lists(st.sampled_from(values).map(Literal), min_size=1, max_size=3).map(tuple)
    one = literals.map(lambda given: given[:1])
    return st.builds(Comparison, st.just(column), st.just("in"), literals) | st.builds(
        Comparison, st.just(column), st.sampled_from(["=", "!="]), one
    )


CONDITIONS = st.recursive(
    comparisons("s", ["a", "b", "c"])
    | comparisons("u", ["a", "b"])
    | comparisons("n", [Decimal(1), Decimal(2)]),
    lambda inner: (
        st.builds(Not, inner)
        | st.builds(Junction, st.booleans(), st.lists(inner, min_size=2, max_size=5).map(tuple))
    ),
    max_leaves=20,
)


@given(CONDITIONS)
def test_alternatives_that_are_looked_up_mean_what_they_say(node: Node) -> None:
    columns = [Column(name=name, type=kind) for name, kind in NAMES]
    bound = bind_filter(node, columns)
    for s in "abcd":
        for u in "ab":
            for n in ("1", "2", "3", "x"):
                expected = judged(node, {"s": s, "u": u, "n": n})
                assert bound.test((s, u, n)) is expected


NAMES = (("s", "string"), ("u", "string"), ("n", "int"))


@pytest.mark.parametrize(
    "alternative", ["s = 'v{0}'", "n = {0}", "(s = 'v{0}' and n = '7')", "s in ('v{0}', 'w{0}')"]
)
def test_thousands_of_alternatives_over_thousands_of_partitions(alternative: str) -> None:
    """One after the other, they would take minutes: what MSCK sends, or somebody hostile."""
    if "and" in alternative:
        alternative = alternative.replace("n = '7'", "u = '7'")
    tree = parse_filter(" or ".join(alternative.format(one) for one in range(3000)))
    assert tree is not None
    bound = bind_filter(tree, [Column(name=name, type=kind) for name, kind in NAMES])
    started = time.monotonic()
    chosen = [one for one in range(20_000) if bound.selects((f"v{one}", "7", str(one)))]
    assert chosen == list(range(3000))
    assert time.monotonic() - started < 10


def test_a_filter_that_would_take_days_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_predicate, "COMPARISONS_MAX", 1000)
    tree = parse_filter(" or ".join(f"s like '%{one}'" for one in range(100)))
    assert tree is not None
    bound = bind_filter(tree, COLUMNS)
    with pytest.raises(MetaError, match="a filter of 100 comparisons takes too long"):
        for _ in range(11):
            bound.selects(("x", "", "", "", ""))


def test_to_rule_out_is_bounded_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it takes counts for nothing else: a filter that could be answered still is."""
    monkeypatch.setattr(partition_predicate, "COMPARISONS_MAX", 100)
    tree = parse_filter("s = 'a' and n = 1")
    assert tree is not None
    bound = bind_filter(tree, COLUMNS)
    assert [bound.rules_out(("b",)) for _ in range(6)] == [True] * 5 + [False]
    assert not any(bound.selects(VALUES) for _ in range(50))


@pytest.mark.parametrize(
    ("text", "ruled_out"),
    [
        ("s = 'a'", True), ("not s = 'x'", True), ("s = 'a' and n = 1", True),
        ("s = 'a' or n = 1", False), ("not (s = 'x' or n = 1)", True), ("n = 1", False),
        ("(s = 'a' and n = 1) or (s = 'b' and n = 2)", True),
        ("(s = 'a' and n = 1) or (s = 'x' and n = 2)", False),
        ("(d = 2024-01-01 and s = 'a') or (d = 2024-01-02 and s = 'b')", True),
    ],
)  # fmt: skip
def test_what_first_values_rule_out(text: str, *, ruled_out: bool) -> None:
    tree = parse_filter(text)
    assert tree is not None
    bound = bind_filter(tree, COLUMNS)
    assert bound.rules_out(("x",)) is ruled_out
    assert not bound.rules_out(())


def test_few_values_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_predicate, "VALUES_REMEMBERED", 2)
    keys = partition_predicate._Keys.of(COLUMNS)
    node = Comparison("n", "=", (Literal(Decimal(10)),))
    test, _ = partition_predicate._bind(node, keys, len(COLUMNS))
    assert [test(("", text)) for text in ("10", "1", "010", "x", "010", "10")] == [
        True, False, True, None, True, True,
    ]  # fmt: skip
    assert len(keys.read[1]) == 2
