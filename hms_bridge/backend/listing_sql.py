"""Statements that list rows by the thousand, or that clients ask all the time: fixed on PostgreSQL
(:mod:`hms_bridge.backend.fixed_sql`), whose driver reads ten rows while SQLAlchemy's results read
one; in Core elsewhere, where values are converted and lists of keys have no length of their own.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Collection, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam
from sqlalchemy.sql.selectable import CompoundSelect

from hms_bridge.backend.batches import is_among, is_among_many, keys_text
from hms_bridge.backend.dialect import is_postgresql
from hms_bridge.backend.fixed_sql import FixedSql

Listed = Select[Any] | CompoundSelect[Any]
IsOneOf = Callable[[ColumnElement[int], str], ColumnElement[bool]]
"""Whether a key is one of those that a parameter of this name has."""

_FEW = 8
"""Keys that are found sooner one by one."""


class ListingSql:
    """A statement for each of these databases, made when it is first asked. Its values are given by
    the names of its parameters; keys, as collections of numbers."""

    def __init__(self, make: Callable[[IsOneOf], Listed]) -> None:
        self._make = make
        self._fixed: dict[bool, FixedSql] = {}
        self._core: Listed | None = None
        self._row: Any = None

    def all(self, connection: Connection, /, **values: Any) -> Sequence[Any]:
        """All rows, in the order of the selected columns."""
        return self.later(connection, **values)()

    def later(self, connection: Connection, /, **values: Any) -> Callable[[], Sequence[Any]]:
        """As :meth:`all`; PostgreSQL is asked together with what is asked until somebody looks."""
        if not is_postgresql(connection):
            if self._core is None:
                self._core = self._make(_is_listed)
            rows = connection.execute(self._core, values).all()
            return lambda: rows
        is_long = any(len(value) > _FEW for value in values.values() if _is_keys(value))
        fixed = self._fixed.get(is_long)
        if fixed is None:
            statement = self._make(is_among_many if is_long else is_among)
            fixed = self._fixed[is_long] = FixedSql(statement)
        answer = fixed.read_later(connection, **_as_texts(values))
        return lambda: answer.rows

    def named(self, connection: Connection, /, **values: Any) -> Sequence[Any]:
        """All rows, whose values have their columns' names."""
        rows = self.all(connection, **values)
        if not is_postgresql(connection):
            return rows
        if self._row is None:
            self._row = row_of(self._make(is_among))
        return list(map(self._row._make, rows))


def row_of(statement: Listed) -> Any:
    """The kind of tuples whose values have the names of a statement's columns."""
    return namedtuple("Row", statement.selected_columns.keys())


def _is_listed(key: ColumnElement[int], name: str) -> ColumnElement[bool]:
    return key.in_(bindparam(name, expanding=True))


def _as_texts(values: dict[str, Any]) -> dict[str, Any]:
    return {name: keys_text(value) if _is_keys(value) else value for name, value in values.items()}


def _is_keys(value: object) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str)
