"""``hms-bridge repl``."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.copy_options import CopyOptions, copy_job, copy_options
from hms_bridge.cli.dump_jobs import dump_job
from hms_bridge.cli.dump_options import DumpOptions, dump_options
from hms_bridge.cli.origin_options import (
    OriginOptions,
    asked_source,
    origin_options,
    typed_again,
)
from hms_bridge.cli.output import say
from hms_bridge.cli.progress import bytes_bar, working
from hms_bridge.cli.repl_compare import compare
from hms_bridge.cli.repl_drill import drill
from hms_bridge.cli.repl_expire import expire
from hms_bridge.cli.repl_handover import failback, promote
from hms_bridge.cli.repl_lag import lag
from hms_bridge.cli.repl_options import Call, called, dumps_root_option, into_option
from hms_bridge.cli.repl_part import end_part, open_replica
from hms_bridge.cli.repl_policy import policy
from hms_bridge.cli.repl_repair import repair
from hms_bridge.cli.repl_run import history, run
from hms_bridge.cli.repl_status import status
from hms_bridge.cli.repl_verify import verify
from hms_bridge.dml.named import find_database
from hms_bridge.errors import NoSuchObjectError
from hms_bridge.metastore import Metastore
from hms_bridge.model.counted import counted
from hms_bridge.model.repl_scope import ReplScope

if TYPE_CHECKING:
    from hms_bridge.repl.dump.plan import DumpPlan, DumpReport, DumpRequest
    from hms_bridge.repl.dump.repl_dump import ReplDump
    from hms_bridge.repl.dump.size import DumpSize
    from hms_bridge.repl.load.admission import SourcePlaces
    from hms_bridge.repl.load.plan import LoadPlan, LoadReport, LoadRequest


_NEWEST = "//"
"""What no dump is called, and what an unset variable of a script does not give."""


@click.group()
def repl() -> None:
    """Replicate a database: dump it here, verify, load it there.

    \b
    Example:
      hms-bridge repl dump sales --metastore sqlite:///source.db --root /dr/dumps
      hms-bridge repl verify /dr/dumps/c2FsZXM=/7f3c…
      hms-bridge repl load sales --metastore sqlite:///replica.db --root /dr/dumps
    """


@repl.command()
@click.argument("covered", metavar="DATABASE")
@dump_options
@click.option(
    "--discard",
    "discarded",
    is_flag=False,
    flag_value=_NEWEST,
    metavar="[DUMP]",
    help="End a dump that nobody wants (the newest, or the one named), instead of making one: "
    "its pins and its directory go.",
)
@called(has_plan=True)
def dump(covered: str, asked: DumpOptions, discarded: str | None, call: Call) -> None:
    """Dump DATABASE: a bootstrap at first, then what happened since the last dump.

    DATABASE may be Hive's "db.'include'.'exclude'": only tables whose whole names the first
    regular expression fits and the second does not. A name alone goes on as the dump before.

    \b
    Examples:
      hms-bridge repl dump sales --metastore sqlite:///source.db --root /dr/dumps
      hms-bridge repl dump sales --bootstrap --wait 10m --abort-writers
      hms-bridge repl dump sales --external-base hdfs://dr:8020/external
      hms-bridge repl dump sales --dry-run
      hms-bridge repl dump sales --limit 100000
      hms-bridge repl dump sales --table-anew orders --table-anew items
      hms-bridge repl dump "sales.'orders_.*'.'.*_tmp'"
      hms-bridge repl dump "sales.'orders_.*|items'.'.*_tmp'" --change-scope
      hms-bridge repl dump sales --discard --dry-run
    """
    from hms_bridge.cli.repl_discard import discard_dump
    from hms_bridge.cli.repl_requests import discard_request, dump_request

    scope = ReplScope.parse(covered)
    database = scope.database_name
    if discarded is not None:
        if asked != DumpOptions(root=asked.root) or not scope.is_whole_database:
            raise click.UsageError(
                "--discard makes no dump; give patterns, and options other than --root, to the next"
            )
        named = _named_dump(discarded)
        discard_dump(discard_request(database, call.settings, root=asked.root, dump=named), call)
        return
    if asked.is_bootstrap_forced and asked.tables_anew:
        raise click.UsageError("--bootstrap brings all tables whole; leave --table-anew out")
    goes_on = scope.is_whole_database and not asked.is_scope_changed
    _dump(dump_request(database, call.settings, asked, scope=None if goes_on else scope), call)


def _named_dump(discarded: str) -> str | None:
    """The dump that --discard names; None for the newest. Raises UsageError for none."""
    if not discarded:
        raise click.UsageError("--discard '' names no dump; for the newest leave '' out")
    return None if discarded == _NEWEST else discarded


def _dump(request: DumpRequest, call: Call) -> None:
    from hms_bridge.repl.dump.plan import DumpKind
    from hms_bridge.repl.dump.repl_dump import ReplDump

    database = request.database
    with call.source() as (metastore, manifest):
        dumper = dump_job(ReplDump, metastore, manifest, call.settings)
        with nullcontext() if call.is_dry_run else dumper.marking(request):
            with working(f"looking at {database}"):
                plan = _planned(dumper, request, metastore)
            if call.is_dry_run:
                call.print_record(_dump_plan(plan, dumper.size(plan)))
                return
            with working(f"dumping {database}"):
                report = dumper.run(plan)
    shown = _dump_report(report)
    if report.kind is DumpKind.BLOCKED and call.output_format == "table":
        del shown["reason"]  # a person reads it below
    call.print_record(shown)
    if report.left_event_count:
        say(f"{counted(report.left_event_count, 'event')} of the log left for the next dump")
    for write in report.events.assumed_empty:
        say(f"dumped as empty: {write}")
    if report.kind is DumpKind.BLOCKED:
        say(report.reason)
        raise SystemExit(1)


def _planned(dumper: ReplDump, request: DumpRequest, metastore: Metastore) -> DumpPlan:
    """Raises NoSuchObjectError, with names that are like it, for a database that is not there and
    of which no dump says that it was."""
    try:
        return dumper.plan(request)
    except NoSuchObjectError:
        find_database(metastore, request.database)
        raise


def _dump_plan(plan: DumpPlan, size: DumpSize) -> dict[str, object]:
    return {
        "kind": plan.kind.value,
        "reason": plan.reason,
        "scope": plan.scope_now.text,
        "after event": plan.after_event_id,
        "until event": plan.until_event_id,
        "tables": list(plan.tables or plan.anew),
        "events": dict(plan.events.dumped),
        "passed over": dict(plan.events.passed),
        "files": size.file_count,
        "bytes": size.size_bytes,
        "previous dump": plan.previous,
        "goes on with": None if plan.resumed is None else plan.resumed.directory,
        "events written": None if plan.resumed is None else len(plan.resumed.written),
        "removed": list(plan.removed),
        "waits for": plan.waits_for or None,
        "events left": plan.left_event_count,
    }


def _dump_report(report: DumpReport) -> dict[str, object]:
    return {
        "kind": report.kind.value,
        "reason": report.reason,
        "dump_dir": report.directory,
        "last_repl_id": report.last_event_id,
        "scope": None if report.scope is None else report.scope.text,
        "tables": list(report.tables),
        "events": dict(report.events.dumped),
        "passed over": dict(report.events.passed),
        "files": report.file_count,
        "events left": report.left_event_count,
    }


@repl.command()
@click.argument("source_database", metavar="DATABASE")
@into_option
@dumps_root_option
@click.option(
    "--external-base",
    metavar="DIR",
    help="Where the replica keeps data of external tables.  [default: setting]",
)
@copy_options
@origin_options
@click.option(
    "--allow-drop-database",
    "is_drop_allowed",
    is_flag=True,
    help="Drop the replica's database, with all that it holds, if the source has dropped its own.",
)
@called(has_plan=True)
def load(
    source_database: str,
    target_database: str | None,
    given_root: str | None,
    external_base: str | None,
    copying: CopyOptions,
    origin: OriginOptions,
    is_drop_allowed: bool,
    call: Call,
) -> None:
    """Load the newest dump of DATABASE into the replica's metastore.

    Every file is looked for first; if one is missing, nothing is changed. Its bytes are checked as
    they are copied, and before that where names are used again or where it takes no reading. A load
    that was stopped goes on: a file that is whole at the replica is not copied again.

    A dump is not believed about where its files are. They are read below directories that you name
    at the first load (--files-from, --source, or --trust-origin after a look at what is shown), and
    that the replica's database notes for the next ones.

    \b
    Examples:
      hms-bridge repl load sales --bandwidth 50MiB --metastore thrift://replica:9083
      hms-bridge repl load sales --metastore sqlite:///replica.db --root /dr/dumps --trust-origin
      hms-bridge repl load sales --files-from hdfs://nn:8020/warehouse --files-from hdfs://nn:8020/cm
      hms-bridge repl load sales --source thrift://source:9083
      hms-bridge repl load sales --external-base hdfs://dr:8020/external
      hms-bridge repl load sales --copy-with spark --master spark://HOST:7077
      hms-bridge repl load sales --into sales_dr --dry-run
    """
    from hms_bridge.cli.repl_requests import load_request

    request = load_request(
        source_database,
        call.settings,
        target_database=target_database,
        root=given_root,
        external_base=external_base,
        copying=copying,
        is_drop_allowed=is_drop_allowed,
        origin=origin,
        naming_command=typed_again,
    )
    with asked_source(origin, call.settings) as source:
        _load(request, copying, source, call)


def _load(
    request: LoadRequest, copying: CopyOptions, source: SourcePlaces | None, call: Call
) -> None:
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import connected, policies_of
    from hms_bridge.repl.load.repl_load import ReplLoad

    resolve = file_systems(call.settings)
    with connected(call.metastore_url, call.settings, is_created=not call.is_dry_run) as metastore:
        roots_note = policies_of(metastore)
        planner = ReplLoad(metastore, resolve, note=roots_note, source=source)
        with (
            nullcontext() if call.is_dry_run else planner.marking(request),
            working("looking for the files of the dump"),
        ):
            plan = planner.plan(request)
        if call.is_dry_run:
            call.print_record(_load_plan(plan))
            return
        size_bytes = plan.files.size_bytes if plan.files else 0
        with (
            copy_job(copying, call.settings) as job,
            bytes_bar(f"loading {request.source_database}", size_bytes) as advance,
        ):
            loader = ReplLoad(
                metastore, resolve, note=roots_note, job=job, on_copied=advance, on_waiting=say
            )
            report = loader.run(plan)
    call.print_record(_load_report(report))
    for note in report.notes:
        say(f"note: {note}")


def _load_plan(plan: LoadPlan) -> dict[str, object]:
    from changemanager.whereabouts import Whereabouts

    files = plan.files
    return {
        "kind": plan.kind.value,
        "reason": plan.reason,
        "dump_dir": plan.directory,
        "stands at event": plan.stands_at,
        "until event": plan.last_event_id,
        "tables": list(plan.tables),
        "events": dict(plan.events),
        "passed over": dict(plan.passed),
        "files": len(files.files) if files else 0,
        "from the archive": files.count(Whereabouts.IN_CM) if files else 0,
        "bytes": files.size_bytes if files else 0,
    }


def _load_report(report: LoadReport) -> dict[str, object]:
    return {
        "kind": report.kind.value,
        "reason": report.reason,
        "database": report.target_database,
        "last_repl_id": report.last_event_id,
        "tables": list(report.tables),
        "events": dict(report.events),
        "passed over": dict(report.passed),
        "files from source": report.copied.source_files,
        "files from the archive": report.copied.archive_files,
        "files kept": report.copied.kept,
        "files by Spark": report.copied.by_job,
        "bytes": report.copied.bytes,
    }


for verb in (
    policy, run, history, status, lag, compare, expire, drill, promote, failback, open_replica,
    end_part, verify, repair,
):  # fmt: skip
    repl.add_command(verb)
