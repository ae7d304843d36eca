"""Columns of numbers in a SQLite file, which takes any value in any column: whoever reads a text
there fails."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    column,
    func,
    inspect,
    literal_column,
    select,
    table,
)

_ROW: ColumnElement[int] = literal_column("rowid")
_SHOWN_MAX = 100


@dataclass(frozen=True, slots=True)
class WrongNumbers:
    """What is no number in a column; ``row`` and ``value`` are the first one's."""

    table: str
    column: str
    count: int
    row: int
    value: str

    @property
    def what(self) -> str:
        """Where it stands."""
        others = f", and in {self.count - 1} more" if self.count > 1 else ""
        return f"{self.table}.{self.column} is no number in row {self.row}: {self.value}{others}"

    @property
    def remedy(self) -> str:
        """What to type, for a person."""
        return (
            f"set it right with sqlite3: UPDATE {self.table} SET {self.column} = NUMBER "
            f"WHERE rowid = {self.row}"
        )


def wrong_numbers(connection: Connection) -> Iterator[WrongNumbers]:
    """All of them, column by column; each table is read once."""
    for (_, name), columns in inspect(connection).get_multi_columns().items():
        numbers = [kept["name"] for kept in columns if isinstance(kept["type"], Integer)]
        if not numbers:
            continue
        looked_at = table(name, *map(column, numbers))
        sums = (func.sum(_is_wrong(at), type_=Integer) for at in looked_at.c)
        counts = connection.execute(select(*sums)).one()
        for at, count in zip(looked_at.c, counts, strict=True):
            if count:
                first = select(_ROW, func.quote(at)).where(_is_wrong(at)).order_by(_ROW).limit(1)
                row, value = connection.execute(first.select_from(looked_at)).one()
                yield WrongNumbers(name, at.name, count, row, str(value)[:_SHOWN_MAX])


def _is_wrong(at: ColumnElement[int]) -> ColumnElement[bool]:
    return func.typeof(at).not_in(("integer", "null"))
