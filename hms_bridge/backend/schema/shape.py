"""What a schema looks like: tables, columns, keys, indexes as plain records, read from a database
or from our own description, so that the two are compared without either."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from sqlalchemy import BigInteger as Long
from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    Date,
    DateTime,
    Dialect,
    Float,
    Index,
    Integer,
    LargeBinary,
    Numeric,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
    inspect,
    text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.engine import Inspector
from sqlalchemy.types import TypeEngine

UNLIMITED = 1 << 24
"""As a capacity in characters: MySQL's MEDIUMTEXT, the least that Hive takes for long texts."""

_MYSQL_TEXT = 1 << 16
_MYSQL_KEY = "PRIMARY"
_MYSQL_INDEXES = text(
    "SELECT TABLE_NAME, INDEX_NAME, NON_UNIQUE, COLUMN_NAME FROM information_schema.STATISTICS "
    "WHERE TABLE_SCHEMA = DATABASE() ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX"
)


class Kind(Enum):
    """What a column holds, whatever each database calls it."""

    TEXT = "text"
    INTEGER = "integer"
    BOOLEAN = "boolean"
    BYTES = "bytes"
    FLOAT = "float"
    TIME = "time"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnShape:
    """``capacity``: characters of a text, bits of an integer, else 0; ``has_default``: whether the
    database gives a value where none is given; ``charset``: what MySQL writes after the type."""

    name: str
    kind: Kind
    capacity: int = 0
    is_nullable: bool = True
    has_default: bool = False
    charset: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexShape:
    """An index; ``is_constraint``: a UNIQUE constraint, which is not dropped as an index is."""

    name: str
    columns: tuple[str, ...]
    is_unique: bool = False
    is_constraint: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TableShape:
    """``key``: columns of the primary key, in its order; ``key_name`` is PostgreSQL's for it."""

    name: str
    columns: tuple[ColumnShape, ...]
    key: tuple[str, ...] = ()
    key_name: str = ""
    indexes: tuple[IndexShape, ...] = ()

    def column(self, name: str) -> ColumnShape | None:
        """The column of that name."""
        return next((column for column in self.columns if column.name == name), None)


SchemaShape = Mapping[str, TableShape]
"""Tables by their names, as the database spells them."""


def read_shape(connection: Connection) -> SchemaShape:
    """The tables of a database, in its own spelling."""
    inspector = inspect(connection)
    if connection.dialect.name in ("mysql", "mariadb"):
        return _read_mysql(connection, inspector)
    keys = inspector.get_multi_pk_constraint()
    indexes = inspector.get_multi_indexes()
    uniques = inspector.get_multi_unique_constraints()
    return {
        where[1]: TableShape(
            name=where[1],
            columns=tuple(_found_column(column) for column in columns),
            key=tuple(keys[where]["constrained_columns"]),
            key_name=keys[where].get("name") or "",
            indexes=_found_indexes(indexes.get(where, ()), uniques.get(where, ())),
        )
        for where, columns in inspector.get_multi_columns().items()
    }


def _read_mysql(connection: Connection, inspector: Inspector) -> SchemaShape:
    """SQLAlchemy overlooks keys there in which a column's name ends with PARTITION."""
    indexes: dict[str, dict[str, list[str]]] = {}
    uniques: set[tuple[str, str]] = set()
    for table, name, is_not_unique, column in connection.execute(_MYSQL_INDEXES):
        indexes.setdefault(table, {}).setdefault(name, []).append(column)
        if not int(is_not_unique):
            uniques.add((table, name))
    return {
        where[1]: TableShape(
            name=where[1],
            columns=tuple(_found_column(column) for column in columns),
            key=tuple(indexes.get(where[1], {}).get(_MYSQL_KEY, ())),
            indexes=tuple(
                IndexShape(name=name, columns=tuple(names), is_unique=(where[1], name) in uniques)
                for name, names in sorted(indexes.get(where[1], {}).items())
                if name != _MYSQL_KEY
            ),
        )
        for where, columns in inspector.get_multi_columns().items()
    }


def wanted_table(table: Table, dialect: Dialect) -> TableShape:
    """What a table that we describe looks like in one kind of database. Our own indexes on Hive's
    tables are left out: :mod:`install` adds them where they serve."""
    is_mysql = dialect.name in ("mysql", "mariadb")
    indexes = [
        IndexShape(
            name=str(part.name or ""),
            columns=_columns_of(part, is_mysql=is_mysql),
            is_unique=isinstance(part, UniqueConstraint) or bool(part.unique),
            is_constraint=isinstance(part, UniqueConstraint) and not is_mysql,
        )
        for part in (*table.indexes, *table.constraints)
        if isinstance(part, Index | UniqueConstraint) and not part.info.get("is_added")
    ]
    return TableShape(
        name=table.name,
        columns=tuple(_wanted_column(column, dialect) for column in table.columns),
        key=tuple(column.name for column in table.primary_key.columns),
        indexes=tuple(sorted(indexes, key=lambda index: (index.columns, index.name))),
    )


def _found_column(column: Any) -> ColumnShape:
    kind = column["type"]
    charset = " ".join(
        f"{word} {value}"
        for word, value in (
            ("CHARACTER SET", getattr(kind, "charset", None)),
            ("COLLATE", getattr(kind, "collation", None)),
        )
        if value and isinstance(kind, mysql.types._StringType)
    )
    return ColumnShape(
        name=column["name"],
        kind=_kind(kind),
        capacity=_capacity(kind),
        is_nullable=bool(column["nullable"]),
        has_default=column.get("default") is not None or column.get("autoincrement") is True,
        charset=charset,
    )


def _wanted_column(column: Column[Any], dialect: Dialect) -> ColumnShape:
    kind = column.type.dialect_impl(dialect)
    kind = getattr(kind, "impl_instance", kind)  # of a decorated type
    is_short = type(kind) is Text and dialect.name in ("mysql", "mariadb")
    return ColumnShape(
        name=column.name,
        kind=_kind(kind),
        capacity=_MYSQL_TEXT if is_short else _capacity(kind),
        is_nullable=bool(column.nullable),
        has_default=column.server_default is not None or column.autoincrement is True,
    )


def _columns_of(part: Index | UniqueConstraint, *, is_mysql: bool) -> tuple[str, ...]:
    """Where Hive's script for MySQL has another order, ``info["mysql_columns"]`` is it."""
    names = tuple(column.name for column in part.columns)
    return part.info.get("mysql_columns", names) if is_mysql else names


def _found_indexes(indexes: Iterable[Any], uniques: Iterable[Any]) -> tuple[IndexShape, ...]:
    """MySQL has its constraints among its indexes, PostgreSQL their indexes as such once more."""
    present = [
        IndexShape(
            name=index["name"] or "",
            columns=tuple(index["column_names"]),
            is_unique=bool(index["unique"]),
        )
        for index in indexes
        if None not in index["column_names"] and not index.get("duplicates_constraint")
    ]
    names = {index.name for index in present}
    present += [
        IndexShape(
            name=unique["name"] or "",
            columns=tuple(unique["column_names"]),
            is_unique=True,
            is_constraint=True,
        )
        for unique in uniques
        if not unique.get("duplicates_index") and unique["name"] not in names
    ]
    return tuple(sorted(present, key=lambda index: (index.columns, index.name)))


_KINDS: tuple[tuple[tuple[type[TypeEngine[Any]], ...], Kind], ...] = (
    ((Boolean, mysql.BIT, mysql.TINYINT), Kind.BOOLEAN),
    ((LargeBinary, mysql.VARBINARY), Kind.BYTES),
    ((Integer,), Kind.INTEGER),
    ((Float, Numeric), Kind.FLOAT),
    ((DateTime, Date), Kind.TIME),
    ((String,), Kind.TEXT),
)


def _kind(kind: TypeEngine[Any]) -> Kind:
    return next((name for types, name in _KINDS if isinstance(kind, types)), Kind.OTHER)


def _capacity(kind: TypeEngine[Any]) -> int:
    if isinstance(kind, SmallInteger):
        return 16
    if isinstance(kind, Integer):
        return 64 if isinstance(kind, Long) else 32
    if not isinstance(kind, String):
        return 0
    if type(kind) is mysql.TEXT:
        return _MYSQL_TEXT
    if isinstance(kind, Text | mysql.LONGTEXT | mysql.MEDIUMTEXT) or kind.length is None:
        return UNLIMITED
    return kind.length
