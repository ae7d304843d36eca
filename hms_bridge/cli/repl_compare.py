"""``hms-bridge repl compare``."""

from __future__ import annotations

import getpass
import socket
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.options import format_option, metastore_option, settings_options
from hms_bridge.cli.output import print_rows, say
from hms_bridge.cli.progress import working
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import Settings
from hms_bridge.dml.named import find_database
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.metastore import Metastore
from hms_bridge.model.counted import counted

if TYPE_CHECKING:
    from hms_bridge.repl.compare.described import CompareReport, Finding
    from hms_bridge.repl.compare.repl_compare import CompareRequest

_COLUMNS = ("verdict", "table", "partition", "what", "source", "replica", "why")


@click.command()
@click.argument("source_database", metavar="DATABASE")
@click.option(
    "--source", "source_url", metavar="URL", required=True, help="The source's metastore."
)
@click.option("--into", "target_database", help="Database of the replica.  [default: the same]")
@click.option("--root", "given_root", metavar="DIR", help="Where dumps are.  [default: setting]")
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="TABLE",
    help="Compare TABLE only; may be given more than once.",
)
@click.option(
    "--checksums",
    "has_checksums",
    is_flag=True,
    help="Compare every byte of files that both sides have, also where the file system keeps no "
    "checksums.",
)
@click.option("--rows", "has_rows", is_flag=True, help="Read and compare every row of ACID tables.")
@click.option(
    "--statistics",
    "has_statistics",
    is_flag=True,
    help="Compare column statistics, which no load brings: those of the engine hive.",
)
@metastore_option
@format_option
@settings_options
def compare(
    source_database: str,
    source_url: str,
    target_database: str | None,
    given_root: str | None,
    tables: tuple[str, ...],
    has_checksums: bool,
    has_rows: bool,
    has_statistics: bool,
    metastore_url: str,
    output_format: str,
    settings: Settings,
) -> None:
    """Whether the replica of DATABASE equals its source, at the event at which it stands.

    --metastore is the replica's. Both may be at work: what the source committed since is left
    out, and a table that it changed otherwise since is undecided. Compared are tables,
    definitions, constraints, partitions, write ids and files; with --rows also every row with its
    ROW__ID; functions with the bytes of their files; column statistics only with --statistics.
    Places and privileges are not. Exit codes: 0 no difference, 1 error, 2 differences, 3 no
    difference, but something is undecided.

    \b
    Examples:
      hms-bridge repl compare sales --metastore sqlite:///replica.db --source sqlite:///source.db
      hms-bridge repl compare sales --rows --table orders --source sqlite:///source.db
      hms-bridge repl compare sales --into sales_dr --checksums --source thrift://s:9083
    """
    from hms_bridge.cli.repl_requests import repl_root
    from hms_bridge.repl.compare.repl_compare import CompareRequest
    from hms_bridge.repl.compare.table_comparison import Depth

    target = target_database or source_database
    if source_url == metastore_url and target.lower() == source_database.lower():
        raise click.UsageError(
            "--source and --metastore name one metastore, and there one database"
        )
    request = CompareRequest(
        root=repl_root(given_root, settings),
        source_database=source_database,
        target_database=target_database,
        tables=tables,
        depth=Depth(has_checksums=has_checksums, has_rows=has_rows, has_statistics=has_statistics),
        passed_kinds=settings.repl.passed_kinds,
        user=getpass.getuser(),
        host=socket.gethostname(),
    )
    report = _compared(request, source_url, metastore_url, settings)
    rows = [_row(finding) for finding in report.findings]
    print_rows(rows, _COLUMNS, output_format, shown=_COLUMNS)
    if not report.scope.is_whole_database:
        say(f"compared is what the replica has, {report.scope.text}")
    _say_verdict(report, has_rows=has_rows)
    if report.exit_code:
        raise SystemExit(report.exit_code)


def _compared(
    request: CompareRequest, source_url: str, target_url: str, settings: Settings
) -> CompareReport:
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import connected
    from hms_bridge.repl.compare.repl_compare import ReplCompare

    name = request.source_name
    with (
        connected(source_url, settings, is_created=False) as source,
        connected(target_url, settings, is_created=False) as target,
        working(f"comparing {name}") as show,
    ):
        _require_there("--source", source, name)
        _require_there("--metastore", target, request.target_name)
        return ReplCompare(
            file_systems(settings),
            SystemClock(),
            source=source,
            target=target,
            on_table=lambda table: show(f"comparing {name}.{table}"),
        ).run(request)


def _require_there(option: str, metastore: Metastore, database: str) -> None:
    """Raises NoSuchObjectError that tells on which side, too."""
    try:
        find_database(metastore, database)
    except NoSuchObjectError as error:
        raise NoSuchObjectError(f"{option}: {error}") from error


def _row(finding: Finding) -> dict[str, object]:
    return {
        "verdict": finding.verdict.value,
        "table": finding.table,
        "partition": finding.partition,
        "what": finding.what,
        "source": finding.source,
        "replica": finding.replica,
        "why": finding.why or None,
    }


def _say_verdict(report: CompareReport, *, has_rows: bool) -> None:
    """Only of what was looked at."""
    from hms_bridge.repl.compare.described import Verdict

    compared = report.compared
    looked_at = [
        counted(compared.tables, "table"),
        counted(compared.partitions, "partition"),
        counted(compared.files, "file"),
        counted(compared.rows, "row") if has_rows else "no rows (--rows)",
        counted(compared.constraints, "constraint"),
        counted(compared.functions, "function"),
    ]
    counts = [
        f"{len(found)} {verdict.value}" for verdict in Verdict if (found := report.of(verdict))
    ]
    say(
        f"compared at event {report.event_id} (the source is at {report.source_event_id}): "
        f"{', '.join(looked_at)}; findings: {', '.join(counts) or 'none'}"
    )
