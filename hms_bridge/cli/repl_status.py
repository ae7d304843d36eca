"""``hms-bridge repl status``."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.options import format_option, metastore_option, settings_options
from hms_bridge.cli.output import print_record, say, time_text
from hms_bridge.cli.sides import source_side
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import Settings
from hms_bridge.metastore import Metastore
from hms_bridge.model.counted import counted

if TYPE_CHECKING:
    from hms_bridge.repl.status import StatusReport


@click.command()
@click.argument("source_database", metavar="DATABASE")
@click.option("--into", "target_database", help="Database of the replica.  [default: the same]")
@click.option("--root", "given_root", metavar="DIR", help="Where dumps are.  [default: setting]")
@click.option(
    "--source",
    "source_url",
    metavar="URL",
    help="The source's metastore: tells the lag and what pins the archive.",
)
@metastore_option
@format_option
@settings_options
def status(
    source_database: str,
    target_database: str | None,
    given_root: str | None,
    source_url: str | None,
    metastore_url: str,
    output_format: str,
    settings: Settings,
) -> None:
    """How far the replica of DATABASE is, and how long it can still follow.

    --metastore is the replica's. Exit code 1 if the waiting dump has lost files.

    \b
    Examples:
      hms-bridge repl status sales --metastore sqlite:///replica.db --source sqlite:///source.db
      hms-bridge repl status sales --metastore thrift://replica:9083 --root /dr/dumps
    """
    from hms_bridge.cli.repl_requests import dump_rules, repl_root
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import archive_root, connected
    from hms_bridge.repl.status import ReplStatus, StatusRequest

    request = StatusRequest(
        root=repl_root(given_root, settings),
        source_database=source_database,
        target_database=target_database,
        event_ttl_ms=settings.event_ttl_ms,
        retain_ms=settings.archive.retain_ms,
        own_archive=archive_root(settings),
        rules=dump_rules(settings),
    )
    with ExitStack() as stack:
        target = stack.enter_context(connected(metastore_url, settings, is_created=False))
        source: Metastore | None = None
        pins = None
        if source_url is not None:
            source, pins = stack.enter_context(source_side(source_url, settings))
        looker = ReplStatus(
            file_systems(settings), SystemClock(), source=source, target=target, pins=pins
        )
        report = looker.look(request)
    record = _record(report)
    if output_format != "table":
        record |= _durations(report)  # for a program's comparison
    print_record(record, output_format)
    if report.missing_files:
        say(f"the waiting dump has lost {counted(report.missing_files, 'file')}: see repl verify")
        raise SystemExit(1)


def _record(report: StatusReport) -> dict[str, object]:
    newest = report.newest_dump
    return {
        "last_repl_id": report.last_event_id,
        "source_event_id": report.source_event_id,
        "lag_events": report.lag_events,
        "lag": _seconds(report.lag_seconds),
        "newest dump": newest.directory if newest else None,
        "its state": newest.state.value if newest else None,
        "finished": time_text(newest.finished_ms) if newest else None,
        "loaded": time_text(newest.loaded_ms) if newest else None,
        "events expire in": _seconds(report.events_expire_in_seconds),
        "archive expires in": _seconds(report.archive_expires_in_seconds),
        "waiting dump pins its files": report.is_pinned,
        "missing files": report.missing_files,
        "first incremental pending": report.is_first_incremental_pending,
        "incompatible": report.is_incompatible,
    }


def _durations(report: StatusReport) -> dict[str, object]:
    return {
        "lag_seconds": report.lag_seconds,
        "events_expire_in_seconds": report.events_expire_in_seconds,
        "archive_expires_in_seconds": report.archive_expires_in_seconds,
    }


def _seconds(seconds: int | None) -> str | None:
    """The two largest units: ``9 d 23 h``."""
    if seconds is None:
        return None
    parts: list[str] = []
    left = max(0, seconds)
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1)):
        count, left = divmod(left, size)
        if count or parts or unit == "s":
            parts.append(f"{count} {unit}")
    return ("-" if seconds < 0 else "") + " ".join(parts[:2])
