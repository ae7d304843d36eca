"""``hms-bridge repl compare``."""

from __future__ import annotations

import getpass
import socket
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.named_sides import NamedSides, named_sides
from hms_bridge.cli.output import print_rows, say
from hms_bridge.cli.progress import working
from hms_bridge.cli.repl_options import (
    Call,
    called,
    depth_options,
    dumps_root_option,
    into_option,
    require_two_databases,
    source_of_database_option,
)
from hms_bridge.clock import SystemClock
from hms_bridge.dml.named import find_database
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.metastore import Metastore
from hms_bridge.model.counted import counted

if TYPE_CHECKING:
    from hms_bridge.repl.compare.described import CompareReport, Finding
    from hms_bridge.repl.compare.table_comparison import CompareRequest, Depth

_COLUMNS = ("verdict", "table", "partition", "what", "source", "replica", "why")


@click.command()
@click.argument("name", metavar="POLICY")
@source_of_database_option
@into_option
@dumps_root_option
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="TABLE",
    help="Compare TABLE only; may be given more than once.",
)
@depth_options
@click.option(
    "--statistics",
    "has_statistics",
    is_flag=True,
    help="Compare column statistics, which no load brings: those of the engine hive.",
)
@called()
def compare(
    name: str,
    source_url: str | None,
    target_database: str | None,
    given_root: str | None,
    tables: tuple[str, ...],
    depth: Depth,
    has_statistics: bool,
    call: Call,
) -> None:
    """Whether the replica of POLICY equals its source, at the event at which it stands.

    --metastore keeps POLICY, which says where both sides are; with --source POLICY is a database
    of the source, and --metastore is the replica's. Both may be at work: what the source committed
    since is left out, and a table that it changed otherwise since is undecided. Compared are
    tables, definitions, constraints, partitions, write ids and files; with --rows also every row
    with its ROW__ID; functions with the bytes of their files; column statistics only with
    --statistics. Places and privileges are not. Exit codes: 0 no difference, 1 error, 2
    differences, 3 no difference, but something is undecided.

    \b
    Examples:
      hms-bridge repl compare sales --rows --table orders
      hms-bridge repl compare sales --metastore sqlite:///replica.db --source sqlite:///source.db
      hms-bridge repl compare sales --into sales_dr --checksums --source thrift://s:9083
    """
    from hms_bridge.repl.compare.table_comparison import CompareRequest

    if source_url is not None:
        require_two_databases((source_url, name), (call.metastore_url, target_database or name))
    sides = named_sides(
        name,
        source_url=source_url,
        call=call,
        target_database=target_database,
        given_root=given_root,
    )
    request = CompareRequest(
        root=sides.root,
        source_database=sides.source_database,
        target_database=sides.target_database,
        tables=tables,
        depth=replace(depth, has_statistics=has_statistics),
        passed_kinds=sides.target_settings.repl.passed_kinds,
        user=getpass.getuser(),
        host=socket.gethostname(),
    )
    report = _compared(request, sides)
    _show(report, call.output_format)
    _say_scope(report, sides, name)
    _say_verdict(report, has_rows=depth.has_rows)
    if report.exit_code:
        raise SystemExit(report.exit_code)


def _compared(request: CompareRequest, sides: NamedSides) -> CompareReport:
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import connected
    from hms_bridge.repl.compare.repl_compare import ReplCompare

    name = request.source_name
    with (
        connected(sides.source_url, sides.source_settings, is_created=False) as source,
        connected(sides.target_url, sides.target_settings, is_created=False) as target,
        working(f"comparing {name}") as show,
    ):
        _require_there("--source", source, name)
        _require_there("--metastore", target, request.target_name)
        return ReplCompare(
            file_systems(sides.target_settings),
            SystemClock(),
            source=source,
            target=target,
            on_table=lambda table: show(f"comparing {name}.{table}"),
        ).run(request)


def _require_there(option: str, metastore: Metastore, database: str) -> None:
    """Raises NoSuchObjectError that names the side, too."""
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


def _show(report: CompareReport, output_format: str) -> None:
    rows = [_row(finding) for finding in report.findings]
    print_rows(rows, _COLUMNS, output_format, shown=_COLUMNS)


def _say_scope(report: CompareReport, sides: NamedSides, name: str) -> None:
    """Which tables that is of; nothing where all are replicated."""
    if not report.scope.is_whole_database:
        say(f"compared is what the replica has, {report.scope.text}")
    if sides.is_of_other_tables(report.scope):
        say(f"note: policy {name} is of other tables by now; its next cycle brings them")


def _say_verdict(report: CompareReport, *, has_rows: bool) -> None:
    """Only of what was looked at."""
    from hms_bridge.repl.compare.described import Verdict

    compared = report.compared
    looked_at = [
        counted(compared.tables, "table"),
        counted(compared.partitions, "partition"),
        f"{counted(compared.files, 'file')} of the source",
        f"{counted(compared.rows, 'row')} of it" if has_rows else "no rows (--rows)",
        counted(compared.constraints, "constraint"),
        counted(compared.functions, "function"),
    ]
    counts = [
        f"{len(findings)} {verdict.value}"
        for verdict in Verdict
        if (findings := report.of(verdict))
    ]
    say(
        f"compared at event {report.event_id} (the source is at {report.source_event_id}): "
        f"{', '.join(looked_at)}; findings: {', '.join(counts) or 'none'}"
    )
