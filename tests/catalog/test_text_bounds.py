"""Names whose values lie between two texts stand in the ranges that are read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hms_bridge.catalog.name_ranges import values_in
from hms_bridge.catalog.partition_filter import parse_filter
from hms_bridge.catalog.partition_predicate import bind_filter
from hms_bridge.catalog.text_bounds import LETTERS_MAX, TextBounds, names_between
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Column
from hms_bridge.model.partition_name import escape

TEXTS = st.text(alphabet="ab0-! ./%:=~zé\x01\U0010ffff", max_size=4)
WRITTEN = TEXTS.map(escape) | st.lists(
    st.sampled_from(("a", "-", "%61", "%3a", "%2D", "%", "%2", "é", "!")), max_size=4
).map("".join)
"""As names have them, of other programs, too, that write more or less of them otherwise."""


def is_read(name: str, key: str, bounds: TextBounds) -> bool:
    ranges = names_between(key, bounds)
    assert all(one.first < str(one.behind) for one in ranges)
    assert all(
        str(one.behind) < after.first for one, after in zip(ranges, ranges[1:], strict=False)
    )
    return any(one.first <= name < str(one.behind) for one in ranges)


@given(
    written=WRITTEN, least=st.none() | TEXTS, most=st.none() | TEXTS,
    rest=st.sampled_from(("", "/n=1")),
)  # fmt: skip
@example(written="a", least=None, most="a-b", rest="/n=1")
@example(written="a%3A", least="a0", most=None, rest="")
@example(written="%61", least="a", most="a", rest="")
def test_all_between_are_read(written: str, least: str | None, most: str | None, rest: str) -> None:
    name = f"k=1/ds={written}{rest}"
    value = values_in(name)[1]
    if (least is None or value >= least) and (most is None or value <= most):
        assert is_read(name, "k=1/ds=", TextBounds(least, most))
    assert is_read(f"ds={DEFAULT_PARTITION_VALUE}{rest}", "ds=", TextBounds(least, most))


def test_what_is_outside_is_not_read() -> None:
    bounds = TextBounds("2024-01-01", "2024-03-31")
    for day in ("2023-12-31", "2024-04-01", "2025-01-01", "1999", "abc"):
        assert not is_read(f"ds={day}/hour=1", "ds=", bounds)
    assert is_read("ds=2024-02-29/hour=1", "ds=", bounds)
    assert is_read("ds=no/hour=1", "ds=", replace(bounds, default_value="no"))
    assert is_read("ds=n%C3%A9/hour=1", "ds=", replace(bounds, default_value="né"))
    assert not is_read("dt=2024-02-29", "ds=", TextBounds())


def test_a_bound_of_any_length_gives_few_ranges() -> None:
    """A filter may have a million letters; a range for each would take terabytes."""
    bounds = TextBounds("a" * 1_000_000, "a" * 999_999 + "b")
    assert len(names_between("ds=", bounds)) < 3 * LETTERS_MAX
    for value in ("a" * 700, "a" * 700 + "b", "a" * LETTERS_MAX, "a" * (LETTERS_MAX - 1) + "-"):
        for least, most in ((value, None), (None, value), (value[:-1], value + "-x"), (value,) * 2):
            assert is_read(f"ds={value}", "ds=", TextBounds(least, most))
            assert is_read(f"ds={value}/n=1", "ds=", TextBounds(least, most))


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        ("s > 'a'", {0: TextBounds("a")}),
        ("'b' >= s and s >= 'a' and n = 1", {0: TextBounds("a", "b")}),
        ("s between 'a' and 'c' and s < 'b'", {0: TextBounds("a", "b")}),
        ("s > 'a' and s >= 'b'", {0: TextBounds("b")}),
        ("s > 'a' or s > 'b'", {}),
        ("not s > 'a'", {}),
        ("n > 1 and s != 'a'", {}),
    ],
)
def test_bounds_of_a_filter(text: str, bounds: dict[int, TextBounds]) -> None:
    node = parse_filter(text)
    assert node is not None
    columns = [Column(name="s", type="string"), Column(name="n", type="int")]
    assert bind_filter(node, columns).bounds == bounds
