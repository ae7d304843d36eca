"""``hms-bridge repl status``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from changemanager.clock import span_text
from hms_bridge.cli.origin_options import looked_at_option, looked_at_too, places_of_source
from hms_bridge.cli.output import say, size_text, time_text
from hms_bridge.cli.repl_options import Call, called, dumps_root_option, into_option
from hms_bridge.cli.sides import side_url, source_with_figures
from hms_bridge.clock import SystemClock
from hms_bridge.config.settings import Settings
from hms_bridge.errors import HmsBridgeError
from hms_bridge.metastore import Metastore
from hms_bridge.model.counted import counted
from hms_bridge.model.replication import ReplicationPolicy

if TYPE_CHECKING:
    from hms_bridge.repl.dump.backlog import Backlog
    from hms_bridge.repl.status.repl_status import ReplStatus
    from hms_bridge.repl.status.report import StatusReport, StatusRequest


@click.command()
@click.argument("name", metavar="POLICY|DATABASE")
@into_option
@dumps_root_option
@click.option(
    "--source",
    "source_url",
    metavar="URL",
    help="The source's metastore: tells the lag and what pins the archive.",
)
@click.option(
    "--bytes",
    "are_bytes_counted",
    is_flag=True,
    help="Tell how much is to be copied: looks at every file that the replica lacks.",
)
@looked_at_option
@called()
def status(
    name: str,
    target_database: str | None,
    given_root: str | None,
    source_url: str | None,
    are_bytes_counted: bool,
    files_from: tuple[str, ...],
    call: Call,
) -> None:
    """How far a replica is, and how long it can still follow.

    --metastore is the replica's. If it keeps a policy of that name, or the one that replicates
    DATABASE, what is not given is as the policy says: source, root of the dumps, and for how long
    the source keeps what. A commit is behind until its rows are there; a change is anything else
    that a reader finds. Exit code 1 if the replica cannot follow as it is: events or files are gone
    or given up, a load or dump is marked as failed for good, another database took the source's
    place. Why, and what ends it, is a line each on standard error. Files of the waiting dump are
    looked for where loads read (repl load --help), and in warehouse and archive of the settings; a
    note counts what the dump names elsewhere.

    \b
    Examples:
      hms-bridge repl status sales --metastore sqlite:///replica.db
      hms-bridge repl status sales --metastore sqlite:///replica.db --source sqlite:///source.db
      hms-bridge repl status sales --metastore thrift://replica:9083 --root /dr/dumps
    """
    place = _place(name, source_url, target_database, call)
    request = status_request(
        place.database,
        place.settings,
        given_root=given_root or place.root,
        target_database=place.target_database,
        are_bytes_counted=are_bytes_counted,
        last_success_ms=place.last_success_ms,
        target_settings=place.target_settings,
        files_from=files_from,
    )
    with both_sides(place.metastore_url, place.source_url, place.settings) as looker:
        report = looker.look(request)
    call.print_record(_shown(report) if call.output_format == "table" else _record(report))
    for line in (*_notes(report, request.root), *report.troubles):
        say(line)
    if report.troubles:
        raise SystemExit(1)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """Where to look. ``root`` None: as the settings say; ``source_url`` None: not at the source."""

    metastore_url: str
    source_url: str | None
    database: str
    target_database: str | None
    root: str | None
    settings: Settings
    target_settings: Settings
    last_success_ms: int | None = None


def _place(name: str, source_url: str | None, target_database: str | None, call: Call) -> _Place:
    """As it was typed, and as a policy says, if one does. A source that was not named and cannot
    be asked is left out, with a note: the replica shows something without it."""
    from hms_bridge.cli.kept_policy import (
        being_removed,
        kept_policies,
        policy_of,
        settings_of_source,
        settings_of_target,
    )

    kept = kept_policies(call)
    policy = policy_of(
        kept.policies,
        name,
        call.metastore_url,
        target_database=target_database,
        is_database=source_url is not None,
    )
    if policy is None:
        return _Place(
            metastore_url=call.metastore_url,
            source_url=source_url,
            database=name,
            target_database=target_database,
            root=None,
            settings=call.settings,
            target_settings=call.settings,
        )
    if policy.name in kept.ending:
        say(being_removed(policy.name))
    settings = settings_of_source(policy, call.settings)
    return _Place(
        metastore_url=side_url(policy.target, call.metastore_url),
        source_url=source_url or _answering_source(policy, call.metastore_url, settings),
        database=policy.source.database,
        target_database=policy.target.database,
        root=policy.root,
        settings=settings,
        target_settings=settings_of_target(policy, call.settings),
        last_success_ms=kept.last_success_ms(policy),
    )


def _answering_source(policy: ReplicationPolicy, store_url: str, settings: Settings) -> str | None:
    try:
        url = side_url(policy.source, store_url)
        with source_with_figures(url, settings) as (metastore, _, _):
            metastore.get_current_event_id()
    except HmsBridgeError as error:
        say(
            f"note: nothing is said of the lag, as the source of policy {policy.name} "
            f"cannot be asked: {error}"
        )
        return None
    return url


def status_request(
    database: str,
    settings: Settings,
    *,
    given_root: str | None,
    target_database: str | None = None,
    are_bytes_counted: bool = False,
    last_success_ms: int | None = None,
    target_settings: Settings | None = None,
    files_from: tuple[str, ...] = (),
) -> StatusRequest:
    """Whose status, with what the settings, the source's, say of event log and archive.
    ``target_settings``: the replica's, if they are others."""
    from hms_bridge.cli.repl_requests import dump_rules, look_roots, repl_root
    from hms_bridge.connect import archive_root
    from hms_bridge.repl.status.report import StatusRequest

    return StatusRequest(
        root=repl_root(given_root, settings),
        source_database=database,
        target_database=target_database,
        event_ttl_ms=settings.event_ttl_ms,
        event_budget_ms=settings.repl.event_budget_ms,
        event_budget_bytes=settings.repl.event_budget_bytes,
        retain_ms=settings.archive.retain_ms,
        archive_budget=settings.archive.budget,
        own_archive=archive_root(settings),
        are_bytes_counted=are_bytes_counted,
        last_success_ms=last_success_ms,
        rules=dump_rules(settings),
        roots=look_roots(settings, files_from=files_from, target_settings=target_settings),
    )


@contextmanager
def both_sides(
    metastore_url: str | None, source_url: str | None, settings: Settings
) -> Iterator[ReplStatus]:
    """What looks at a replica, and at its source, as far as they are given."""
    from hms_bridge.config.file_systems import file_systems
    from hms_bridge.connect import connected, policies_of
    from hms_bridge.repl.status.repl_status import ReplStatus

    with ExitStack() as stack:
        target: Metastore | None = None
        if metastore_url is not None:
            target = stack.enter_context(connected(metastore_url, settings, is_created=False))
        source: Metastore | None = None
        manifest, figures = None, None
        if source_url is not None:
            source, manifest, figures = stack.enter_context(
                source_with_figures(source_url, settings)
            )
        yield ReplStatus(
            file_systems(settings),
            SystemClock(),
            source=source,
            target=target,
            manifest=manifest,
            figures=figures,
            note=None if target is None else policies_of(target),
            places=None if source is None else places_of_source(source, settings),
        )


def _notes(report: StatusReport, root: str) -> Iterator[str]:
    """What no figure shows: that there is nothing yet, or that it was looked for elsewhere."""
    if report.unfinished_load is not None:
        yield f"note: {report.unfinished_load}"
    elif report.last_event_id is None and not report.troubles:
        yield "note: nothing was loaded yet"
    if report.unlooked is not None:
        yield f"note: {report.unlooked.text(looked_at_too(report.unlooked.roots))}"
    if report.time_doubt:
        yield f"note: {report.time_doubt_text}"
    if not report.dumps:
        yield (
            f"note: no dump of it is below {root}, so that nothing is told of dumps and headroom; "
            "--root names another place, and so does the policy of that name, if --metastore keeps "
            "one"
        )


def _record(report: StatusReport) -> dict[str, object]:
    """For programs: numbers are numbers, with their unit in the name."""
    newest, backlog, headroom = report.newest_dump, report.backlog, report.headroom
    return {
        "last_repl_id": report.last_event_id,
        "tables": report.scope.patterns_text or None,
        "source_event_id": report.source_event_id,
        "commits_behind": backlog.commits if backlog else None,
        "changes_behind": backlog.changes if backlog else None,
        "rpo_seconds": report.rpo_seconds,
        "bytes_to_copy": report.bytes_to_copy,
        "newest_dump": newest.directory if newest else None,
        "newest_dump_state": newest.state.value if newest else None,
        "finished": time_text(newest.finished_ms) if newest else None,
        "loaded": time_text(newest.loaded_ms) if newest else None,
        "last_loaded": time_text(report.last_loaded_ms),
        "headroom_seconds": headroom.seconds if headroom else None,
        "headroom_limit": headroom.limit if headroom else None,
        "events_expire_in_seconds": report.events_expire_in_seconds,
        "archive_expires_in_seconds": report.archive_expires_in_seconds,
        "archive_budget_ends_in_seconds": report.budget_ends_in_seconds,
        "is_waiting_dump_pinned": report.is_pinned,
        "missing_files": report.missing_files,
        "unlooked_files": report.unlooked.count if report.unlooked else 0,
        "is_first_incremental_pending": report.is_first_incremental_pending,
        "is_incompatible": report.is_incompatible,
        "unfinished_load": report.unfinished_load,
        "troubles": list(report.troubles),
    }


def _shown(report: StatusReport) -> dict[str, object]:
    """For a person."""
    newest, backlog = report.newest_dump, report.backlog
    size = report.bytes_to_copy
    return {
        "last_repl_id": report.last_event_id,
        "tables": report.scope.patterns_text or "all",
        "source_event_id": report.source_event_id,
        "behind": None if backlog is None else behind_text(backlog),
        "oldest behind": duration_text(report.rpo_seconds) if report.rpo_seconds else None,
        "to copy": None if size is None else size_text(size),
        "newest dump": newest.directory if newest else None,
        "dump state": newest.state.value if newest else None,
        "finished": time_text(newest.finished_ms) if newest else None,
        "last loaded": time_text(report.last_loaded_ms),
        "events expire in": duration_text(report.events_expire_in_seconds),
        "archive expires in": duration_text(report.archive_expires_in_seconds),
        "archive's budget ends in": duration_text(report.budget_ends_in_seconds),
        "waiting dump pins its files": report.is_pinned,
        "missing files": report.missing_files,
        "not looked for": report.unlooked.count if report.unlooked else None,
        "first incremental pending": report.is_first_incremental_pending,
        "incompatible": report.is_incompatible,
    }


def behind_text(backlog: Backlog) -> str:
    """``2 commits, 1 change``, or ``up to date``."""
    parts = [
        counted(number, noun)
        for number, noun in ((backlog.commits, "commit"), (backlog.changes, "change"))
        if number
    ]
    return ", ".join(parts) or "up to date"


def duration_text(seconds: int | None) -> str | None:
    """As :func:`span_text`, but for what is known in whole seconds; may be negative."""
    if seconds is None:
        return None
    text = f"{abs(seconds)} s" if abs(seconds) < 60 else span_text(abs(seconds) * 1000)
    return f"-{text}" if seconds < 0 else text
