"""Steps that change a schema, as records; each knows its statements for a kind of database.

A step that was made is not planned again, so that an upgrade that was cut off is begun anew: where
a database commits each change by itself (MySQL) the next plan holds what is left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

from sqlalchemy import Column, Dialect, Table
from sqlalchemy.schema import CreateIndex, CreateTable

from hms_bridge.backend.schema.shape import UNLIMITED, IndexShape


class Step(Protocol):
    """One change."""

    @property
    def what(self) -> str:
        """For people: what is changed, and how."""

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """Its SQL, in order."""


@dataclass(frozen=True, slots=True)
class RenameTable:
    """Give a table another name, or its own in upper case."""

    table: str
    to: str

    @property
    def what(self) -> str:
        """What is changed."""
        return f"table {self.table}: rename to {self.to}"

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """One."""
        yield f"ALTER TABLE {_quoted(dialect, self.table)} RENAME TO {_quoted(dialect, self.to)}"


@dataclass(frozen=True, slots=True)
class RenameColumn:
    """Give a column another name."""

    table: str
    column: str
    to: str

    @property
    def what(self) -> str:
        """What is changed."""
        return f"column {self.table}.{self.column}: rename to {self.to}"

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """One."""
        quoted = [_quoted(dialect, name) for name in (self.table, self.column, self.to)]
        yield "ALTER TABLE {} RENAME COLUMN {} TO {}".format(*quoted)


@dataclass(frozen=True, slots=True)
class MakeTable:
    """Make a table with its keys and indexes."""

    table: Table

    @property
    def what(self) -> str:
        """What is changed."""
        return f"table {self.table.name}: make"

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """The table, then its indexes."""
        yield str(CreateTable(self.table).compile(dialect=dialect))
        for index in sorted(self.table.indexes, key=lambda index: str(index.name)):
            if not index.info.get("is_added"):
                yield str(CreateIndex(index).compile(dialect=dialect))


@dataclass(frozen=True, slots=True)
class DropTable:
    """Drop a table that no version has any more."""

    table: str

    @property
    def what(self) -> str:
        """What is changed."""
        return f"table {self.table}: drop, with its rows"

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """One."""
        yield f"DROP TABLE {_quoted(dialect, self.table)}"


@dataclass(frozen=True, slots=True)
class AddColumn:
    """Add a column. Where rows need a value that no default gives, it may be NULL, as after Hive's
    own upgrade; ``fill`` is what rows get that are there."""

    column: Column[object]
    fill: str | None = None

    @property
    def what(self) -> str:
        """What is changed."""
        filled = f", filled with '{self.fill}'" if self.fill is not None else ""
        return f"column {self.column.table.name}.{self.column.name}: add{filled}"

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """The column, then the values of rows that are there."""
        kind = self.column.type.compile(dialect=dialect)
        default = self.column.server_default
        words = [_quoted(dialect, self.column.name), kind]
        if default is not None:
            words.append(f"DEFAULT {_text(getattr(default, 'arg', None))}")
            if not self.column.nullable:
                words.append("NOT NULL")
        table = _quoted(dialect, self.column.table.name)
        yield f"ALTER TABLE {table} ADD COLUMN {' '.join(words)}"
        if self.fill is not None:
            filling = Fill(table=self.column.table.name, column=self.column.name, value=self.fill)
            yield from filling.statements(dialect)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fill:
    """Give rows without a value one: where an upgrade was cut off after the column was added."""

    table: str
    column: str
    value: str

    @property
    def what(self) -> str:
        """What is changed."""
        return f"column {self.table}.{self.column}: '{self.value}' where there is no value"

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """One."""
        name = _quoted(dialect, self.column)
        yield (
            f"UPDATE {_quoted(dialect, self.table)} SET {name} = {_text(self.value)} "
            f"WHERE {name} IS NULL"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Widen:
    """Let a column hold longer texts; what it is otherwise stays."""

    table: str
    column: str
    capacity: int
    is_nullable: bool
    charset: str = ""

    @property
    def what(self) -> str:
        """What is changed."""
        size = "text" if self.capacity >= UNLIMITED else f"{self.capacity} characters"
        return f"column {self.table}.{self.column}: widen to {size}"

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """One."""
        table, column = _quoted(dialect, self.table), _quoted(dialect, self.column)
        is_text = self.capacity >= UNLIMITED
        kind = f"VARCHAR({self.capacity})"
        if dialect.name in ("mysql", "mariadb"):
            words = ["MEDIUMTEXT" if is_text else kind, self.charset]
            words.append("NULL" if self.is_nullable else "NOT NULL")
            yield f"ALTER TABLE {table} MODIFY {column} {' '.join(filter(None, words))}"
        else:
            yield f"ALTER TABLE {table} ALTER COLUMN {column} TYPE {'TEXT' if is_text else kind}"


@dataclass(frozen=True, slots=True)
class DropColumns:
    """Drop columns that a version gave up."""

    table: str
    columns: tuple[str, ...]

    @property
    def what(self) -> str:
        """What is changed."""
        return f"table {self.table}: drop columns {', '.join(self.columns)}"

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """One; on SQLite, which drops one at a time, one each."""
        table = _quoted(dialect, self.table)
        drops = [f"DROP COLUMN {_quoted(dialect, column)}" for column in self.columns]
        if dialect.name != "sqlite":
            drops = [", ".join(drops)]
        for drop in drops:
            yield f"ALTER TABLE {table} {drop}"


@dataclass(frozen=True, slots=True)
class SetKey:
    """Give a table another primary key, or one."""

    table: str
    key: tuple[str, ...]
    constraint: str | None
    """The name of the key that it has on PostgreSQL; None if it has none."""

    @property
    def what(self) -> str:
        """What is changed."""
        return f"table {self.table}: primary key {', '.join(self.key)}"

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """One, so that the table is never without."""
        drop = ""
        if self.constraint is not None:
            is_mysql = dialect.name in ("mysql", "mariadb")
            name = _quoted(dialect, self.constraint)
            drop = "DROP PRIMARY KEY, " if is_mysql else f"DROP CONSTRAINT {name}, "
        columns = ", ".join(_quoted(dialect, column) for column in self.key)
        yield f"ALTER TABLE {_quoted(dialect, self.table)} {drop}ADD PRIMARY KEY ({columns})"


@dataclass(frozen=True, slots=True)
class AddIndex:
    """Make an index or UNIQUE constraint, in the place of one with its name."""

    table: str
    index: IndexShape
    replaced: IndexShape | None = None

    @property
    def what(self) -> str:
        """What is changed."""
        kind = "unique index" if self.index.is_unique else "index"
        instead = f" instead of {', '.join(self.replaced.columns)}" if self.replaced else ""
        return (
            f"table {self.table}: {kind} {self.index.name} on "
            f"{', '.join(self.index.columns)}{instead}"
        )

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """One where uniqueness would be gone for a moment: MySQL commits each. SQLite keeps the
        constraint that a table was made with, which says the same."""
        table, name = _quoted(dialect, self.table), _quoted(dialect, self.index.name)
        columns = ", ".join(_quoted(dialect, column) for column in self.index.columns)
        unique = "UNIQUE " if self.index.is_unique else ""
        old = self.replaced
        if old is not None and dialect.name in ("mysql", "mariadb"):
            yield (
                f"ALTER TABLE {table} DROP INDEX {_quoted(dialect, old.name)}, "
                f"ADD {unique}INDEX {name} ({columns})"
            )
            return
        if old is not None:
            yield from DropIndex(self.table, old).statements(dialect)
        if self.index.is_constraint and dialect.name == "postgresql":
            yield f"ALTER TABLE {table} ADD CONSTRAINT {name} UNIQUE ({columns})"
        else:
            yield f"CREATE {unique}INDEX {name} ON {table} ({columns})"


@dataclass(frozen=True, slots=True)
class DropIndex:
    """Drop an index that another one serves."""

    table: str
    index: IndexShape

    @property
    def what(self) -> str:
        """What is changed."""
        return f"table {self.table}: drop index {self.index.name}"

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """One; none for a constraint of SQLite's, which stays as long as its table."""
        table, name = _quoted(dialect, self.table), _quoted(dialect, self.index.name)
        if dialect.name in ("mysql", "mariadb"):
            yield f"DROP INDEX {name} ON {table}"
        elif not self.index.is_constraint:
            yield f"DROP INDEX {name}"
        elif dialect.name == "postgresql":
            yield f"ALTER TABLE {table} DROP CONSTRAINT {name}"


@dataclass(frozen=True, slots=True)
class SetVersion:
    """Write down the version: the last step, so that none before it is taken for done."""

    version: str

    @property
    def what(self) -> str:
        """What is changed."""
        return f"table VERSION: {self.version}"

    def statements(self, dialect: Dialect) -> Iterator[str]:
        """One."""
        table, version, comment = (
            _quoted(dialect, name) for name in ("VERSION", "SCHEMA_VERSION", "VERSION_COMMENT")
        )
        yield (
            f"UPDATE {table} SET {version} = {_text(self.version)}, "
            f"{comment} = {_text(f'Hive release version {self.version}')}"
        )


def quoted(dialect: Dialect) -> Callable[[str], str]:
    """A function that quotes names."""
    return dialect.identifier_preparer.quote_identifier


def _quoted(dialect: Dialect, name: str) -> str:
    return quoted(dialect)(name)


def _text(value: object) -> str:
    escaped = str(value).replace("'", "''")
    return f"'{escaped}'"
