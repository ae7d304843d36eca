"""What all table modules share: the one MetaData, column types, table options.

Names and columns are Hive's (schema 4.0.0), upper case; SQLAlchemy quotes them by itself.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    CHAR,
    BigInteger,
    Column,
    ForeignKey,
    Integer,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

METADATA = MetaData()
"""Every table of the schema, from all table modules of this package."""

ID = BigInteger()
"""A number given by the application: ids, write ids, milliseconds."""

ROW_ID = BigInteger().with_variant(Integer(), "sqlite")
"""A number in the primary key. Only INTEGER does SQLite take for the row's own number, which it
generates, and finds without an index: a page less that each transaction writes."""

LETTER = CHAR(1)
"""A state or kind, stored as one character."""

LONG_TEXT = Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
"""Text without a practical limit."""

_UTF8 = {"charset": "utf8mb4", "collation": "utf8mb4_bin"}

UTF8_TEXT: TypeEngine[str] = Text().with_variant(mysql.LONGTEXT(**_UTF8), "mysql", "mariadb")
"""Text without a limit that people write: UTF-8 on MySQL too."""

BINARY = LargeBinary().with_variant(mysql.VARBINARY(2048), "mysql", "mariadb")
"""Bytes (CQ_META_INFO)."""

ADDED: dict[str, Any] = {"is_added": True}
"""The ``info`` of an index of ours on a table of Hive's; it is made on tables that are in use, too.
Its name begins with ``HMSB_``, so that no upgrade of Hive's finds it taken. With a ``dialect`` it
is for that database alone, where none that Hive has serves as well."""

OPTIONS: dict[str, Any] = {
    f"{dialect}_{option}": value
    for dialect in ("mysql", "mariadb")
    for option, value in (
        ("engine", "InnoDB"),
        ("charset", "latin1"),
        ("collate", "latin1_bin"),
    )
}
"""latin1 as Hive's own MySQL script (its long keys exceed InnoDB's limit in UTF-8); compared byte
for byte, because partition values differ by case."""


def utf8_words(length: int) -> TypeEngine[str]:
    """Text that people write, of limited length, UTF-8 on MySQL too: in no key of Hive's."""
    return String(length).with_variant(mysql.VARCHAR(length, **_UTF8), "mysql", "mariadb")


def table(name: str, *parts: Any, **options: Any) -> Table:
    """A table of the schema."""
    return Table(name, METADATA, *parts, **options, **OPTIONS)


def key(name: str) -> Column[int]:
    """A number that the application gives, in the primary key."""
    return Column(name, ROW_ID, primary_key=True, autoincrement=False)


def owner(name: str, table_name: str) -> Column[int]:
    """The key of the row in another table that this one belongs to, in the primary key."""
    return Column(name, ROW_ID, ForeignKey(f"{table_name}.{name}"), primary_key=True)
