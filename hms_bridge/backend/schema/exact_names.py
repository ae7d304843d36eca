"""Names of partitions that MySQL takes for the same though they differ in case.

Hive's script gives its tables of transactions the order of a language (latin1_swedish_ci), in which
``p=A`` is ``p=a``; its PARTITIONS keeps them apart. What is forgotten of one of them, once it is
cleaned, would be forgotten of the other: rows that an aborted transaction wrote there would be
seen.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection, Dialect, text

from hms_bridge.backend.schema.all_tables import TABLES

_COLUMNS = text(
    "SELECT TABLE_NAME, COLUMN_NAME, COLUMN_TYPE, CHARACTER_SET_NAME, COLLATION_NAME, IS_NULLABLE "
    "FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE() AND COLLATION_NAME IS NOT NULL"
)
_NAMES = frozenset(
    (table.name, column.name)
    for table in TABLES.tables.values()
    for column in table.columns
    if column.name.endswith("_PARTITION")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnOfNames:
    """A column as MySQL describes it; ``kind``: its type and length."""

    table: str
    column: str
    kind: str
    charset: str
    collation: str
    is_nullable: bool

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.table}.{self.column}"

    def statement(self, dialect: Dialect) -> str:
        """That lets it be compared byte by byte; what it is otherwise stays."""
        table, column = map(dialect.identifier_preparer.quote_identifier, (self.table, self.column))
        return (
            f"ALTER TABLE {table} MODIFY {column} {self.kind} CHARACTER SET {self.charset} "
            f"COLLATE {self.charset}_bin {'NULL' if self.is_nullable else 'NOT NULL'}"
        )


def loose_ones(columns: Iterable[ColumnOfNames]) -> tuple[ColumnOfNames, ...]:
    """Those of partitions' names that are not compared byte by byte, sorted."""
    loose = [
        column
        for column in columns
        if (column.table.upper(), column.column.upper()) in _NAMES
        and not column.collation.endswith("_bin")
    ]
    return tuple(sorted(loose, key=lambda column: column.name))


def loose_columns(connection: Connection) -> tuple[ColumnOfNames, ...]:
    """Those of a database; none but on MySQL."""
    if connection.dialect.name not in ("mysql", "mariadb"):
        return ()
    return loose_ones(
        ColumnOfNames(
            table=table,
            column=column,
            kind=kind if isinstance(kind, str) else kind.decode(),
            charset=charset,
            collation=collation,
            is_nullable=is_nullable == "YES",
        )
        for table, column, kind, charset, collation, is_nullable in connection.execute(_COLUMNS)
    )


def compare_exactly(connection: Connection) -> None:
    """Let them be compared byte by byte. A Hive on the same database works on: it keeps partitions
    apart by then, too."""
    for column in loose_columns(connection):
        connection.exec_driver_sql(column.statement(connection.dialect))
