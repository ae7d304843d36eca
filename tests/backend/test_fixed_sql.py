"""A fixed statement is what SQLAlchemy would send, and fails as SQLAlchemy's do."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator

import pytest
from sqlalchemy import (
    Boolean,
    Connection,
    bindparam,
    event,
    insert,
    literal,
    select,
    text,
    type_coerce,
    update,
)
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import IntegrityError, OperationalError, ProgrammingError

import hms_bridge.archive
import hms_bridge.catalog
import hms_bridge.notification
import hms_bridge.txn
from hms_bridge.backend import sequences
from hms_bridge.backend.batches import BATCH_MAX
from hms_bridge.backend.engine import Database
from hms_bridge.backend.fixed_sql import (
    FixedInsert,
    FixedInsertIfMissing,
    FixedSql,
    KeyedSql,
    TimedSql,
)
from hms_bridge.backend.schema.txn_tables import AUX_TABLE, TXNS
from hms_bridge.backend.text_keyed_sql import TextKeyedSql
from hms_bridge.backend.work import Work
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import Settings
from tests.support.rules import holds_for
from tests.support.simulated_clock import SimulatedClock

DIALECTS: tuple[Dialect, ...] = (
    sqlite.dialect(),
    postgresql.psycopg.dialect(),  # type: ignore[no-untyped-call]
    mysql.pymysql.dialect(),
)
ONLY_POSTGRESQL = ("_NUMBER_AND_INSERT", "_AT_ONCE", "_AS_EXPECTED", "_TRACK_ALL")
ONE = FixedSql(select(AUX_TABLE.c.MT_KEY2).where(bindparam("key") == AUX_TABLE.c.MT_KEY1))
PUT = FixedSql(insert(AUX_TABLE), ("MT_KEY1", "MT_KEY2"))
MOVE = FixedSql(update(AUX_TABLE).values(MT_KEY2=AUX_TABLE.c.MT_KEY2 + bindparam("by")))


def _rooms() -> Iterator[object]:
    yield sequences
    for room in (hms_bridge.txn, hms_bridge.notification, hms_bridge.archive, hms_bridge.catalog):
        for found in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
            yield importlib.import_module(found.name)


def _fixed() -> list[tuple[str, FixedSql]]:
    return [
        (f"{room.__name__}.{name}", _of_one(value))  # type: ignore[attr-defined]
        for room in _rooms()
        for name, value in vars(room).items()
        if isinstance(value, FixedSql | KeyedSql | TextKeyedSql | FixedInsert)
    ]


def _of_one(made: FixedSql | KeyedSql | TextKeyedSql | FixedInsert) -> FixedSql:
    if isinstance(made, FixedSql):
        return made
    return made.of(1) if isinstance(made, TextKeyedSql) else made.single


FIXED = _fixed()


def test_there_are_many() -> None:
    assert len(FIXED) > 15


@pytest.mark.parametrize("is_heard", [False, True])
def test_rows_changes_and_values(database: Database, *, is_heard: bool) -> None:
    heard: list[str] = []
    if is_heard:

        @event.listens_for(database.engine, "before_cursor_execute")
        def hear(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
            heard.append(statement)

    try:
        with database.transaction(write=True) as connection:
            assert ONE.first(connection, key="k") is None
            assert PUT.change(connection, MT_KEY1="k", MT_KEY2=7) == 1
            assert PUT.change(connection, MT_KEY1="l%s'", MT_KEY2=8) == 1
            assert MOVE.change(connection, by=2) == 2
            assert [tuple(row) for row in ONE.all(connection, key="l%s'")] == [(10,)]
    finally:
        if is_heard:
            event.remove(database.engine, "before_cursor_execute", hear)
    assert bool(heard) is is_heard


def test_one_key_and_many_are_one_statement(database: Database) -> None:
    of_keys = KeyedSql(
        AUX_TABLE.c.MT_KEY2,
        lambda is_wanted: (
            select(AUX_TABLE.c.MT_KEY1)
            .where(is_wanted, bindparam("left_out") != AUX_TABLE.c.MT_KEY1)
            .order_by(AUX_TABLE.c.MT_KEY1)
        ),
    )
    renamed = KeyedSql(
        AUX_TABLE.c.MT_KEY2,
        lambda is_wanted: update(AUX_TABLE).where(is_wanted).values(MT_COMMENT=bindparam("word")),
    )
    comments = select(AUX_TABLE.c.MT_COMMENT).order_by(AUX_TABLE.c.MT_KEY2)
    with database.transaction(write=True) as connection:
        for number in range(4):
            PUT.change(connection, MT_KEY1=f"k{number}", MT_KEY2=number)
        for keys, names in (([], []), ([2], ["k2"]), ([3, 0, 1, 9], ["k0", "k3"])):
            rows = of_keys.all(connection, keys, left_out="k1")
            assert [name for (name,) in rows] == names
        for keys, words in (([], [None] * 4), ([1], [None, "w1"]), ([2, 3], [None, "w1", "w2"])):
            renamed.change(connection, keys, word=f"w{len(keys)}")
            assert list(connection.scalars(comments))[: len(words)] == words


def test_keys_that_are_texts_are_as_many_as_there_are(database: Database) -> None:
    of_keys = TextKeyedSql(
        AUX_TABLE.c.MT_KEY1,
        lambda is_wanted: (
            select(AUX_TABLE.c.MT_KEY2)
            .where(is_wanted, bindparam("left_out") != AUX_TABLE.c.MT_KEY2)
            .order_by(AUX_TABLE.c.MT_KEY2)
        ),
    )
    renamed = TextKeyedSql(
        AUX_TABLE.c.MT_KEY1,
        lambda is_wanted: update(AUX_TABLE).where(is_wanted).values(MT_COMMENT=bindparam("word")),
    )
    many = [f"none{number}" for number in range(BATCH_MAX)]
    with database.transaction(write=True) as connection:
        for number in range(4):
            PUT.change(connection, MT_KEY1=f"k{number}", MT_KEY2=number)
        odd = ['{a,"b"}', "c\\", "NULL", " d ", "é'%", "\\N"]
        for number, key in enumerate(odd, 10):
            PUT.change(connection, MT_KEY1=key, MT_KEY2=number)
        for keys, numbers in (
            (odd, list(range(10, 16))),
            ([], []),
            (["k2"], [2]),
            (["k3", "k0", "k1"], [0, 3]),
            (["k2", "k2", *many, "k0"], [2, 0]),  # two pieces, in their order
        ):
            rows = of_keys.all(connection, keys, left_out=1)
            assert [number for (number,) in rows] == numbers
        answers = renamed.later(connection, ["k0", "no", "k3"], word="w")
        assert [answer.count for answer in answers] == [2]
        assert not renamed.later(connection, [], word="w")


def test_a_row_is_put_unless_it_is_there(database: Database) -> None:
    if_missing = FixedInsertIfMissing(AUX_TABLE, [AUX_TABLE.c.MT_KEY1, AUX_TABLE.c.MT_KEY2])
    row = {"MT_KEY1": "k", "MT_KEY2": 1}
    with database.transaction(write=True) as connection:
        assert if_missing.put(connection, row | {"MT_COMMENT": "first"})
        assert not if_missing.put(connection, row | {"MT_COMMENT": "second"})
        assert if_missing.put(connection, row | {"MT_KEY2": 2, "MT_COMMENT": "other"})
        comments = select(AUX_TABLE.c.MT_COMMENT).order_by(AUX_TABLE.c.MT_KEY2)
        assert list(connection.scalars(comments)) == ["first", "other"]


def test_the_text_is_what_core_sends(database: Database) -> None:
    sent: list[str] = []

    @event.listens_for(database.engine, "before_cursor_execute")
    def hear(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        sent.append(statement)

    with database.transaction(write=True) as connection:
        try:
            row = {"MT_KEY1": "k", "MT_KEY2": 7}
            for fixed, values in ((PUT, row), (ONE, {"key": "k"}), (MOVE, {"by": 1})):
                fixed._make(connection.dialect)
                connection.execute(fixed.statement, values)
                assert fixed._make(connection.dialect).plain()[0] == sent[-1]
        finally:
            event.remove(database.engine, "before_cursor_execute", hear)


@holds_for((dialect, *named) for dialect in DIALECTS for named in FIXED)
def test_no_statement_needs_what_the_driver_does_not_do(
    dialect: Dialect, name: str, fixed: FixedSql
) -> None:
    """Lists and converted values are refused when a statement is compiled, not when it runs."""

    if dialect.name == "postgresql" or not name.endswith(ONLY_POSTGRESQL):
        assert fixed._make(dialect).plain()[0]


def _timed() -> list[tuple[str, TimedSql]]:
    return [
        (f"{room.__name__}.{name}", value)  # type: ignore[attr-defined]
        for room in _rooms()
        for name, value in vars(room).items()
        if isinstance(value, TimedSql)
    ]


@holds_for(
    (dialect, clock, *named)
    for dialect in DIALECTS
    for clock in (SystemClock(), SimulatedClock())
    for named in _timed()
)
def test_nor_does_one_with_the_time(
    dialect: Dialect, clock: SystemClock | SimulatedClock, name: str, timed: TimedSql
) -> None:
    if dialect.name != "postgresql" and name.endswith(ONLY_POSTGRESQL):
        return
    if dialect.name == "mysql" and name.endswith(("_TAKE_TIMED", "_INSERT_ONE")):
        return  # only where rows are returned

    class Connected:
        pass

    Connected.dialect = dialect  # type: ignore[attr-defined]
    text = timed._text(Work(Connected(), clock, Settings()), {})  # type: ignore[arg-type]
    assert text.plain()[0]


@pytest.mark.parametrize(
    "statement",
    [
        select(TXNS.c.TXN_ID).where(TXNS.c.TXN_ID.in_(bindparam("ids", expanding=True))),
        select(type_coerce(literal(1), Boolean)),
    ],
)
def test_what_sqlalchemy_would_convert_is_refused(database: Database, statement: object) -> None:
    fixed = FixedSql(statement)  # type: ignore[arg-type]
    with (
        database.transaction(write=False) as connection,
        pytest.raises(TypeError, match="run it with Core"),
    ):
        fixed.all(connection, ids=[1])


def test_errors_are_sqlalchemys(database: Database) -> None:
    with database.transaction(write=True) as connection:
        PUT.change(connection, MT_KEY1="k", MT_KEY2=7)
        with pytest.raises(IntegrityError), connection.begin_nested():
            PUT.change(connection, MT_KEY1="k", MT_KEY2=7)
        wrong = FixedSql(text("SELECT 1 FROM nowhere"))
        with pytest.raises((OperationalError, ProgrammingError)), connection.begin_nested():
            wrong.all(connection)
        assert ONE.first(connection, key="k") == (7,)


def test_the_time_is_the_databases_or_the_given_clocks(database: Database) -> None:
    timed = TimedSql(select)
    with database.transaction(write=True) as connection:
        for clock in (SimulatedClock(), SystemClock()):
            work = Work(connection, clock, Settings())
            before = work.now_ms
            ((now, row_time),) = timed.all(work)
            assert before <= now <= row_time <= before + 60_000
            if isinstance(clock, SimulatedClock):
                assert now == row_time == before
