import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_bridge.errors import MetaError
from hms_bridge.model.property_text import format_properties, parse_properties


def test_as_hive_writes_it() -> None:
    assert format_properties({"k": "v"}) == "1:1:k1:v"
    assert format_properties({}) == "0:"
    assert format_properties({"a": ""}) == "1:1:a0:"
    # Lengths count Java's characters, of which this one takes two.
    assert format_properties({"😀": "é"}) == "1:2:😀1:é"


@pytest.mark.parametrize("text", [None, "", "0:"])
def test_none(text: str | None) -> None:
    assert parse_properties(text) == {}


@given(st.dictionaries(st.text(), st.text(), max_size=5))
def test_round_trip(properties: dict[str, str]) -> None:
    assert parse_properties(format_properties(properties)) == properties


@pytest.mark.parametrize(
    "text", ["x", "1:", "1:1:k", "1:5:ab", "2:1:a1:b", "1:-1:a1:b", "1:1", "1:1:😀0:"]
)
def test_malformed(text: str) -> None:
    with pytest.raises(MetaError, match="malformed"):
        parse_properties(text)
