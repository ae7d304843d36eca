"""Conditions over tables are parsed, and never take long."""

import time
from dataclasses import replace

import pytest

from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Table
from hms_bridge.server.table_filter import LENGTH_MAX, parse_table_filter

TABLE = Table(
    name="orders", database_name="db", owner="bob", last_access_time=5,
    parameters={"presto_view": "true", "comment": 'say "hi"', "size": "12"},
)  # fmt: skip
OWNER = "hive_filter_field_owner__"
ACCESS = "hive_filter_field_last_access__"
PARAM = "hive_filter_field_params__"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'{OWNER} = "bob"', True),
        (f"{OWNER} = 'bob'", True),
        (f'{OWNER} != "bob"', False),
        (f'{OWNER} <> "eve"', True),
        (f'{OWNER} like "b.*"', True),
        (f'{OWNER} LIKE ".*o.*"', True),
        (f'{OWNER} like "b%b"', True),
        (f'{OWNER} like "b.*b.*b"', False),
        (f'{OWNER} like "bob"', True),
        # What Hive 4.2's SHOW TABLES sends.
        ('hive_filter_field_tableName__ like "(?i).*"', True),
        ('hive_filter_field_tableName__ like "(?i)ORD.*"', True),
        ('hive_filter_field_tableName__ like "ORD.*"', False),
        ('hive_filter_field_tableName__ like "x.*|.*ders"', True),
        ('hive_filter_field_tableName__ like "order."', True),
        ('hive_filter_field_tableName__ like "order"', False),
        ('hive_filter_field_tableName__ like "order[s]"', False),
        (f'{PARAM}comment like "say .hi."', True),
        (f'{OWNER} like "bo"', False),
        (f"{ACCESS} = 5", True),
        (f"{ACCESS} > 5", False),
        (f"{ACCESS} >= 5 and {ACCESS} <= 5", True),
        (f"{ACCESS} < 5 or {ACCESS}=5", True),
        (f'{ACCESS} = "5"', False),
        (f'{PARAM}presto_view = "true"', True),
        (f'{PARAM}missing <> "true"', False),
        (f'{PARAM}comment = "say \\"hi\\""', True),
        (f"{PARAM}size = 12", True),
        (f'({OWNER} = "eve" or {ACCESS} = 5) and {PARAM}presto_view = "true"', True),
        (f'{OWNER} = "eve" or {ACCESS} = 5 and {OWNER} = "eve"', False),
        ('hive_filter_field_tableName__ = "orders"', True),
        ('hive_filter_field_tableType__ = "MANAGED_TABLE"', True),
    ],
)
def test_conditions(text: str, expected: bool) -> None:
    assert parse_table_filter(text)(TABLE) is expected


@pytest.mark.parametrize(
    "text",
    ["bogus = 1", OWNER, f"{OWNER} =", f'{OWNER} ~ "x"', f'{OWNER} = "x" and', '"x" = "y"',
     f'({OWNER} = "x"', f'{OWNER} = "x")', f'{OWNER} = "x', f'{OWNER} = x', f'{OWNER} = "x" "y"',
     "(" * 100 + f'{OWNER} = "x"' + ")" * 100, "((("],
)  # fmt: skip
def test_texts_that_are_no_conditions(text: str) -> None:
    with pytest.raises(MetaError, match="cannot be parsed"):
        parse_table_filter(text)


def test_a_pattern_cannot_take_for_ever() -> None:
    long = Table(name="t", database_name="db", owner="a" * 100_000)
    condition = parse_table_filter(f'{OWNER} like "{"(a+)+.*" * 50}b"')
    assert condition(long) is False
    many = parse_table_filter(f'{OWNER} like "{"a.*" * 500}b"')
    assert many(long) is False


def test_a_filter_has_a_greatest_length() -> None:
    key = 'hive_filter_field_owner__ = "bob"'
    long = f" or {key}" * (LENGTH_MAX // 40)
    assert parse_table_filter(f"{key}{long}")(TABLE) in (True, False)
    with pytest.raises(MetaError, match="at most 100000 are read"):
        parse_table_filter(key + " " * LENGTH_MAX)


def test_wildcards_never_take_for_ever() -> None:
    started = time.monotonic()
    text = "(?i)" + ".*A" * 200 + "B"
    table = replace(TABLE, owner="a" * 3000)
    assert not parse_table_filter(f'hive_filter_field_owner__ like "{text}"')(table)
    assert time.monotonic() - started < 5
