"""Partition names escape as Hive does, and come back."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Column
from hms_bridge.model.partition_name import escape, parse_partition_name, partition_name, unescape

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


@given(TEXT, TEXT)
def test_names_come_back(first: str, second: str) -> None:
    columns = (Column(name="a", type="string"), Column(name="b", type="string"))
    name = partition_name(columns, (first, second))
    assert parse_partition_name(name) == (("a", first), ("b", second))


@pytest.mark.parametrize(
    ("value", "escaped"),
    [("a/b", "a%2Fb"), ("50%", "50%25"), ("a b", "a b"), ("é", "é"),
     ("", "__HIVE_DEFAULT_PARTITION__"), ("x=y", "x%3Dy"), ("q?*", "q%3F%2A"), ("#", "%23"),
     ("a:b", "a%3Ab"), ("\x00", "%00")],
)  # fmt: skip
def test_what_hive_escapes(value: str, escaped: str) -> None:
    assert escape(value) == escaped
    if value:
        assert unescape(escaped) == value


def test_wrong_numbers_and_shapes_are_refused() -> None:
    with pytest.raises(MetaError, match="1 partition values given for the 0"):
        partition_name((), ("x",))


@pytest.mark.parametrize("name", ["nonsense", "=x", "a=", "a=/b=1", "a=1/b=", "a=1//b=2"])
def test_a_name_has_key_and_value_at_each_level(name: str) -> None:
    """Hive looks for the key of ``a=`` and finds none; no value would be the default partition."""
    with pytest.raises(MetaError, match="is no partition name"):
        parse_partition_name(name)
