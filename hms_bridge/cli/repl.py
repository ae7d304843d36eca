"""``hms-bridge repl``."""

from __future__ import annotations

import getpass
import socket
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from uuid import uuid4

import click

from hms_bridge.cli.options import (
    dry_run_option,
    format_option,
    metastore_option,
    settings_options,
)
from hms_bridge.cli.output import print_record, print_rows, say, size_text, time_text
from hms_bridge.cli.progress import bytes_bar, working
from hms_bridge.cli.repl_status import status
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import Settings
from hms_bridge.dml.named import find_database
from hms_bridge.metastore import Metastore

if TYPE_CHECKING:
    from changemanager.manifest import ArchiveManifest
    from hms_bridge.repl.dump import DumpPlan, DumpReport
    from hms_bridge.repl.lease import LeaseRules
    from hms_bridge.repl.load import LoadPlan, LoadReport
    from hms_bridge.repl.verify import VerifiedFile


_VERIFY_SHOWN = (
    "place", "event", "table", "partition", "file", "size", "expires", "lost because",
)  # fmt: skip


@click.group()
def repl() -> None:
    """Replicate a database: dump it here, verify, load it there.

    \b
    Example:
      hms-bridge repl dump sales --metastore sqlite:///source.db --root /dr/dumps
      hms-bridge repl verify /dr/dumps/c2FsZXM=/7f3c…
      hms-bridge repl load sales --metastore sqlite:///replica.db --root /dr/dumps
    """


@contextmanager
def _source(url: str, settings: Settings) -> Iterator[tuple[Metastore, ArchiveManifest | None]]:
    """A metastore, and the manifest that stands in its database; a remote one's is out of reach."""
    from hms_bridge.connect import connected, connected_locally

    if url.startswith("thrift://"):
        with connected(url, settings, is_created=False) as metastore:
            yield metastore, None
    else:
        with connected_locally(url, settings, is_created=False) as store:
            yield store.metastore, store.manifest


def _root(given: str | None, settings: Settings) -> str:
    from hms_bridge.connect import absolute_location

    return absolute_location(given or settings.repl.root)


def _lease(settings: Settings) -> LeaseRules:
    from hms_bridge.repl.lease import LeaseRules

    return LeaseRules(dead_after_seconds=settings.txn.timeout_ms / 1000)


@repl.command()
@click.argument("database")
@click.option("--root", "given_root", metavar="DIR", help="Where dumps go.  [default: setting]")
@click.option("--policy", default="hms-bridge", show_default=True, help="Name of the replication.")
@click.option("--bootstrap", "is_forced", is_flag=True, help="Begin anew with a bootstrap dump.")
@click.option(
    "--assume-empty",
    "is_unknown_empty",
    is_flag=True,
    help="Writes of which nothing is known any more wrote nothing.",
)
@dry_run_option
@metastore_option
@format_option
@settings_options
def dump(
    database: str,
    given_root: str | None,
    policy: str,
    is_forced: bool,
    is_unknown_empty: bool,
    is_dry_run: bool,
    metastore_url: str,
    output_format: str,
    settings: Settings,
) -> None:
    """Dump DATABASE: a bootstrap at first, then what happened since the last dump.

    \b
    Examples:
      hms-bridge repl dump sales --metastore sqlite:///source.db --root /dr/dumps
      hms-bridge repl dump sales --dry-run
    """
    from changemanager.location import FsspecResolver
    from hms_bridge.connect import absolute_location
    from hms_bridge.repl.dump import DumpKind, DumpRequest, ReplDump
    from hms_bridge.repl.incremental_dump import IncrementalRules

    request = DumpRequest(
        root=_root(given_root, settings),
        database=database,
        cm_root=absolute_location(settings.archive.root) if settings.archive.is_enabled else None,
        policy=policy,
        is_bootstrap_forced=is_forced,
        events=IncrementalRules(is_unknown_empty=is_unknown_empty),
        user=getpass.getuser(),
        host=socket.gethostname(),
        lease=_lease(settings),
    )
    with _source(metastore_url, settings) as (metastore, manifest):
        find_database(metastore, database)
        dumper = ReplDump(
            metastore,
            FsspecResolver(),
            SystemClock(),
            lambda: str(uuid4()),
            manifest,
            on_waiting=say,
        )
        with working(f"looking at {database}"):
            plan = dumper.plan(request)
        if is_dry_run:
            print_record(_dump_plan(plan), output_format)
            return
        with working(f"dumping {database}"):
            report = dumper.run(plan)
    print_record(_dump_report(report), output_format)
    for one in report.events.assumed_empty:
        say(f"dumped as empty: {one}")
    if report.kind is DumpKind.BLOCKED:
        say(report.reason)
        raise SystemExit(1)


def _dump_plan(plan: DumpPlan) -> dict[str, object]:
    return {
        "kind": plan.kind.value,
        "reason": plan.reason,
        "after event": plan.after_event_id,
        "until event": plan.until_event_id,
        "tables": list(plan.tables),
        "previous dump": plan.previous,
        "removed": list(plan.removed),
        "waits for": plan.waits_for or None,
    }


def _dump_report(report: DumpReport) -> dict[str, object]:
    return {
        "kind": report.kind.value,
        "reason": report.reason,
        "dump_dir": report.directory,
        "last_repl_id": report.last_event_id,
        "tables": list(report.tables),
        "files": report.file_count,
    }


@repl.command()
@click.argument("directory", metavar="DUMP")
@click.option("--quick", "is_quick", is_flag=True, help="Look for names and sizes only.")
@click.option("--all", "is_all", is_flag=True, help="List every file, not only the missing ones.")
@format_option
@settings_options
def verify(
    directory: str, is_quick: bool, is_all: bool, output_format: str, settings: Settings
) -> None:
    """Look for every file that a dump names: at its source, in the archive, or missing.

    Exit code 1 if any is missing. Nothing is touched.

    \b
    Examples:
      hms-bridge repl verify /dr/dumps/c2FsZXM=/7f3c0d8e-…
      hms-bridge repl verify /dr/dumps/c2FsZXM=/7f3c0d8e-… --all --format jsonl
    """
    from changemanager.location import FsspecResolver
    from changemanager.whereabouts import Whereabouts
    from hms_bridge.connect import absolute_location
    from hms_bridge.errors import ReplError
    from hms_bridge.repl.layout import HIVE_DIRECTORY
    from hms_bridge.repl.verify import verify_dump

    resolver, location = FsspecResolver(), absolute_location(directory)
    if resolver(f"{location}/{HIVE_DIRECTORY}").status() is None:
        raise ReplError(f"there is no dump in {location}; give the dump_dir that repl dump told")
    counts: Counter[str] = Counter()
    with working("looking for files") as show:

        def looked(one: VerifiedFile) -> None:
            counts[one.place.value] += 1
            show(", ".join(f"{count} {place}" for place, count in counts.items()))

        report = verify_dump(
            resolver,
            location,
            retain_ms=settings.archive.retain_ms,
            is_quick=is_quick,
            on_looked=looked,
        )
    shown = report.files if is_all or output_format != "table" else report.missing
    rows = [
        {
            "place": one.place.value,
            "table": f"{one.named.database_name}.{one.named.table_name}",
            "partition": one.named.partition_name,
            "event": one.named.event_id,
            "file": one.named.file.uri,
            "size": one.size_bytes,
            "archived": time_text(one.archived_at_ms),
            "expires": time_text(one.expires_at_ms),
            "reason": one.reason or None,
            "lost because": one.reason if one.place is Whereabouts.MISSING else None,
        }
        for one in shown
    ]
    columns = (
        "place", "table", "partition", "event", "file", "size", "archived", "expires", "reason",
    )  # fmt: skip
    if rows or output_format != "table":
        print_rows(rows, columns, output_format, shown=_VERIFY_SHOWN)
    say(
        f"{len(report.files)} files, {size_text(report.size_bytes)}: "
        f"{report.count(Whereabouts.AT_SOURCE)} at source, "
        f"{report.count(Whereabouts.IN_CM)} in CM, {len(report.missing)} missing"
    )
    if report.load_before_ms:
        say(f"without pins the archive keeps them until {time_text(report.load_before_ms)}")
    if report.exit_code:
        raise SystemExit(report.exit_code)


@repl.command()
@click.argument("source_database", metavar="DATABASE")
@click.option("--into", "target_database", help="Database of the replica.  [default: the same]")
@click.option("--root", "given_root", metavar="DIR", help="Where dumps are.  [default: setting]")
@click.option("--quick", "is_quick", is_flag=True, help="Look for files by name before copying.")
@dry_run_option
@metastore_option
@format_option
@settings_options
def load(
    source_database: str,
    target_database: str | None,
    given_root: str | None,
    is_quick: bool,
    is_dry_run: bool,
    metastore_url: str,
    output_format: str,
    settings: Settings,
) -> None:
    """Load the newest dump of DATABASE into the replica's metastore.

    Every file is looked for first; if one is missing, nothing is changed.

    \b
    Examples:
      hms-bridge repl load sales --metastore sqlite:///replica.db --root /dr/dumps
      hms-bridge repl load sales --into sales_dr --dry-run
    """
    from changemanager.location import FsspecResolver
    from hms_bridge.connect import connected
    from hms_bridge.repl.load import LoadRequest, ReplLoad

    request = LoadRequest(
        root=_root(given_root, settings),
        source_database=source_database,
        target_database=target_database,
        user=getpass.getuser(),
        host=socket.gethostname(),
        lease=_lease(settings),
        is_preflight_quick=is_quick,
        retain_ms=settings.archive.retain_ms,
    )
    with connected(metastore_url, settings, is_created=not is_dry_run) as metastore:
        with working("looking for the files of the dump"):
            plan = ReplLoad(metastore, FsspecResolver()).plan(request)
        if is_dry_run:
            print_record(_load_plan(plan), output_format)
            return
        with bytes_bar(
            f"loading {source_database}", plan.files.size_bytes if plan.files else 0
        ) as (advance):
            loader = ReplLoad(metastore, FsspecResolver(), on_copied=advance, on_waiting=say)
            report = loader.run(plan)
    print_record(_load_report(report), output_format)


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
        "files": len(files.files) if files else 0,
        "from the archive": files.count(Whereabouts.IN_CM) if files else 0,
    }


def _load_report(report: LoadReport) -> dict[str, object]:
    return {
        "kind": report.kind.value,
        "reason": report.reason,
        "database": report.target_database,
        "last_repl_id": report.last_event_id,
        "tables": list(report.tables),
        "events": dict(report.events),
        "files from source": report.copied.source_files,
        "files from the archive": report.copied.archive_files,
        "files kept": report.copied.kept,
        "bytes": report.copied.bytes,
    }


repl.add_command(status)
