"""Which of the columns that Hive gave up in some version a database still has
(docs/hive/metastore.md §12)."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from sqlalchemy import Column, Connection, Engine, inspect

_KNOWN: WeakKeyDictionary[Engine, dict[str, frozenset[str]]] = WeakKeyDictionary()


def is_present(connection: Connection, column: Column[object]) -> bool:
    """Whether a column is there: looked up once for each table and engine.

    The version alone does not decide it: a schema that was made here says 4.0.0 for good.
    """
    tables = _KNOWN.setdefault(connection.engine, {})
    name = column.table.name
    if name not in tables:
        tables[name] = frozenset(
            described["name"] for described in inspect(connection).get_columns(name)
        )
    return column.name in tables[name]
