"""A condition over many partitions is answered from where it can select some, and selects what a
look at all of them selects."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from sqlalchemy import event, update

from hms_bridge.backend.schema.catalog_tables import PARTITIONS
from hms_bridge.backend.work import Work
from hms_bridge.catalog.name_ranges import TABLE, Stretch, WalkLimits, values_in
from hms_bridge.catalog.name_walk import NameWalk
from hms_bridge.catalog.partition_expression import BoundExpression, bind_expression
from hms_bridge.catalog.partition_filter import (
    Comparison,
    Junction,
    Literal,
    Node,
    Not,
    parse_filter,
)
from hms_bridge.catalog.partition_matches import Matches, matches
from hms_bridge.catalog.partition_predicate import BoundFilter, bind_filter
from hms_bridge.catalog.partition_values import UnknownTypeError
from hms_bridge.catalog.partitions import find_by_values, insert_partitions, partition_names
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import DEFAULT_PARTITION_VALUE, Column
from hms_bridge.model.expression import Call, ColumnReference, Constant, Expression, Function
from hms_bridge.service.partition_queries import require_named
from tests.conformance.objects import acid_table, partition
from tests.support.databases import ON_A_SERVER, ON_POSTGRESQL, SERVER_URL
from tests.support.plans import hearing
from tests.support.sqlite_steps import steps
from tests.support.world import World

TEXTS = {
    "string": (
        "a", "A", "a b", "a!", "a-b", "a-", "a/", "a/b", "a=", "a0", "a%", "a.", "a+", "a\x01", "é",
        "ab", "", "b", " a", "%61",
    ),
    "int": ("1", "01", "+1", "-1", "10", "2", "1.5", "x", " 1", "99999999999", "1/2"),
    "date": (
        "2024-01-01", "2024-1-1", "20240101", "-2024-01-01", "x", "2024-01-02 00:00:00",
        "2024-02-30", "2024-01-02",
    ),
    "decimal(4,1)": ("1", "1.0", "1.50", "-1", "1e1", "x", "100000", "0x1p3"),
}  # fmt: skip
CONSTANTS: dict[str, tuple[object, ...]] = {
    "string": ("a", "a-b", "a/", "a0", "b", "é", ""),
    "int": (1, 2, 10, -1),
    "date": ((2024, 1, 1), (2024, 1, 2), (2023, 12, 31)),
    "decimal(4,1)": (Decimal(1), Decimal("1.5"), Decimal(10)),
}
COMPARED = ("=", "!=", "<", "<=", ">", ">=", "in", "between", "like", "is null")
COLUMNS = st.lists(st.sampled_from(sorted(TEXTS)), min_size=1, max_size=3).map(
    lambda kinds: tuple(
        Column(name=name, type=kind) for name, kind in zip("kmn", kinds, strict=False)
    )
)
LIMITS = st.builds(
    WalkLimits,
    names=st.integers(1, 8),
    names_of_each=st.integers(1, 3),
    beginnings=st.integers(1, 60),
    parents=st.integers(1, 20),
    ranges=st.integers(1, 5),
)
EAGER = WalkLimits(names=2, names_of_each=1)
NUMBERS = itertools.count()
Bound = BoundFilter | BoundExpression


@pytest.fixture
def world(fast_folder: Path) -> Iterator[World]:
    world = World(fast_folder)
    yield world
    world.close()


def new_table(
    world: World, columns: Sequence[Column], there: Sequence[tuple[str, ...]]
) -> StoredTable:
    name = f"t{next(NUMBERS)}"
    world.metastore.create_table(
        acid_table("db", name, partition_columns=columns, parameters={}, type="EXTERNAL_TABLE")
    )

    stored = world.do(lambda work: require_named(work.connection, "db", name, "hive"))
    insert_into(world, stored, there)
    return stored


def insert_into(world: World, stored: StoredTable, there: Sequence[tuple[str, ...]]) -> None:
    made = [partition("db", stored.table.name, *values) for values in there]
    world.do(lambda work: insert_partitions(work.connection, stored, made))


def rows_of(columns: Sequence[Column]) -> st.SearchStrategy[list[tuple[str, ...]]]:
    values = [st.sampled_from((*TEXTS[column.type], DEFAULT_PARTITION_VALUE)) for column in columns]
    # An empty value is the default partition in a name.
    unique = lambda row: tuple(value or DEFAULT_PARTITION_VALUE for value in row)  # noqa: E731
    return st.lists(st.tuples(*values), max_size=60, unique_by=unique)


def literal_of(column: Column, value: object) -> Literal:
    if column.type == "date":
        return Literal("{:04}-{:02}-{:02}".format(*value))  # type: ignore[misc]
    return Literal(Decimal(value) if isinstance(value, int) else value)  # type: ignore[arg-type]


def comparisons(column: Column) -> st.SearchStrategy[Node]:
    constants = st.sampled_from(CONSTANTS[column.type]).map(lambda v: literal_of(column, v))

    def of(operator: str) -> st.SearchStrategy[Node]:
        if operator == "like":
            patterns = st.sampled_from(("a%", "%1%", "_", "2024%")).map(Literal)
            return patterns.map(lambda p: Comparison(column.name, "like", (p,)))
        count = {"in": (1, 3), "between": (2, 2), "is null": (0, 0)}.get(operator, (1, 1))
        given = st.lists(constants, min_size=count[0], max_size=count[1])
        return given.map(lambda these: Comparison(column.name, operator, tuple(these)))

    return st.sampled_from(COMPARED).flatmap(of)


def filters(columns: Sequence[Column]) -> st.SearchStrategy[Node]:
    leaves = st.sampled_from(columns).flatmap(comparisons)

    def above(below: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
        several = st.lists(below, min_size=2, max_size=4).map(tuple)
        return below.map(Not) | st.builds(Junction, st.booleans(), several)

    return st.recursive(leaves, above, max_leaves=8)


def calls_of(column: Column) -> st.SearchStrategy[Expression]:
    reference = ColumnReference(column.name, column.type)
    constants = st.sampled_from(CONSTANTS[column.type]).map(
        lambda value: Constant(value, column.type)  # type: ignore[arg-type]
    )
    plain = st.sampled_from(
        (Function.EQUAL, Function.NOT_EQUAL, Function.LESS, Function.GREATER_OR_EQUAL)
    )
    nulls = st.sampled_from((Function.IS_NULL, Function.IS_NOT_NULL))
    negation = st.booleans().map(lambda value: Constant(value, "boolean"))
    return st.one_of(
        st.builds(lambda f, c: Call(f, (reference, c), "boolean"), plain, constants),
        st.builds(lambda f: Call(f, (reference,), "boolean"), nulls),
        st.lists(constants, min_size=1, max_size=3).map(
            lambda these: Call(Function.IN, (reference, *these), "boolean")
        ),
        st.builds(
            lambda n, a, b: Call(Function.BETWEEN, (n, reference, a, b), "boolean"),
            negation, constants, constants,
        ),
    )  # fmt: skip


def expressions(columns: Sequence[Column]) -> st.SearchStrategy[Expression]:
    leaves = st.sampled_from(columns).flatmap(calls_of)
    single = st.sampled_from((Function.NOT, Function.IS_TRUE, Function.IS_NOT_TRUE))
    junctions = st.sampled_from((Function.AND, Function.OR))

    def above(below: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
        several = st.lists(below, min_size=2, max_size=4)
        return st.builds(lambda f, o: Call(f, (o,), "boolean"), single, below) | st.builds(
            lambda f, o: Call(f, tuple(o), "boolean"), junctions, several
        )

    return st.recursive(leaves, above, max_leaves=8)


def verdict_of(bound: Bound) -> Callable[[Sequence[str]], bool | None]:
    return bound.selects if isinstance(bound, BoundFilter) else bound.verdict


def found(
    world: World,
    stored: StoredTable,
    bound: Bound,
    limits: WalkLimits,
    lock: RowLock = RowLock.NONE,
) -> Matches:
    def work(given: Work) -> Matches:
        return matches(given.connection, stored, verdict_of(bound), bound, lock, limits)

    return world.do(work)


def of_all(world: World, stored: StoredTable, bound: Bound) -> tuple[list[str], bool]:
    """What a look at every name selects."""
    names = world.do(lambda work: partition_names(work.connection, stored))
    verdicts = {name: verdict_of(bound)(values_in(name)) for name in names}
    selected = sorted(name for name, verdict in verdicts.items() if verdict is not False)
    return selected, None in verdicts.values()


def walked_by_one_statement(
    world: World, stored: StoredTable, bound: Bound, limits: WalkLimits
) -> Sequence[str] | None:
    """As where a transaction sees what others commit meanwhile, on any database."""

    def work(given: Work) -> Sequence[str] | None:
        walk = NameWalk(
            connection=given.connection,
            table_id=stored.id,
            whole=Stretch(TABLE, "", 0),
            keys=len(stored.table.partition_columns),
            narrowing=bound,
            limits=limits,
            is_of_one_moment=False,
        )
        read = walk.find()
        return None if read is None else [name for name, _ in read]

    return world.do(work)


def same(world: World, stored: StoredTable, bind: Callable[[], Bound], limits: WalkLimits) -> None:
    selected, is_uncertain = of_all(world, stored, bind())
    for lock in (RowLock.NONE, RowLock.EXCLUSIVE):
        walked = found(world, stored, bind(), limits, lock)
        assert [name for name, _ in walked.selected] == selected
        assert walked.is_uncertain == is_uncertain
    read = walked_by_one_statement(world, stored, bind(), limits)
    if read is not None:
        assert len(set(read)) == len(read)
        assert set(selected) <= set(read)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_filter_selects_what_a_look_at_all_selects(world: World, data: st.DataObject) -> None:
    columns = data.draw(COLUMNS)
    stored = new_table(world, columns, data.draw(rows_of(columns)))
    node, limits = data.draw(filters(columns)), data.draw(LIMITS)
    try:
        bind_filter(node, columns)
    except MetaError:
        assume(False)
    same(world, stored, lambda: bind_filter(node, columns), limits)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_an_expression_selects_what_a_look_at_all_selects(
    world: World, data: st.DataObject
) -> None:
    columns = data.draw(COLUMNS)
    stored = new_table(world, columns, data.draw(rows_of(columns)))
    expression, limits = data.draw(expressions(columns)), data.draw(LIMITS)
    try:
        bind_expression(expression, columns)
    except UnknownTypeError:
        assume(False)
    same(world, stored, lambda: bind_expression(expression, columns), limits)


@pytest.mark.parametrize("kind", ["string", "int"])
def test_names_that_begin_like_others(world: World, kind: str) -> None:
    """What stands between a value and its slash, in the order of bytes: "-", but not "0"."""
    columns = (Column(name="k", type=kind), Column(name="n", type="int"))
    there = [(text, number) for text in TEXTS[kind] if text for number in ("1", "2", "10")]
    stored = new_table(world, columns, there)
    for value in CONSTANTS[kind]:
        literal = literal_of(columns[0], value)
        for node in (
            Not(Comparison("k", "!=", (literal,))),
            Not(Comparison("k", "=", (literal,))),
            Comparison("k", "<=", (literal,)),
            Comparison("k", ">", (literal,)),
        ):
            same(world, stored, partial(bind_filter, node, columns), EAGER)


ON_MARIADB = pytest.mark.skipif(
    not (SERVER_URL or "").startswith(("mysql", "mariadb")), reason="of MariaDB"
)
YEARS = (Column(name="y", type="int"), Column(name="m", type="int"), Column(name="d", type="int"))


def filtered(condition: str, columns: Sequence[Column] = YEARS) -> BoundFilter:
    node = parse_filter(condition)
    assert node is not None
    return bind_filter(node, columns)


@pytest.mark.parametrize("odd", ["y=1", "y=100", "y=3!", "y=9"])
def test_names_with_fewer_values_end_the_walk(world: World, odd: str) -> None:
    """None may be passed over with those that begin like it, nor between them."""
    stored = new_table(world, YEARS[:2], [(str(year), "1") for year in range(20)])
    is_meant = (stored.id == PARTITIONS.c.TBL_ID, PARTITIONS.c.PART_NAME == "y=11/m=1")
    world.execute(update(PARTITIONS).where(*is_meant).values(PART_NAME=odd))
    chosen = BoundExpression(
        lambda values: len(values) == 1,
        places=frozenset({0}),
        rules_out=filtered("y = 77", YEARS[:2]).rules_out,
    )
    walked = found(world, stored, chosen, EAGER)
    assert [name for name, _ in walked.selected] == [odd]


@pytest.mark.parametrize(
    "text",
    ["y = 2001 and m = 3", "m = 3", "y >= 2004", "y = 2001 and m != 3", "not (y > 2000 or m < 5)"],
)
@pytest.mark.skipif(SERVER_URL is not None, reason="counts the steps that SQLite takes")
def test_what_is_beside_it_is_not_read(world: World, text: str) -> None:
    taken = []
    for others in (10, 100):
        bound = filtered(text)
        there = [
            (str(year), str(month), str(day))
            for year, month in itertools.product(range(2000, 2006), range(1, 7))
            for day in range(others if bound.rules_out((str(year), str(month))) else 10)
        ]
        stored = new_table(world, YEARS, there)
        look = partial(_look, stored=stored, bound=bound, limits=WalkLimits(names=50))
        taken.append(steps(world, look))
    assert taken[1] < 1.5 * taken[0]


def _look(
    work: Work, stored: StoredTable, bound: Bound, limits: WalkLimits | None = None
) -> Matches:
    given = limits or WalkLimits()
    return matches(work.connection, stored, verdict_of(bound), bound, RowLock.NONE, given)


@pytest.mark.skipif(SERVER_URL is not None, reason="counts the steps that SQLite takes")
@pytest.mark.parametrize("text", ["y < 2000", "y = 1 and m = 1", "y >= 0 and m >= 0"])
def test_where_nothing_is_shared_it_takes_no_longer(world: World, text: str) -> None:
    """Also where the first names share values and the others do not: so many are looked at."""
    limits = WalkLimits(names=50, beginnings=20)
    bound = filtered(text)
    plain = replace(bound, places=frozenset())
    first = [("0", "0", str(day)) for day in range(60)]
    alone = [(str(year), "1", "1") for year in range(1, 2000)]
    for there in (alone, first + alone, [*first, *(("1", year, day) for year, _, day in alone)]):
        stored = new_table(world, YEARS, there)
        with hearing(world.engine.engine, "", heard := []):
            walked = steps(world, partial(_look, stored=stored, bound=bound, limits=limits))
        assert walked < 1.3 * steps(world, partial(_look, stored=stored, bound=plain))
        assert there is not alone or not any("RECURSIVE" in sent.sql for sent in heard)


def test_small_tables_are_read_at_once(world: World) -> None:
    stored = new_table(world, YEARS, [(str(y), str(m), "1") for y in range(30) for m in range(30)])
    for text in ("y = 1 and m = 3", "m = 3"):
        with hearing(world.engine.engine, "", heard := []):
            found(world, stored, filtered(text), WalkLimits())
        assert len(heard) == 1


@pytest.mark.parametrize(("prefix", "count"), [(("", "3"), 90), (("2", "3"), 15), (("7",), 0)])
def test_some_values_are_found_by_a_walk(world: World, prefix: Sequence[str], count: int) -> None:
    there = [(str(y), str(m), str(d)) for y in range(6) for m in range(12) for d in range(15)]
    stored = new_table(world, YEARS, there)
    with hearing(world.engine.engine, "", heard := []):
        listed = world.do(lambda work: find_by_values(work.connection, stored, prefix).listed())
    assert len(listed) == count
    assert all(
        not wanted or wanted == value
        for one in listed
        for wanted, value in zip(prefix, one.values, strict=False)
    )
    is_walked = any("RECURSIVE" in sent.sql or sent.sql.endswith("LIMIT 1") for sent in heard)
    assert is_walked is not bool(prefix[0])


@pytest.mark.skipif(SERVER_URL is not None, reason="they send others")
def test_among_many_values_the_next_ones_are_not_looked_for(world: World) -> None:
    """It would be a statement for each of them."""
    there = [(str(y), str(m), str(d)) for y in range(40) for m in range(3) for d in range(3)]
    stored, bound = new_table(world, YEARS, there), filtered("y >= 0 and m = 1")
    for parents, sent in ((39, range(5)), (40, range(40, 200))):
        with hearing(world.engine.engine, "", heard := []):
            walked = found(world, stored, bound, replace(EAGER, parents=parents))
        assert len(walked.selected) == 120
        assert len(heard) in sent


@ON_POSTGRESQL
def test_without_our_index_nothing_is_looked_for(world: World) -> None:
    there = [(str(y), str(m), "1") for y in range(10) for m in range(10)]
    stored = new_table(world, YEARS, there)
    (index,) = (one for one in PARTITIONS.indexes if one.name == "HMSB_PARTITIONS_BY_NAME")
    with hearing(world.engine.engine, "", heard := []):
        found(world, stored, filtered("y = 1"), EAGER)
        assert any("RECURSIVE" in one.sql for one in heard)
        heard.clear()
        with world.engine.transaction(write=True) as connection:
            index.drop(connection)
        try:
            walked = found(world, stored, filtered("y = 1"), EAGER)
        finally:
            with world.engine.transaction(write=True) as connection:
                index.create(connection)
    assert len(walked.selected) == 10
    assert not any("RECURSIVE" in one.sql for one in heard)


@ON_MARIADB
def test_names_in_another_order_are_all_read(world: World) -> None:
    """Of those that are alike, the first one would speak for the others."""
    column = "ALTER TABLE PARTITIONS MODIFY PART_NAME VARCHAR(767) CHARACTER SET latin1 COLLATE "
    keys = (Column(name="k", type="string"), YEARS[0])
    there = [("A" if year % 2 else "a", str(year)) for year in range(20)]
    with world.engine.transaction(write=True) as connection:
        connection.exec_driver_sql(f"{column} latin1_swedish_ci")
    try:
        stored = new_table(world, keys, there)
        for wanted in ("a", "A"):
            bound = replace(filtered(f"k = '{wanted}'", keys), required_values={})
            walked = found(world, stored, bound, EAGER, RowLock.NONE)
            assert len(walked.selected) == 10
    finally:
        with world.engine.transaction(write=True) as connection:
            connection.exec_driver_sql(f"{column} latin1_bin")


@dataclass
class Adding:
    """Adds partitions, all in one transaction of its own, before a transaction reads names for the
    so-and-so-many-th time."""

    world: World
    stored: StoredTable
    values: Sequence[tuple[str, ...]]
    before: int
    is_done: bool = False

    def __call__(self, _connection: object, _cursor: object, sql: str, *_: object) -> None:
        if self.is_done or "PART_NAME" not in sql or not sql.startswith(("SELECT", "WITH")):
            return
        self.before -= 1
        if not self.before:
            self.is_done = True
            with ThreadPoolExecutor(1) as other:
                other.submit(insert_into, self.world, self.stored, self.values).result()


@pytest.mark.parametrize("lock", [RowLock.NONE, RowLock.EXCLUSIVE])
@pytest.mark.parametrize("text", ["m = 2", "y = 1 or y = 4", "y = 0 or y = 5", "not y = 3"])
@ON_A_SERVER
def test_what_comes_together_meanwhile_is_seen_together(
    world: World, text: str, lock: RowLock
) -> None:
    """Some go where the walk has been, or has found nothing, some where it comes later."""
    there = [(str(year), str(month), "1") for year in (1, 3, 5) for month in range(1, 5)]
    added = [(year, "2", "2") for year in ("0", "1", "2", "4", "5")]
    bound = filtered(text)
    added_in_time = []
    for before in range(1, 5):
        stored = new_table(world, YEARS, there)
        adding = Adding(world, stored, added, before)
        event.listen(world.engine.engine, "before_cursor_execute", adding)
        try:
            with world.engine.transaction(
                write=lock is not RowLock.NONE, is_of_one_moment=lock is RowLock.NONE
            ) as connection:
                walked = matches(connection, stored, bound.selects, bound, lock, EAGER)
        finally:
            event.remove(world.engine.engine, "before_cursor_execute", adding)
        new = [name for name, _ in walked.selected if name.endswith("d=2")]
        wanted = [values for values in added if bound.selects(values)]
        assert len(new) in (0, len(wanted)), (before, new)
        added_in_time.append(adding.is_done)
    assert any(added_in_time)


@ON_A_SERVER
def test_what_comes_below_several_first_values_is_seen_together(world: World) -> None:
    keys = (Column(name="k", type="string"), YEARS[0])
    bound = filtered("k in ('a', 'b', 'c')", keys)
    added = [(first, "9") for first in ("a", "b", "c")]
    for before in range(1, 5):
        stored = new_table(world, keys, [(first, "1") for first in "abcd"])
        adding = Adding(world, stored, added, before)
        event.listen(world.engine.engine, "before_cursor_execute", adding)
        try:
            walked = found(world, stored, bound, EAGER, RowLock.EXCLUSIVE)
        finally:
            event.remove(world.engine.engine, "before_cursor_execute", adding)
        new = [name for name, _ in walked.selected if name.endswith("y=9")]
        assert len(new) in (0, 3), (before, new)
