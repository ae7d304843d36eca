"""What all table modules share: the one MetaData, column types, table options.

Names and columns are Hive's (schema 4.0.0), upper case; SQLAlchemy quotes them by itself.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import CHAR, BigInteger, Integer, LargeBinary, MetaData, Text
from sqlalchemy.dialects import mysql

METADATA = MetaData()
"""Every table of the schema, from all table modules of this package."""

ID = BigInteger()
"""A number given by the application: ids, write ids, milliseconds."""

GENERATED_ID = BigInteger().with_variant(Integer(), "sqlite")
"""A number the database generates (SQLite generates only for INTEGER)."""

LETTER = CHAR(1)
"""A state or kind, stored as one character."""

LONG_TEXT = Text().with_variant(mysql.LONGTEXT(), "mysql", "mariadb")
"""Text without a practical limit."""

BINARY = LargeBinary().with_variant(mysql.VARBINARY(2048), "mysql", "mariadb")
"""Bytes (CQ_META_INFO)."""

TABLE_OPTIONS: dict[str, Any] = {
    f"{dialect}_{option}": value
    for dialect in ("mysql", "mariadb")
    for option, value in (
        ("engine", "InnoDB"),
        ("charset", "latin1"),
        ("collate", "latin1_bin"),
    )
}
"""Pass to every Table. latin1 as Hive's own MySQL script (its long keys exceed InnoDB's limit in
UTF-8); compared byte for byte, because partition values differ by case."""
