"""How a database goes about a statement: of which tables it reads all rows."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Column, Connection, Engine, SmallInteger, Table, event, insert, text

from hms_bridge.backend.schema.all_tables import TABLES
from hms_bridge.backend.schema.catalog_tables import Flag

_EXPLAINED = ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")
_LIMIT = re.compile(r"\bLIMIT\b")
_OF_ANY_VALUE = re.compile(r"^[^=<>]*IS NOT NULL\)$")
_NUMBERS = itertools.count()
_FIRST, _COUNT = 1_000_000, 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Heard:
    """A statement as the driver got it, in a verb."""

    verb: str
    sql: str
    parameters: Any

    @property
    def line(self) -> str:
        """What was asked, in one line without quotes, which databases write in several ways."""
        return f"{self.verb}: {' '.join(self.sql.split())}".replace('"', "").replace("`", "")


@contextmanager
def hearing(engine: Engine, verb: str, heard: list[Heard]) -> Iterator[None]:
    """Adds what is sent in the block."""

    def hear(
        _connection: Connection, _cursor: object, sql: str, parameters: Any, _context: object,
        is_many: bool,
    ) -> None:  # fmt: skip
        if sql.lstrip().startswith(_EXPLAINED):
            given = parameters[0] if is_many else parameters
            heard.append(Heard(verb=verb, sql=sql, parameters=given))

    event.listen(engine, "before_cursor_execute", hear)
    try:
        yield
    finally:
        event.remove(engine, "before_cursor_execute", hear)


@dataclass(frozen=True, slots=True)
class Plan:
    """Tables of which a statement reads all rows (or has no index that would spare it that), and
    the indexes that it uses."""

    whole: frozenset[str]
    indexes: frozenset[str]


def plan_of(connection: Connection, heard: Heard) -> Plan:
    """How the database would go about a statement."""
    explain = {"sqlite": _on_sqlite, "postgresql": _on_postgresql}
    steps = list(explain.get(connection.dialect.name, _on_mariadb)(connection, heard))
    tables = (_table(step.whole, heard) for step in steps if step.whole)
    return Plan(
        whole=frozenset(table for table in tables if table in TABLES.tables),
        indexes=frozenset(name for step in steps for name in step.indexes),
    )


@dataclass(frozen=True, slots=True)
class _Step:
    whole: str = ""
    indexes: Sequence[str] = ()


def fill(connection: Connection, heard: Collection[Heard]) -> None:
    """Many rows in the tables of these statements, that are about others, and a look of the
    database at them. SQLite, which we never ask for that look, goes by the statement alone."""
    dialect = connection.dialect.name
    if dialect == "sqlite":
        return
    words = {word for one in heard for word in re.findall(r"\w+", one.sql)}
    wanted: set[Table] = set()
    for table in reversed(TABLES.sorted_tables):
        if table.name in words or table in wanted:
            wanted |= {table, *(key.column.table for key in table.foreign_keys)}
    for table in TABLES.sorted_tables:
        if table in wanted:
            rows = [_row(table, number) for number in range(_FIRST, _FIRST + _COUNT)]
            connection.execute(insert(table), rows)
    if dialect == "postgresql":
        connection.execute(text("ANALYZE"))
        return
    for table in wanted:
        connection.execute(text(f"ANALYZE TABLE `{table.name}`"))


def prefer_indexes(connection: Connection) -> None:
    """For the transaction. Whether an index can be used is what is asked: PostgreSQL sooner reads a
    thousand rows as a whole."""
    if connection.dialect.name == "postgresql":
        for way in ("seqscan", "hashjoin", "mergejoin"):
            connection.execute(text(f"SET LOCAL enable_{way} = off"))


def _row(table: Table, number: int) -> dict[str, Any]:
    """Numbers and texts in all columns that want one, so that rows belong to each other."""
    return {
        column.name: _value(column, number)
        for column in table.columns
        if not column.nullable or column.foreign_keys
    }


def _value(column: Column[Any], number: int) -> Any:
    if isinstance(column.type, Flag):
        return False
    kind = column.type.python_type
    if kind is str:
        return f"x{number}"[: getattr(column.type, "length", None)]
    if kind is datetime:
        return datetime(2020, 1, 1)  # noqa: DTZ001
    return 0 if isinstance(column.type, SmallInteger) else number


def _rows(connection: Connection, prefix: str, heard: Heard) -> Sequence[Mapping[str, Any]]:
    options = {"no_parameters": heard.parameters is None}
    # Never the same text: SQLite does not look whether what it explained before has changed.
    sql = f"{prefix} /* {next(_NUMBERS)} */ {heard.sql}"
    asked = connection.exec_driver_sql(sql, heard.parameters, options)
    return [dict(row) for row in asked.mappings()]


def _table(named: str, heard: Heard) -> str:
    """Of a name in a plan, which may be an alias."""
    if named in TABLES.tables:
        return named
    meant = re.search(rf"(\w+) AS {re.escape(named)}(?!\w)", heard.line)
    return meant[1] if meant else named


def _on_sqlite(connection: Connection, heard: Heard) -> Iterator[_Step]:
    for row in _rows(connection, "EXPLAIN QUERY PLAN", heard):
        scanned = re.match(r"SCAN (\w+)", row["detail"])
        used = re.findall(r"INDEX (\w+)", row["detail"])
        yield _Step(whole=scanned[1] if scanned else "", indexes=used)


def _on_postgresql(connection: Connection, heard: Heard) -> Iterator[_Step]:
    (row,) = _rows(connection, "EXPLAIN (FORMAT JSON)", heard)
    (answer,) = row.values()
    plan = json.loads(answer) if isinstance(answer, str) else answer
    yield from _steps_below(plan[0]["Plan"], is_limited=False)


def _steps_below(node: Mapping[str, Any], *, is_limited: bool) -> Iterator[_Step]:
    kind = node["Node Type"]
    index = node.get("Index Name", "")
    # min() and max() ask an index for what is not null, one by one.
    has_no_bound = _OF_ANY_VALUE.search(node.get("Index Cond", "IS NOT NULL)")) is not None
    is_free = is_limited and "Filter" not in node
    if kind == "Seq Scan" or (index and has_no_bound and not is_free):
        yield _Step(whole=node.get("Relation Name") or _table_of_index(index), indexes=[index])
    elif index:
        yield _Step(indexes=[index])
    # An index in its order, until there are enough rows.
    is_first_of_many = kind == "Limit" or (is_limited and kind == "LockRows")
    for below in node.get("Plans", ()):
        yield from _steps_below(below, is_limited=is_first_of_many)


def _table_of_index(name: str) -> str:
    tables = TABLES.sorted_tables
    named = (table for table in tables for index in table.indexes if index.name == name)
    return next((table.name for table in named), name.removesuffix("_pkey"))


def _on_mariadb(connection: Connection, heard: Heard) -> Iterator[_Step]:
    if heard.sql.startswith("INSERT") and "SELECT" not in heard.sql:
        return
    for row in _rows(connection, "EXPLAIN", heard):
        possible = (row["possible_keys"] or "").split(",")
        is_whole = row["type"] == "ALL" and row["possible_keys"] is None
        is_whole |= row["type"] == "index" and not _LIMIT.search(heard.sql)
        yield _Step(whole=row["table"] or "" if is_whole else "", indexes=possible)
