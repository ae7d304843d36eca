"""Partitions by a condition of Hive's compiler: found, named, dropped; renamed and exchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from hms_bridge.errors import InvalidOperationError, MetaError, NoSuchObjectError
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Column, Database, TableType
from hms_bridge.model.expression import (
    Call,
    ColumnReference,
    Condition,
    ConditionToDrop,
    Constant,
    FilterText,
    Function,
    Unread,
)
from hms_bridge.model.target import TableName
from hms_bridge.service.metastore_service import MetastoreService
from tests.conformance.objects import acid_table, events_after, partition
from tests.support.faults import CrashError
from tests.support.world import World

T = TableName("db", "t")
KEYS = (Column(name="n", type="int"), Column(name="s", type="string"))
VALUES = [("1", "a"), ("2", "b"), ("10", "it's"), ("x", "odd"), ("__HIVE_DEFAULT_PARTITION__", "d")]
NAMES = ["n=1/s=a", "n=10/s=it%27s", "n=2/s=b", "n=__HIVE_DEFAULT_PARTITION__/s=d", "n=x/s=odd"]
SORTED = sorted(VALUES)
N, S = ColumnReference("n", "int"), ColumnReference("s", "string")
PLAIN = {"type": TableType.MANAGED_TABLE.value, "parameters": {}}


def compared(function: Function, column: ColumnReference, value: int | str) -> Call:
    return Call(function, (column, Constant(value, column.type)), "boolean")


LESS_THAN_9 = compared(Function.LESS, N, 9)
IS_B = compared(Function.EQUAL, S, "b")


@pytest.fixture
def metastore(tmp_path: Path) -> MetastoreService:
    made = World(tmp_path).metastore
    for name in ("t", "u"):
        made.create_table(acid_table("db", name, partition_columns=KEYS, **PLAIN))
    made.add_partitions("db", "t", [partition("db", "t", *values) for values in VALUES])
    return made


def place_of(metastore: MetastoreService, table: str, name: str) -> Path:
    (found,) = metastore.get_partitions_by_names("db", table, [name])
    assert found.storage.location is not None
    return Path(found.storage.location.removeprefix("file:"))


def found_by(
    metastore: MetastoreService, condition: Condition, **how: int
) -> tuple[set[str], bool]:
    found, is_uncertain = metastore.get_partitions_by_condition(T, condition, **how)
    return {one.values[1] for one in found}, is_uncertain


@pytest.mark.parametrize(
    ("condition", "found", "is_uncertain"),
    [
        (None, {"a", "b", "it's", "odd", "d"}, False),
        (LESS_THAN_9, {"a", "b", "odd"}, True),  # x is no number, so nobody knows
        (Call(Function.AND, (IS_B, LESS_THAN_9), "boolean"), {"b"}, False),
        (Call(Function.OR, (IS_B, LESS_THAN_9), "boolean"), {"a", "b", "odd"}, True),
        (FilterText("(n='10' AND s='it%27s') OR (n='x' AND s='odd')"), {"it's", "odd"}, False),
        (Unread("why"), {"a", "b", "it's", "odd", "d"}, True),
        (Call(Function.NOT, (), "boolean"), {"a", "b", "it's", "odd", "d"}, True),
    ],
    # Of sets they would differ from worker to worker, which then collect different tests.
    ids=["all", "less", "and", "or", "text", "unread", "not"],
)
def test_what_a_condition_selects(
    metastore: MetastoreService, condition: Condition, found: set[str], is_uncertain: bool
) -> None:
    assert found_by(metastore, condition) == (found, is_uncertain)


def test_no_more_than_asked_for(metastore: MetastoreService) -> None:
    assert found_by(metastore, None, max_parts=2) == ({"a", "it's"}, False)
    assert found_by(metastore, Unread("why"), max_parts=1) == ({"a"}, True)
    names = metastore.get_partition_names_by_condition(T, None, max_parts=3)
    assert list(names) == NAMES[:3]


def test_names_in_an_order(metastore: MetastoreService) -> None:
    def names(order: str) -> list[str]:
        found = metastore.get_partition_names_by_condition(T, None, order=order)
        return [name.partition("/")[0] for name in found]

    assert names("0:+")[:3] == ["n=1", "n=2", "n=10"]
    assert names("0:-")[2:] == ["n=10", "n=2", "n=1"]
    assert names("1:-") == ["n=x", "n=10", "n=__HIVE_DEFAULT_PARTITION__", "n=2", "n=1"]
    for order in ("0", "2:+", "0:*", "0,1:+", "a:+", ":"):
        with pytest.raises(MetaError, match="write it like"):
            names(order)


def test_names_cannot_say_perhaps(metastore: MetastoreService) -> None:
    for condition, why in ((LESS_THAN_9, "none of its column's type"), (Unread("why"), "why")):
        with pytest.raises(MetaError, match=why):
            metastore.get_partition_names_by_condition(T, condition)


def test_drops_by_conditions(metastore: MetastoreService) -> None:
    metastore.add_partitions("db", "t", [partition("db", "t", "1", "c")])
    place, sibling = place_of(metastore, "t", "n=2/s=b"), place_of(metastore, "t", "n=1/s=c")
    before = int(metastore.get_current_event_id())
    conditions = [IS_B, compared(Function.EQUAL, S, "a"), IS_B]
    dropped = metastore.drop_partitions_by_conditions(
        T, [ConditionToDrop(condition=condition) for condition in conditions]
    )
    assert {one.values[1] for one in dropped} == {"a", "b"}
    assert not place.parent.exists()  # nothing else lay there
    assert sibling.exists()
    assert list(metastore.get_partition_names("db", "t")) == [
        "n=1/s=c", "n=10/s=it%27s", "n=__HIVE_DEFAULT_PARTITION__/s=d", "n=x/s=odd",
    ]  # fmt: skip
    (event,) = events_after(metastore, before)
    assert event.type == "DROP_PARTITION"


@pytest.mark.parametrize("condition", [LESS_THAN_9, Unread("why"), FilterText("(")], ids=str)
def test_nothing_is_dropped_on_a_doubt(metastore: MetastoreService, condition: Condition) -> None:
    conditions = [ConditionToDrop(condition=one) for one in (IS_B, condition)]
    with pytest.raises(MetaError):
        metastore.drop_partitions_by_conditions(T, conditions, is_if_exists=True)
    assert list(metastore.get_partition_names("db", "t")) == NAMES


def test_a_condition_that_selects_nothing(metastore: MetastoreService) -> None:
    nothing = [ConditionToDrop(condition=one) for one in (IS_B, compared(Function.EQUAL, S, "q"))]
    with pytest.raises(NoSuchObjectError, match="Some partitions to drop are missing"):
        metastore.drop_partitions_by_conditions(T, nothing)
    assert list(metastore.get_partition_names("db", "t")) == NAMES
    dropped = metastore.drop_partitions_by_conditions(T, nothing, is_if_exists=True)
    assert [one.values for one in dropped] == [("2", "b")]


def test_an_archive_is_not_taken_apart(metastore: MetastoreService) -> None:
    (old,) = metastore.get_partitions_by_names("db", "t", ["n=2/s=b"])
    archived = {"is_archived": "true", "archiving_level": "1"}
    metastore.alter_partitions("db", "t", [replace(old, parameters=archived)])
    with pytest.raises(MetaError, match="subset of partitions in an archive"):
        metastore.drop_partitions_by_conditions(
            T, [ConditionToDrop(condition=IS_B, archive_level=2)]
        )
    assert metastore.drop_partitions_by_conditions(
        T, [ConditionToDrop(condition=IS_B, archive_level=1)]
    )


def exchange(metastore: MetastoreService, **values: str) -> list[str]:
    moved = metastore.exchange_partitions(values, TableName("db", "t"), TableName("db", "u"))
    return [one.storage.location or "" for one in moved]


def test_exchanged_partitions_take_their_files_along(metastore: MetastoreService) -> None:
    metastore.add_partitions("db", "t", [partition("db", "t", "2", "c")])
    old = place_of(metastore, "t", "n=2/s=b")
    (old / "data").write_bytes(b"rows")
    before = int(metastore.get_current_event_id())
    places = exchange(metastore, n="2")
    assert [place.rpartition("/u/")[2] for place in places] == ["n=2/s=b", "n=2/s=c"]
    assert metastore.get_partition_names("db", "u") == ("n=2/s=b", "n=2/s=c")
    assert [name for name in metastore.get_partition_names("db", "t") if "n=2" in name] == []
    assert (place_of(metastore, "u", "n=2/s=b") / "data").read_bytes() == b"rows"
    assert not old.exists()
    events = events_after(metastore, before)
    assert [(event.type, event.table_name) for event in events] == [
        ("ADD_PARTITION", "u"), ("DROP_PARTITION", "t"), ("DROP_PARTITION", "t"),
    ]  # fmt: skip


def test_what_cannot_be_exchanged(metastore: MetastoreService) -> None:
    metastore.add_partitions("db", "u", [partition("db", "u", "1", "a")])
    for values, why in (
        ({"n": "7"}, "No partition is found"),
        ({"bogus": "1"}, "Invalid partition key"),
        ({}, "Invalid partition key"),
        ({"s": "b"}, "a value for n is missing"),
        ({"n": "1"}, "n=1/s=a already exists"),
    ):
        with pytest.raises(MetaError, match=why):
            exchange(metastore, **values)
    other = (Column(name="n", type="bigint"), Column(name="s", type="string"))
    metastore.create_table(acid_table("db", "v", partition_columns=other, **PLAIN))
    metastore.create_table(acid_table("db", "acid", partition_columns=KEYS))
    for target, why in (("v", "different schemas"), ("acid", "transactional"), ("no", "not found")):
        with pytest.raises(MetaError, match=why):
            metastore.exchange_partitions({"n": "2"}, TableName("db", "t"), TableName("db", target))
    assert list(metastore.get_partition_names("db", "t")) == NAMES


def test_a_directory_in_the_way_leaves_everything(metastore: MetastoreService) -> None:
    metastore.add_partitions("db", "t", [partition("db", "t", "2", "c")])
    (table_place := place_of(metastore, "t", "n=2/s=b").parents[2] / "u").mkdir(exist_ok=True)
    (table_place / "n=2" / "s=c").mkdir(parents=True)
    (place_of(metastore, "t", "n=2/s=b") / "data").write_bytes(b"rows")
    with pytest.raises(InvalidOperationError, match="already exists"):
        exchange(metastore, n="2")
    assert (place_of(metastore, "t", "n=2/s=b") / "data").read_bytes() == b"rows"
    assert metastore.get_partition_names("db", "u") == ()


def test_a_partition_outside_its_table_is_not_moved(
    metastore: MetastoreService, tmp_path: Path
) -> None:
    (old,) = metastore.get_partitions_by_names("db", "t", ["n=2/s=b"])
    elsewhere = replace(old.storage, location=f"file:{tmp_path}/elsewhere")
    metastore.alter_partitions("db", "t", [replace(old, storage=elsewhere)])
    with pytest.raises(MetaError, match="outside its table"):
        exchange(metastore, n="2")


def test_a_failed_exchange_puts_directories_back(
    metastore: MetastoreService, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = place_of(metastore, "t", "n=2/s=b")
    (old / "data").write_bytes(b"rows")

    def fail(*_: object) -> None:
        raise CrashError("exchange")

    monkeypatch.setattr(metastore, "_exchange", fail)
    with pytest.raises(CrashError):
        exchange(metastore, n="2")
    assert (old / "data").read_bytes() == b"rows"
    assert list(metastore.get_partition_names("db", "t")) == NAMES


def require_stopped(
    metastore: MetastoreService, act: Callable[[], object], *, before: str = "_move"
) -> None:
    """What another one does before directories are moved, or before it is written down that they
    are, stops the exchange; all files stay."""
    step = getattr(metastore._file_work, before)
    old = place_of(metastore, "t", "n=2/s=b")
    (old / "data").write_bytes(b"rows")
    with pytest.MonkeyPatch.context() as patched:

        def meanwhile(*arguments: Any) -> None:
            patched.undo()
            act()
            step(*arguments)

        patched.setattr(metastore._file_work, before, meanwhile)
        with pytest.raises(MetaError, match="were changed by someone else while"):
            exchange(metastore, n="2")
    assert (old / "data").read_bytes() == b"rows"
    assert metastore.get_partition_names("db", "u") == ()


def test_a_partition_that_comes_while_directories_are_moved_stops_the_exchange(
    metastore: MetastoreService,
) -> None:
    """Its row would say that its files lie in the other table, where nobody has moved them."""
    added = partition("db", "t", "2", "c")
    require_stopped(metastore, lambda: metastore.add_partitions("db", "t", [added]))
    assert len(metastore.get_partition_names("db", "t")) == len(NAMES) + 1


def test_a_table_that_gets_another_place_while_directories_are_moved_stops_the_exchange(
    metastore: MetastoreService, tmp_path: Path
) -> None:
    """The rows would say that files lie in the new place; they were moved to the old one."""
    table = metastore.get_table("db", "u")
    elsewhere = tmp_path / "warehouse" / "elsewhere"
    altered = replace(table, storage=replace(table.storage, location=f"file:{elsewhere}"))
    require_stopped(metastore, lambda: metastore.alter_table("db", "u", altered))
    exchange(metastore, n="2")
    assert (elsewhere / "n=2" / "s=b" / "data").read_bytes() == b"rows"


def test_a_table_that_is_made_again_while_directories_are_moved_stops_the_exchange(
    metastore: MetastoreService,
) -> None:
    """Who drops the table deletes what lies in its directory, where they were moved to."""

    def again() -> None:
        metastore.drop_table("db", "u", is_data_deleted=False)
        metastore.create_table(acid_table("db", "u", partition_columns=KEYS, **PLAIN))

    require_stopped(metastore, again, before="settle")


def test_replication_sources_keep_their_files(metastore: MetastoreService, tmp_path: Path) -> None:
    metastore.create_database(Database(name="two"))
    metastore.create_table(acid_table("two", "u", partition_columns=KEYS, **PLAIN))
    source = replace(metastore.get_database("db"), parameters={"repl.source.for": "p"})
    metastore.alter_database("db", source)
    with pytest.raises(MetaError, match="replication source"):
        metastore.exchange_partitions({"n": "2"}, TableName("db", "t"), TableName("two", "u"))
    (place_of(metastore, "t", "n=2/s=b") / "data").write_bytes(b"rows")
    exchange(metastore, n="2")
    assert {path.read_bytes() for path in (tmp_path / "cmroot").iterdir()} == {b"rows"}


@pytest.mark.parametrize(("text", "count"), [("", 5), ("n < 9", 2), ("s = 'b' or s = 'd'", 2)])
def test_partitions_are_counted_and_not_loaded(
    metastore: MetastoreService, text: str, count: int
) -> None:
    statements: list[str] = []

    @event.listens_for(metastore._transactions.database.engine, "before_cursor_execute")
    def remember(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        statements.append(statement)

    assert metastore.count_partitions_by_filter(T, text) == count
    sent = [statement.replace("`", '"') for statement in statements]
    assert any('"PARTITIONS"' in statement for statement in sent)
    assert not any('"PARTITION_PARAMS"' in statement for statement in sent)


def test_values_of_keys_are_those_of_the_names(metastore: MetastoreService) -> None:
    metastore.add_partitions("db", "t", [partition("db", "t", "1", "b")])
    by_n = ["1", "1", "10", "2", DEFAULT_PARTITION_VALUE, "x"]
    by_s = ["a", "b", "it%27s", "b", "d", "odd"]

    def values(*keys: str, **how: Any) -> list[tuple[str, ...]]:
        return list(metastore.get_partition_values(TableName("DB", "T"), keys, **how))

    assert values("n") == [("1",), ("10",), ("2",), (DEFAULT_PARTITION_VALUE,), ("x",)]
    assert values("s", is_distinct=False) == [(value,) for value in by_s]
    assert values("s") == [("a",), ("b",), ("it%27s",), ("d",), ("odd",)]
    assert values("S", "n") == list(zip(by_s, by_n, strict=True))
    assert values("n", "n", max_parts=1) == [("1", "1")]
    assert values("n", max_parts=2) == [("1",), ("10",)]  # of rows, not of partitions
    assert values("n", is_distinct=False, max_parts=2) == [("1",), ("1",)]
    for how in ({"max_parts": 0}, {"is_ascending": False}):
        assert values("n", **how) == values("n")


def test_values_with_a_filter_are_those_of_all_columns(metastore: MetastoreService) -> None:
    def values(text: str, **how: Any) -> list[tuple[str, ...]]:
        return list(metastore.get_partition_values(T, ["n"], filter_text=text, **how))

    assert values("s like '%'") == SORTED
    assert values("s like '%'", is_ascending=False, max_parts=2) == SORTED[:2:-1]
    assert values("s like '%'", max_parts=2) == SORTED[:2]
    assert values("n < 11", is_distinct=False) == SORTED[:3]
    assert values("n = 7") == values("n = 1", max_parts=0) == []
    assert metastore.get_partition_values(T, ["zz"], filter_text="n = 1") == (("1", "a"),)


def test_values_that_there_are_not(metastore: MetastoreService) -> None:
    for table, keys, text, why in (
        ("t", ["zz", "n"], "", "zz: no partition column of db.t; .* columns: n, s"),
        ("u", ["zz"], "", "zz: no partition column of db.u"),
        ("t", ["n", "s", "n"], "", "3 keys of the 2 partition columns of db.t"),
        ("t", [], "", "no key of partitions is asked for"),
        ("t", [], "n = 1", "no key of partitions is asked for"),
        ("t", ["n"], "n =", "filter"),
        ("t", ["n"], "zz = 1", "zz"),
    ):
        with pytest.raises(MetaError, match=why):
            metastore.get_partition_values(TableName("db", table), keys, filter_text=text)
    assert metastore.get_partition_values(TableName("db", "u"), ["n"]) == ()


@pytest.mark.parametrize(
    ("keys", "text", "error", "why"),
    [
        ([], "n =", MetaError, "no key of partitions is asked for"),
        (["n"], "n =", MetaError, "filter"),
        (["n"], "zz = 1", NoSuchObjectError, "none"),
        (["zz"], "", NoSuchObjectError, "none"),
        (["n"], "n = 1", NoSuchObjectError, "none"),
    ],
)
def test_what_of_several_things_is_wrong_with_values_is_told(
    metastore: MetastoreService, keys: list[str], text: str, error: type[Exception], why: str
) -> None:
    """First what needs no table: that a key is asked for, and the filter's syntax."""
    with pytest.raises(error, match=why) as raised:
        metastore.get_partition_values(TableName("db", "none"), keys, filter_text=text)
    assert type(raised.value) is error
