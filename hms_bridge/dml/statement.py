"""Statements, as records: what a person typed, understood but not yet checked against tables.

Queries and expressions are sqlglot's trees as it reads Hive's SQL; nobody changes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

from hms_bridge.model.catalog import Column


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class NameAsWritten:
    """A table as written; no database means the current one."""

    database: str | None
    name: str

    def in_database(self, current: str) -> NameAsWritten:
        """The same with the current database filled in."""
        return self if self.database else NameAsWritten(database=current, name=self.name)

    def __str__(self) -> str:
        return f"{self.database}.{self.name}" if self.database else self.name


@dataclass(frozen=True, kw_only=True, slots=True)
class Select:
    """A query."""

    query: exp.Expr
    tables: tuple[NameAsWritten, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Insert:
    """INSERT INTO. ``partition`` maps a partition column to its value, or None for dynamic;
    ``source`` is a query or VALUES."""

    table: NameAsWritten
    columns: tuple[str, ...] = ()
    partition: Mapping[str, str | None] = field(default_factory=dict)
    source: exp.Expr
    source_tables: tuple[NameAsWritten, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Update:
    """UPDATE … SET … WHERE …."""

    table: NameAsWritten
    assignments: tuple[tuple[str, exp.Expr], ...]
    where: exp.Expr | None = None
    source_tables: tuple[NameAsWritten, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Delete:
    """DELETE FROM … WHERE …."""

    table: NameAsWritten
    where: exp.Expr | None = None
    source_tables: tuple[NameAsWritten, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class CreateDatabase:
    """CREATE DATABASE."""

    name: str
    is_if_not_exists: bool = False
    location: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DropDatabase:
    """DROP DATABASE."""

    name: str
    is_if_exists: bool = False
    is_cascade: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class CreateTable:
    """CREATE TABLE of an ORC table."""

    table: NameAsWritten
    columns: tuple[Column, ...]
    partition_columns: tuple[Column, ...] = ()
    bucket_columns: tuple[str, ...] = ()
    bucket_count: int = -1
    properties: Mapping[str, str] = field(default_factory=dict)
    location: str | None = None
    is_if_not_exists: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class DropTable:
    """DROP TABLE."""

    table: NameAsWritten
    is_if_exists: bool = False
    is_purge: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Use:
    """USE: the current database."""

    database: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Show:
    """SHOW DATABASES, SHOW TABLES of a database (None: the current one), SHOW PARTITIONS."""

    what: str
    database: str | None = None
    table: NameAsWritten | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Describe:
    """DESCRIBE a table."""

    table: NameAsWritten


Dml: TypeAlias = Select | Insert | Update | Delete
Ddl: TypeAlias = CreateDatabase | DropDatabase | CreateTable | DropTable | Use | Show | Describe
Statement: TypeAlias = Dml | Ddl
