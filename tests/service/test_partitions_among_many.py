"""That few partitions are found among many as soon as among few, and the same ones."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hms_bridge.backend.work import Work
from hms_bridge.catalog.found_partitions import FoundPartitions
from hms_bridge.catalog.partition_filter import parse_filter
from hms_bridge.catalog.partition_predicate import bind_filter
from hms_bridge.catalog.partitions import find_by_filter
from hms_bridge.model.catalog import Column
from hms_bridge.service.partition_queries import require_named
from tests.conformance.objects import acid_table, partition
from tests.support.databases import SERVER_URL
from tests.support.sqlite_steps import steps
from tests.support.world import World

KEYS = (Column(name="day", type="string"), Column(name="n", type="string"))
FILTERS = (
    'day = "d7" and n = "7"',
    'day in ("d7", "d8", "d9") and n in ("7", "8")',
    'n = "7" and day = "d7" and day != "d8"',
    'day = "d7"',
    'day in ("d7", "d8", "none") and n > "1"',
    '(day = "d7" and n = "7") or (day = "d9" and n = "9")',
)
DAYS = ("a", "A", "a b", "a/", "a/b", "a=", "a0", "a%", "é", "ab", "a-", "a_", "a.", "0", "1", "10")
"""Some begin like others, and some are written otherwise in names."""
NUMBERS = ("0", "00", "1", "a", "/")


@pytest.fixture
def world(fast_folder: Path) -> Iterator[World]:
    world = World(fast_folder)
    world.metastore.create_table(
        acid_table("db", "t", partition_columns=KEYS, parameters={}, type="EXTERNAL_TABLE")
    )
    yield world
    world.close()


@pytest.fixture
def filled(world: World) -> tuple[World, list[tuple[str, str]]]:
    there = [(day, number) for day in DAYS for number in NUMBERS if (day, number) != ("a", "1")]
    world.metastore.add_partitions("db", "t", [partition("db", "t", *values) for values in there])
    return world, there


def add(world: World, numbers: range) -> None:
    added = [partition("db", "t", f"d{number}", str(number)) for number in numbers]
    world.metastore.add_partitions("db", "t", added)


def found(world: World, text: str) -> list[tuple[str, ...]]:
    listed = world.metastore.get_partitions_by_filter("db", "t", text)
    return [tuple(partition.values) for partition in listed]


def test_a_value_of_each_key_finds_what_a_look_at_all_finds(world: World) -> None:
    add(world, range(20))
    for text in FILTERS:
        # Nothing is asked of the values of either key alone.
        of_all = f'({text}) or (day = "none" and n > "a") or (day > "z" and n = "5")'
        assert found(world, text) == found(world, of_all) != []


@pytest.mark.parametrize("values", [("d/7=8", "%41 é'"), ("__HIVE_DEFAULT_PARTITION__", "x")])
def test_values_that_names_write_otherwise(world: World, values: tuple[str, str]) -> None:
    world.metastore.add_partitions("db", "t", [partition("db", "t", *values)])
    assert found(world, f'day = "{values[0]}" and n = "{values[1]}"') == [values]
    assert found(world, f'n = "{values[1]}" and day like ".*"') == [values]
    assert found(world, f'day = "{values[0]}"') == [values]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_beginning_of_a_name_finds_what_a_look_at_all_finds(
    filled: tuple[World, list[tuple[str, str]]], data: st.DataObject
) -> None:
    world, there = filled
    chosen = data.draw(st.lists(st.sampled_from(DAYS), min_size=1, max_size=3))
    text = "day in (" + ", ".join(f'"{day}"' for day in chosen) + ")"
    number = data.draw(st.none() | st.sampled_from(NUMBERS))
    text += "" if number is None else f' and n >= "{number}"'
    wanted = {(d, n) for d, n in there if d in chosen and (number is None or n >= number)}
    assert set(found(world, text)) == wanted
    assert found(world, text) == found(world, f'({text}) or (day > "~" and n = "none")')


@pytest.mark.skipif(SERVER_URL is not None, reason="counts the steps that SQLite takes")
@pytest.mark.parametrize("text", FILTERS[:5])
def test_what_is_beside_it_costs_nothing(world: World, text: str) -> None:
    def find(work: Work) -> FoundPartitions:
        stored = require_named(work.connection, "db", "t", "hive")
        node = parse_filter(text)
        assert node is not None
        return find_by_filter(work.connection, stored, bind_filter(node, KEYS))

    taken = []
    for numbers in (range(20), range(20, 1000)):
        add(world, numbers)
        taken.append(steps(world, find))
    assert taken[1] < 1.5 * taken[0]
