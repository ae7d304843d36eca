"""``hms-bridge sql``."""

from __future__ import annotations

import getpass
import socket
import sys
from collections.abc import Sequence
from contextlib import closing
from itertools import chain
from pathlib import Path

import click

from hms_bridge.cli.options import format_option, metastore_option, settings_options
from hms_bridge.cli.output import print_rows, say
from hms_bridge.cli.spark_options import spark_options, started
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import Settings
from hms_bridge.dml.named import find_database
from hms_bridge.errors import DmlError
from hms_bridge.spark.request import SparkRequest


@click.command()
@click.option("-e", "--execute", "texts", multiple=True, metavar="SQL", help="Statements to run.")
@click.option(
    "-f",
    "--file",
    "path",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A file of statements.",
)
@click.option(
    "--in", "database", default="default", show_default=True, help="The current database."
)
@metastore_option
@format_option
@spark_options
@settings_options
def sql(
    texts: tuple[str, ...],
    path: Path | None,
    database: str,
    metastore_url: str,
    output_format: str,
    spark: SparkRequest,
    settings: Settings,
) -> None:
    """Run SQL on full ACID tables: SELECT (with ROW__ID), INSERT, UPDATE, DELETE, and
    CREATE, DROP, SHOW, DESCRIBE, USE. Statements, separated by ;, come from -e, then --file, else
    from standard input. Each is a transaction; the first that fails ends the run.

    With --format json each query gives one array. There, and in JSON lines, decimals, dates and
    timestamps are text, binary is base64, and a struct is an object.

    \b
    Examples:
      hms-bridge sql -e "SELECT ROW__ID, * FROM sales.orders"
      hms-bridge sql --metastore thrift://127.0.0.1:9083 --in sales -f changes.sql
      echo "SHOW TABLES" | hms-bridge sql --format json
      hms-bridge sql --master spark://HOST:7077 --spark spark.executor.memory=4g -f changes.sql
    """
    statements = _statements(texts, path)
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import connected
    from hms_bridge.session.transaction import Client
    from hms_bridge.spark.sql_session import SqlSession

    with connected(metastore_url, settings, is_created=False) as metastore:
        if database.lower() != "default":
            find_database(metastore, database.lower())
        session = SqlSession(
            metastore,
            open_spark=started(spark, "hms-bridge sql"),
            resolver=file_systems(settings),
            client=Client(user=getpass.getuser(), host=socket.gethostname()),
            clock=SystemClock(),
            database=database.lower(),
            hadoop=settings.hadoop,
        )
        with closing(session):
            for result in chain.from_iterable(map(session.run, statements)):
                if result.columns:
                    names = _distinct(result.columns)
                    rows = (dict(zip(names, row, strict=True)) for row in result.rows)
                    print_rows(rows, names, output_format, null="NULL")
                if result.message:
                    say(result.message)


def _statements(texts: Sequence[str], path: Path | None) -> list[str]:
    statements = list(texts)
    if path is not None:
        statements.append(_read(path))
    if not statements and sys.stdin.isatty():
        raise click.UsageError("give statements with -e or --file, or on standard input")
    if not statements:
        statements.append(sys.stdin.read())
    if not any(text.strip() for text in statements):
        raise click.UsageError("there is no statement in what was given")
    return statements


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DmlError(f"cannot read {path}: {error}; write the statements in UTF-8") from error


def _distinct(columns: Sequence[str]) -> tuple[str, ...]:
    """``id``, ``id_2``: a join has names twice, an object of JSON must not."""
    names: list[str] = []
    for column in columns:
        name, number = column, 1
        while name in names:
            number += 1
            name = f"{column}_{number}"
        names.append(name)
    return tuple(names)
