"""Which columns a table of the database really has: versions of Hive's schema differ."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from sqlalchemy import Connection, Engine, Table, inspect

_KNOWN: WeakKeyDictionary[Engine, dict[str, frozenset[str]]] = WeakKeyDictionary()


def columns_of(connection: Connection, table: Table) -> frozenset[str]:
    """Names; asked once for each database: a schema does not change under a running server."""
    known = _KNOWN.setdefault(connection.engine, {})
    if table.name not in known:
        found = inspect(connection).get_columns(table.name)
        known[table.name] = frozenset(column["name"] for column in found)
    return known[table.name]
