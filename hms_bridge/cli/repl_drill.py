"""``hms-bridge repl drill``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.dump_jobs import new_name
from hms_bridge.cli.named_sides import NamedSides, named_sides
from hms_bridge.cli.origin_options import places_of_source
from hms_bridge.cli.output import say
from hms_bridge.cli.repl_options import (
    Call,
    called,
    depth_options,
    dumps_root_option,
    source_of_database_option,
)
from hms_bridge.cli.sides import source_side
from hms_bridge.clock import SystemClock
from hms_bridge.dml.named import find_database

if TYPE_CHECKING:
    from hms_bridge.repl.compare.described import CompareReport
    from hms_bridge.repl.compare.table_comparison import Depth
    from hms_bridge.repl.drill.plan import DrillPlan, DrillReport, DrillRequest
    from hms_bridge.repl.drill.repl_drill import ReplDrill

_FINDINGS_SAID = 20
_VERDICTS = {0: "equal", 2: "different", 3: "undecided"}


@click.command()
@click.argument("name", metavar="POLICY")
@source_of_database_option
@dumps_root_option
@click.option(
    "--scratch",
    metavar="NAME",
    help="Database that the drill makes, and removes.  [default: drill_of_DATABASE]",
)
@depth_options
@click.option("--keep", "is_kept", is_flag=True, help="Leave the scratch database there.")
@called(has_plan=True)
def drill(
    name: str,
    source_url: str | None,
    given_root: str | None,
    scratch: str | None,
    depth: Depth,
    is_kept: bool,
    call: Call,
) -> None:
    """Load what is kept of POLICY's replication into a scratch database, and compare.

    The newest bootstrap dump and all that follow on it are loaded; where they are not kept any
    more, or lack files, a bootstrap dump is made for the drill. --metastore keeps POLICY, which
    says where both sides are; with --source POLICY is a database of the source, and --metastore is
    the replica's. Neither replica nor dumps are touched, and the scratch database goes afterwards;
    what a drill that was killed left, the next one removes. Exit codes: as repl compare.

    \b
    Examples:
      hms-bridge repl drill sales --dry-run
      hms-bridge repl drill sales --rows --format json
      hms-bridge repl drill sales --metastore thrift://replica:9083 --source sqlite:///source.db
    """
    from hms_bridge.cli.repl_requests import drill_request

    sides = named_sides(
        name,
        source_url=source_url,
        call=call,
        given_root=given_root,
    )
    request = drill_request(
        sides.source_database,
        sides.source_settings,
        sides.target_settings,
        root=sides.root,
        scratch=scratch,
        depth=depth,
        is_kept=is_kept,
    )
    with _opened(request, sides) as drilling:
        plan = drilling.plan(request)
        if sides.is_of_other_tables(plan.scope):
            say(f"note: policy {name} is of other tables by now; its next dump has them")
        if call.is_dry_run:
            call.print_record(_planned(plan))
            return
        report = drilling.run(plan)
    call.print_record(_report_record(report, request))
    _say_findings(report.compared)
    if report.compared.exit_code:
        raise SystemExit(report.compared.exit_code)


@contextmanager
def _opened(request: DrillRequest, sides: NamedSides) -> Iterator[ReplDrill]:
    """Both sides. Raises NoSuchObjectError for a database that the source does not have."""
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import connected
    from hms_bridge.repl.drill.repl_drill import ReplDrill

    with (
        source_side(sides.source_url, sides.source_settings) as (source, manifest),
        connected(sides.target_url, sides.target_settings, is_created=False) as target,
    ):
        find_database(source, request.dump.database)
        yield ReplDrill(
            file_systems(sides.target_settings),
            SystemClock(),
            new_name,
            source=source,
            target=target,
            manifest=manifest,
            places=places_of_source(source, sides.source_settings),
            say=say,
        )


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


def _report_record(report: DrillReport, request: DrillRequest) -> dict[str, object]:
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

    findings = (*compared.of(Verdict.DIFFERENT), *compared.of(Verdict.UNDECIDED))
    for finding in findings[:_FINDINGS_SAID]:
        place = "/".join(part for part in (finding.table, finding.partition) if part)
        sides = f"source {finding.source or '-'}, drill {finding.replica or '-'}"
        why = finding.why or sides
        say(f"{finding.verdict.value}: {place or 'database'}: {finding.what}: {why}")
    if len(findings) > _FINDINGS_SAID:
        more = len(findings) - _FINDINGS_SAID
        say(f"and {more} more; drill with --keep, then repl compare --into")
