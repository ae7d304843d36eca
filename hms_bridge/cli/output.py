"""How verbs print: a table for people, JSON or JSON lines for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

FORMATS = ("table", "json", "jsonl")


def print_rows(
    rows: Sequence[Mapping[str, object]], columns: Sequence[str], output_format: str
) -> None:
    """Print ``rows``; ``columns`` are the keys to show, in order, also where there are no rows."""
    if output_format == "json":
        click.echo(json.dumps([_plain(row, columns) for row in rows], indent=2))
    elif output_format == "jsonl":
        for row in rows:
            click.echo(json.dumps(_plain(row, columns)))
    else:
        _print_table(rows, columns)


def print_record(record: Mapping[str, object], output_format: str) -> None:
    """Print one record: a two-column table, or one JSON object."""
    if output_format == "table":
        pairs = [{"what": key, "value": value} for key, value in record.items()]
        _print_table(pairs, ("what", "value"))
    elif output_format == "json":
        click.echo(json.dumps(_plain(record, tuple(record)), indent=2))
    else:
        click.echo(json.dumps(_plain(record, tuple(record))))


def say(text: str) -> None:
    """Tell a person something that is no result: it goes to standard error."""
    click.echo(text, err=True)


def time_text(milliseconds: int | None) -> str | None:
    """ISO 8601 in UTC; None stays None."""
    if milliseconds is None or milliseconds <= 0:
        return None
    moment = datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def size_text(size_bytes: int) -> str:
    """``1.5 MiB``."""
    value = float(size_bytes)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} TiB"


def _plain(row: Mapping[str, object], columns: Sequence[str]) -> dict[str, object]:
    return {column: _json_value(row.get(column)) for column in columns}


def _json_value(value: object) -> object:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_json_value(item) for item in value]
    return str(value)


def _print_table(rows: Sequence[Mapping[str, object]], columns: Sequence[str]) -> None:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        is_number = any(isinstance(row.get(column), int | float) for row in rows)
        table.add_column(column, justify="right" if is_number else "left", overflow="fold")
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    is_terminal = sys.stdout.isatty()
    width = None if is_terminal else 10_000
    Console(width=width, soft_wrap=not is_terminal).print(table)
    if not rows:
        say("(none)")


def _cell(value: object) -> Text:
    if value is None:
        return Text("-", style="dim")
    if isinstance(value, list | tuple | dict):
        return Text(json.dumps(_json_value(value), ensure_ascii=False))
    return Text(str(value))
