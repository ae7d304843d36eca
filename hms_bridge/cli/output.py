"""How verbs print: a table for people, JSON or JSON lines for programs."""

from __future__ import annotations

import base64
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import click
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

FORMATS = ("table", "json", "jsonl")
_UNLIMITED_WIDTH = 10_000
_SHORT_WIDTH = 30
_LONG_WIDTH_MIN = 16
_GAPS = (2, 1)
_NOTHING = "-"
"""Stands in a table where there is no value."""

Row = Mapping[str, object]


def print_rows(
    rows: Iterable[Row],
    columns: Sequence[str],
    output_format: str,
    *,
    shown: Sequence[str] | None = None,
    spared: Sequence[str] = (),
    null: str = _NOTHING,
) -> None:
    """Print ``rows``; ``columns`` are the keys to show, in order, also where there are no rows.

    ``shown``: the columns of the table that a person sees, if others; those in which no row has a
    value are left out. ``spared``: those that too narrow a terminal does without, the first one
    first. ``null`` stands for no value there; unless it is a word of its own, such as
    NULL, a terminal that is too narrow leaves out columns without any value, too. JSON lines are
    printed as rows come.
    """
    if output_format == "jsonl":
        for row in rows:
            click.echo(_json(row, columns))
    elif output_format == "json":
        click.echo(_json_array([_json(row, columns) for row in rows]))
    elif shown is None:
        _print_table(list(rows), columns, null, spared)
    else:
        listed = list(rows)
        filled = [c for c in shown if any(row.get(c) is not None for row in listed)]
        _print_table(listed, filled if listed else shown, null, spared)


def print_record(record: Row, output_format: str) -> None:
    """Print one record: a table of two columns without what is empty, or one JSON object."""
    if output_format == "table":
        shown = {key: value for key, value in record.items() if not _is_empty(value)}
        width = _console().width - max(map(cell_len, shown), default=0) - _GAPS[0]
        pairs = [(key, _record_cell(value, width)) for key, value in shown.items()]
        _print_pairs(pairs)
    elif output_format == "json":
        click.echo(json.dumps(_plain(record, tuple(record)), indent=2))
    else:
        click.echo(_json(record, tuple(record)))


_listeners: list[Callable[[str], None]] = []


def say(text: str) -> None:
    """Say something that is no result: it goes to standard error."""
    if _listeners:
        _listeners[-1](text)
    else:
        click.echo(text, err=True)


@contextmanager
def redirected_to(listener: Callable[[str], None]) -> Iterator[None]:
    """What is said goes elsewhere for the length of a block."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


class Moment(str):
    """A moment as ISO 8601 in UTC; a table for people shows it to the second."""

    __slots__ = ()

    @property
    def short(self) -> str:
        """``2026-11-22 01:19:34Z``."""
        return f"{self[:10]} {self[11:19]}Z"


def time_text(milliseconds: int | None) -> Moment | None:
    """ISO 8601 in UTC; None stays None."""
    if milliseconds is None or milliseconds <= 0:
        return None
    moment = datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
    return Moment(moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"))


def size_text(size_bytes: int) -> str:
    """``1.5 MiB``."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def _json(row: Row, columns: Sequence[str]) -> str:
    return json.dumps(_plain(row, columns))


def _json_array(items: Sequence[str]) -> str:
    """One line a row: short enough to look at, and any JSON reader takes it."""
    return "[" + ",".join(f"\n  {item}" for item in items) + ("\n]" if items else "]")


def _plain(row: Row, columns: Sequence[str]) -> dict[str, object]:
    return {column: _json_value(row.get(column)) for column in columns}


def _json_value(value: object) -> object:
    """JSON has fewer types: binary becomes base64; decimals, dates and odd doubles text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _text(value)
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return {_key(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_json_value(item) for item in value]
    return _text(value)


def _key(value: object) -> str:
    plain = _json_value(value)
    return plain if isinstance(plain, str) else json.dumps(plain)


def _text(value: object) -> str:
    """As Hive prints it: a timestamp has no ``T`` and no zeros at its end."""
    if isinstance(value, datetime):
        text = value.isoformat(sep=" ")
        return text.rstrip("0") if value.microsecond and value.tzinfo is None else text
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else f"{'-' if value < 0 else ''}Infinity"
    return str(value)


def _record_cell(value: object, width: int) -> Text:
    """A value of a record; of a list that is too long for a line, each part on one of its own."""
    whole = _cell(_listed(value), _NOTHING)
    if cell_len(whole.plain) <= width or not isinstance(value, list | tuple | Mapping):
        return whole
    parts = value.items() if isinstance(value, Mapping) else value
    texts = (_listed(dict([part]) if isinstance(value, Mapping) else part) for part in parts)
    return Text("\n").join(_cell(text, _NOTHING) for text in texts)


def _listed(value: object) -> object:
    """``a, b`` for a list of plain values, ``a 1, b 2`` for a mapping."""
    if isinstance(value, Mapping):
        return ", ".join(f"{key} {_text(item)}" for key, item in value.items())
    if isinstance(value, list | tuple):
        return ", ".join(_text(item) for item in value)
    return value


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str | list | tuple | dict) and not value)


def _cell(value: object, null: str) -> Text:
    if value is None:
        return Text(null, style="dim")
    if isinstance(value, Moment):
        return Text(value.short)
    if isinstance(value, bytes | bytearray):
        return Text(value.hex(" "))
    if isinstance(value, list | tuple | Mapping):
        return Text(json.dumps(_json_value(value), ensure_ascii=False))
    return Text(printable(_text(value)))


def printable(text: str) -> str:
    """A text for a terminal: line ends and its commands would break a table, or worse."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _print_table(
    rows: Sequence[Row], columns: Sequence[str], null: str, spared: Sequence[str]
) -> None:
    width, gap = _console().width, _gap_of(rows, columns, null, _console().width)
    if rows and gap is None and null == _NOTHING:
        columns = [name for name in columns if any(row.get(name) is not None for row in rows)]
        gap = _gap_of(rows, columns, null, width)
    for spare in spared:
        if gap is not None:
            break
        columns = [name for name in columns if name != spare]
        gap = _gap_of(rows, columns, null, width)
    if rows and gap is None:
        _print_blocks(rows, columns, null)
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, gap or 1, 0, 0))
    for column in columns:
        is_number = any(_is_number(row.get(column)) for row in rows)
        table.add_column(
            column,
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=_width_of(rows, column, null) <= _SHORT_WIDTH,
        )
    for row in rows:
        table.add_row(*(_cell(row.get(column), null) for column in columns))
    _show(table)
    if not rows:
        # To standard error: a program that reads the rows must not take it for one.
        say("(none)")


def _gap_of(rows: Sequence[Row], columns: Sequence[str], null: str, width: int) -> int | None:
    """Blanks between columns with which a table fits; None if it is too wide with one. Long columns
    may be folded, down to a width that can still be read; short ones never."""
    widths = [_width_of(rows, column, null) for column in columns]
    needed = sum(long if long <= _SHORT_WIDTH else _LONG_WIDTH_MIN for long in widths)
    return next((gap for gap in _GAPS if needed + gap * (len(widths) - 1) <= width), None)


def _width_of(rows: Sequence[Row], column: str, null: str) -> int:
    return max(cell_len(column), *(cell_len(_cell(row.get(column), null).plain) for row in rows), 0)


def _print_blocks(rows: Sequence[Row], columns: Sequence[str], null: str) -> None:
    """A row that is wider than the terminal reads better from top to bottom, without what it has
    not."""
    for number, row in enumerate(rows, start=1):
        _show(Text(f"-- {number}", style="dim"))
        names = [name for name in columns if null != _NOTHING or row.get(name) is not None]
        _print_pairs([(name, _cell(row.get(name), null)) for name in names])


def _print_pairs(pairs: Sequence[tuple[str, Text]]) -> None:
    table = Table(box=None, pad_edge=False, show_header=False, padding=(0, _GAPS[0], 0, 0))
    table.add_column(style="bold", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in pairs:
        table.add_row(Text(name), value)
    _show(table)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _console() -> Console:
    """As wide as the terminal; without one, lines are never folded."""
    is_terminal = sys.stdout.isatty()
    return Console(
        file=sys.stdout,
        width=None if is_terminal else _UNLIMITED_WIDTH,
        soft_wrap=not is_terminal,
        highlight=False,
    )


def _show(what: Table | Text) -> None:
    console = _console()
    if console.is_terminal:
        console.print(what)
        return
    # rich pads every cell; a line in a file or pipe ends with its last word.
    with console.capture() as captured:
        console.print(what)
    for line in captured.get().splitlines():
        click.echo(line.rstrip())
