"""``hms-bridge repl drill``."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import click

from hms_bridge.cli.options import (
    dry_run_option,
    format_option,
    metastore_option,
    settings_options,
)
from hms_bridge.cli.output import print_record, say
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import Settings
from hms_bridge.dml.named import find_database

if TYPE_CHECKING:
    from hms_bridge.repl.compare.described import CompareReport
    from hms_bridge.repl.drill.plan import DrillPlan, DrillReport, DrillRequest

_FINDINGS_SAID = 20
_VERDICTS = {0: "equal", 2: "different", 3: "undecided"}


@click.command()
@click.argument("source_database", metavar="DATABASE")
@click.option(
    "--source", "source_url", metavar="URL", required=True, help="The source's metastore."
)
@click.option("--root", "given_root", metavar="DIR", help="Where dumps are.  [default: setting]")
@click.option(
    "--scratch",
    metavar="NAME",
    help="Database that the drill makes, and removes.  [default: drill_of_DATABASE]",
)
@click.option("--checksums", "has_checksums", is_flag=True, help="Compare every byte of files.")
@click.option("--rows", "has_rows", is_flag=True, help="Compare every row of ACID tables.")
@click.option("--keep", "is_kept", is_flag=True, help="Leave the scratch database there.")
@dry_run_option
@metastore_option
@format_option
@settings_options
def drill(
    source_database: str,
    source_url: str,
    given_root: str | None,
    scratch: str | None,
    has_checksums: bool,
    has_rows: bool,
    is_kept: bool,
    is_dry_run: bool,
    metastore_url: str,
    output_format: str,
    settings: Settings,
) -> None:
    """Load what is kept of DATABASE's replication into a scratch database, and compare.

    The newest bootstrap dump and all that follow on it are loaded; where they are not kept any
    more, or lack files, a bootstrap dump is made for the drill. --metastore is the replica's.
    Neither replica nor dumps are touched, and the scratch database goes afterwards; what a drill
    that was killed left, the next one removes. Exit codes: as repl compare.

    \b
    Examples:
      hms-bridge repl drill sales --metastore thrift://replica:9083 --source sqlite:///source.db
      hms-bridge repl drill sales --rows --format json --source sqlite:///source.db
      hms-bridge repl drill sales --dry-run --source sqlite:///source.db
    """
    from hms_bridge.cli.repl_requests import drill_request
    from hms_bridge.cli.sides import source_side
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import connected
    from hms_bridge.repl.drill.repl_drill import ReplDrill

    request = drill_request(
        source_database,
        settings,
        root=given_root,
        scratch=scratch,
        has_checksums=has_checksums,
        has_rows=has_rows,
        is_kept=is_kept,
    )
    with (
        source_side(source_url, settings) as (source, manifest),
        connected(metastore_url, settings, is_created=False) as target,
    ):
        find_database(source, source_database)
        drilling = ReplDrill(
            file_systems(settings),
            SystemClock(),
            lambda: str(uuid4()),
            source=source,
            target=target,
            manifest=manifest,
            tell=say,
        )
        plan = drilling.plan(request)
        if is_dry_run:
            print_record(_planned(plan), output_format)
            return
        report = drilling.run(plan)
    print_record(_found(report, request), output_format)
    _say_findings(report.compared)
    if report.compared.exit_code:
        raise SystemExit(report.compared.exit_code)


def _planned(plan: DrillPlan) -> dict[str, object]:
    left = plan.left_behind
    return {
        "kind": plan.kind.value,
        "reason": plan.reason,
        "dumps": list(plan.dumps),
        "files": plan.file_count,
        "bytes": plan.byte_count,
        "scratch_database": plan.scratch.database,
        "scratch_dir": plan.scratch.place,
        "removed_first": [left.database, left.place] if left else [],
    }


def _found(report: DrillReport, request: DrillRequest) -> dict[str, object]:
    """Numbers are numbers, with their unit in the name where it is not a count."""
    from hms_bridge.repl.compare.described import Verdict

    compared = report.compared
    return {
        "verdict": _VERDICTS[compared.exit_code],
        "kind": report.plan.kind.value,
        "reason": report.plan.reason,
        "rpo_seconds": report.rpo_seconds,
        "rto_seconds": report.rto_seconds,
        "dump_seconds": report.dump_seconds,
        "compare_seconds": report.compare_seconds,
        "event_id": compared.event_id,
        "source_event_id": compared.source_event_id,
        "dumps": report.dump_count,
        "events": report.event_count,
        "files": report.file_count,
        "bytes": report.byte_count,
        "tables": compared.compared.tables,
        "partitions": compared.compared.partitions,
        "rows": compared.compared.rows if request.depth.has_rows else None,
        "differences": len(compared.of(Verdict.DIFFERENT)),
        "undecided": len(compared.of(Verdict.UNDECIDED)),
        "kept_database": report.plan.scratch.database if request.is_kept else None,
    }


def _say_findings(compared: CompareReport) -> None:
    """What is not equal, the differences first."""
    from hms_bridge.repl.compare.described import Verdict

    told = (*compared.of(Verdict.DIFFERENT), *compared.of(Verdict.UNDECIDED))
    for finding in told[:_FINDINGS_SAID]:
        place = "/".join(part for part in (finding.table, finding.partition) if part)
        sides = f"source {finding.source or '-'}, drill {finding.replica or '-'}"
        why = finding.why or sides
        say(f"{finding.verdict.value}: {place or 'database'}: {finding.what}: {why}")
    if len(told) > _FINDINGS_SAID:
        say(f"and {len(told) - _FINDINGS_SAID} more; drill with --keep, then repl compare --into")
