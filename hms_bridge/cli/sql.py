"""``hms-bridge sql``."""

from __future__ import annotations

import getpass
import socket
import sys
from pathlib import Path

import click

from changemanager.location import FsspecResolver
from hms_bridge.cli.options import format_option, metastore_option, settings_options
from hms_bridge.cli.output import print_rows, say
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import Settings
from hms_bridge.connect import connected, shareable_url


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
@settings_options
def sql(
    texts: tuple[str, ...],
    path: Path | None,
    database: str,
    metastore_url: str,
    output_format: str,
    settings: Settings,
) -> None:
    """Run SQL on full ACID tables: SELECT (with ROW__ID), INSERT, UPDATE, DELETE, and
    CREATE, DROP, SHOW, DESCRIBE. Statements come from -e, --file or standard input.

    \b
    Examples:
      hms-bridge sql -e "SELECT ROW__ID, * FROM sales.orders"
      hms-bridge sql --metastore thrift://127.0.0.1:9083 --in sales -f changes.sql
      echo "SHOW TABLES" | hms-bridge sql --format json
    """
    statements = list(texts)
    if path is not None:
        statements.append(path.read_text())
    if not statements:
        if sys.stdin.isatty():
            raise click.UsageError("give statements with -e or --file, or on standard input")
        statements.append(sys.stdin.read())
    from hms_bridge.rows.transaction import Client
    from hms_bridge.spark.session import open_session
    from hms_bridge.spark.sql_session import SqlSession

    with connected(metastore_url, settings) as metastore:
        session = SqlSession(
            metastore,
            shareable_url(metastore_url),
            open_spark=open_session,
            resolver=FsspecResolver(),
            client=Client(user=getpass.getuser(), host=socket.gethostname()),
            clock=SystemClock(),
            database=database.lower(),
        )
        for text in statements:
            for result in session.run(text):
                if result.columns:
                    rows = [dict(zip(result.columns, row, strict=True)) for row in result.rows]
                    print_rows(rows, result.columns, output_format)
                if result.message:
                    say(result.message)
