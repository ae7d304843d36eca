"""Rows and records, both ways, from one table: each field of a record, and its column.

::

    _FILE = Columns(
        IntentFile,
        path="PATH",
        size_bytes="SIZE_BYTES",
        state=member("STATE", FileState),
    )

A bare name means that the value is the same in both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import Enum
from operator import attrgetter
from typing import Any, Generic, TypeVar

from sqlalchemy import Row

RecordT = TypeVar("RecordT")
Converter = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Kept:
    """A field's column, and what becomes of its value on either way; None: it stays as it is."""

    column: str
    read: Converter | None = None
    write: Converter | None = None


class Columns(Generic[RecordT]):
    """Where two fields of a record, or more, stand; a record within it has columns of the same row.

    Raises TypeError for a field that the record does not have.
    """

    def __init__(self, record: type[RecordT], **kept: str | Kept | Columns[Any]) -> None:
        unknown = kept.keys() - {field.name for field in fields(record)}  # type: ignore[arg-type]
        if unknown:
            raise TypeError(f"{record.__name__} has no field {', '.join(sorted(unknown))}")
        self._record = record
        self._inner = {name: at for name, at in kept.items() if isinstance(at, Columns)}
        plain = {
            name: Kept(at) if isinstance(at, str) else at
            for name, at in kept.items()
            if not isinstance(at, Columns)
        }
        self._names = tuple(plain)
        self._columns = tuple(at.column for at in plain.values())
        # C code moves all values at once, and only those that change are touched one by one.
        self._of_record = attrgetter(*self._names)
        self._of_row = attrgetter(*self._columns)
        self._writes = [(at.column, at.write) for at in plain.values() if at.write is not None]
        self._reads = [(name, at.read) for name, at in plain.items() if at.read is not None]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in the order of the table, without those of records within."""
        return self._columns

    def values(self, record: RecordT) -> dict[str, Any]:
        """The row's values, in the order of the table."""
        values: dict[str, Any] = dict(zip(self._columns, self._of_record(record), strict=True))
        for column, write in self._writes:
            values[column] = write(values[column])
        for name, inner in self._inner.items():
            values |= inner.values(getattr(record, name))
        return values

    def read(self, row: Row[Any], **beside: Any) -> RecordT:
        """The record of a row; ``beside``: fields that stand elsewhere."""
        given: dict[str, Any] = dict(zip(self._names, self._of_row(row), strict=True))
        for name, read in self._reads:
            given[name] = read(given[name])
        for name, inner in self._inner.items():
            given[name] = inner.read(row)
        return self._record(**given, **beside)


def member(column: str, kind: type[Enum]) -> Kept:
    """A member of an enum, by its value."""
    return Kept(column, kind, attrgetter("value"))


def name_or_none(column: str, kind: type[Enum]) -> Kept:
    """A member of an enum, by its name; None for none, and for an empty text."""
    return Kept(
        column,
        lambda name: kind[name] if name else None,
        lambda value: None if value is None else value.name,
    )


def flag(column: str) -> Kept:
    """True and false, as 1 and 0."""
    return Kept(column, bool, int)


def text(column: str) -> Kept:
    """A text; empty for none."""
    return Kept(column, lambda value: value or "")
