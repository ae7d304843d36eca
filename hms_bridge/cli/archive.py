"""``hms-bridge cm``: the ChangeManager's archive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.archive_clock import clock, next_step, trust
from hms_bridge.cli.archive_fsck import fsck
from hms_bridge.cli.archive_pins import hold, pins, release
from hms_bridge.cli.logs import logging_options
from hms_bridge.cli.options import (
    database_option,
    dry_run_option,
    format_option,
    settings_options,
)
from hms_bridge.cli.output import print_rows, say, size_text, time_text
from hms_bridge.cli.progress import working
from hms_bridge.config.settings import Settings
from hms_bridge.model.counted import counted

if TYPE_CHECKING:
    from changemanager.purge import PurgeReport
    from changemanager.retention import ArchivedItem, PinEnd, PurgeDecision, PurgePlan
    from hms_bridge.connect import LocalStore

COLUMNS = ("name", "size", "archived", "state", "database", "table", "original", "origins")
SHOWN = ("archived", "size", "state", "from table", "file")
PURGE_COLUMNS = ("name", "what", "why", "size", "holders")
PURGE_SHOWN = ("what", "size", "file", "verdict")
_OTHERS = "another purge removed it"


@click.group()
def cm() -> None:
    """The archive of replaced files (hive.repl.cmrootdir).

    \b
    Example:
      hms-bridge cm ls --set hive.repl.cmrootdir=/warehouse/cmroot
      hms-bridge cm purge --dry-run
    """


@cm.command()
@database_option
@format_option
@settings_options
def ls(metastore_url: str, output_format: str, settings: Settings) -> None:
    """List what is archived: since when, and where it came from.

    \b
    Examples:
      hms-bridge cm ls
      hms-bridge cm ls --format jsonl --set hive.repl.cmrootdir=/warehouse/cmroot
    """
    from changemanager.retention import take_inventory
    from hms_bridge.connect import connected_locally

    with connected_locally(metastore_url, settings, is_created=False) as store:
        items = take_inventory(store.archive(), store.manifest)
    print_rows([_row(item) for item in items], COLUMNS, output_format, shown=SHOWN)
    present = [item.size_bytes for item in items if item.is_present]
    say(f"{counted(len(present), 'file')}, {size_text(sum(present))}")


def _row(item: ArchivedItem) -> dict[str, object]:
    origins = item.entry.origins if item.entry else ()
    context = origins[0].context if origins else None
    return {
        "name": item.name,
        "size": item.size_bytes,
        "archived": time_text(item.clock_ms),
        "state": item.entry.state.name.lower() if item.entry else "not in the manifest",
        "database": context.database if context else None,
        "table": context.table if context else None,
        "original": origins[0].uri if origins else None,
        "origins": len(origins),
        "from table": f"{context.database}.{context.table}" if context else None,
        "file": _file(item),
    }


def _file(item: ArchivedItem) -> str:
    """Where it was, in few words: the delta and the bucket; else its name here."""
    origins = item.entry.origins if item.entry else ()
    return "/".join(origins[0].uri.split("/")[-2:]) if origins else item.name


@cm.command()
@click.option(
    "--override",
    "overridden",
    multiple=True,
    metavar="HOLDER",
    help="Purge even what this holder still needs (see the plan). May be repeated.",
)
@click.option(
    "--trust-clock",
    "is_clock_trusted",
    is_flag=True,
    help="The clock is right, you have checked it: all time counts from now on, as after "
    "'cm clock --trust'.",
)
@dry_run_option
@database_option
@format_option
@logging_options
@settings_options
def purge(
    overridden: tuple[str, ...],
    is_clock_trusted: bool,
    is_dry_run: bool,
    metastore_url: str,
    output_format: str,
    settings: Settings,
) -> None:
    """Delete what is older than hive.repl.cm.retain and needed by nobody.

    A dump that is not loaded yet needs its files, and so does the next dump of a database; until
    hms.bridge.repl.archive.budget is over only --override purges them, after it they are given up:
    the purge names them, and repl status does. Pins of dumps that are loaded go first.

    Time for which nothing is known to have happened makes no file older, as the clock may have
    jumped: 'cm clock' shows it. If the clock differs from the database's nothing is purged. Exit
    code 1 if files stay for that, until somebody says --trust-clock.

    \b
    Examples:
      hms-bridge cm purge --dry-run
      hms-bridge cm purge --set hive.repl.cm.retain=24h
      hms-bridge cm purge --override 'dump:sales:/dr/dumps/c2FsZXM=/7f3c…'
    """
    from changemanager.purge import Purge
    from hms_bridge.connect import connected_locally

    with connected_locally(metastore_url, settings, is_created=False) as store:
        archive = store.archive()
        job = Purge(archive, store.manifest, store.clock)
        loaded = _release_loaded(store, is_dry_run=is_dry_run)
        if not is_dry_run:
            job.settle()
            if is_clock_trusted:
                trust(store.manifest, store.clock.now_ms())
        plan = job.plan(overridden={*overridden, *loaded}, is_clock_trusted=is_clock_trusted)
        held = {holder for decision in plan.decisions for holder in decision.holders}
        for holder in sorted(set(overridden) - held - loaded):
            say(f"note: {holder} holds nothing that is expired; see the plan for who does")
        if is_dry_run:
            _show_plan(plan, output_format)
            return
        with working(f"purging {counted(len(plan.removals), 'file')}"):
            report = job.run(plan)
    _show_report(report, output_format)
    if report.failed or plan.doubt:
        raise SystemExit(1)


def _show_plan(plan: PurgePlan, output_format: str) -> None:
    rows = [_decision(decision) for decision in plan.decisions]
    print_rows(rows, PURGE_COLUMNS, output_format, shown=PURGE_SHOWN)
    _say_holders(plan)
    say(f"would free {size_text(plan.freed_bytes)} in {counted(len(plan.removals), 'file')}")
    _say_ends(plan.ends, "would be given up")
    _say_doubt(plan)


def _show_report(report: PurgeReport, output_format: str) -> None:
    rows: list[dict[str, object]]
    rows = [{"name": n, "what": "deleted", "why": None} for n in report.deleted]
    rows += [{"name": n, "what": "moved to trash", "why": None} for n in report.trashed]
    rows += [{"name": n, "what": "forgotten", "why": "its file is gone"} for n in report.forgotten]
    rows += [{"name": n, "what": "gone", "why": _OTHERS} for n in report.purged_by_others]
    rows += [{"name": n, "what": "failed", "why": why} for n, why in report.failed]
    print_rows(rows, ("name", "what", "why"), output_format)
    say(f"freed {size_text(report.freed_bytes)}; {len(report.failed)} failed")
    if report.purged_by_others:
        say(f"{counted(len(report.purged_by_others), 'file')}: {_OTHERS}, which runs beside this")
    _say_ends(report.given_up, "is given up")
    _say_doubt(report.plan)


def _say_doubt(plan: PurgePlan) -> None:
    if plan.doubt:
        say(f"{plan.doubt}; {next_step(plan.time)}")


def _release_loaded(store: LocalStore, *, is_dry_run: bool) -> set[str]:
    """The holders of dumps that are loaded; their pins go, unless nothing may be changed."""
    from hms_bridge.repl.pinned_dumps import loaded_dumps, release_loaded_dumps

    look = loaded_dumps if is_dry_run else release_loaded_dumps
    loaded = look(store.resolver, store.manifest)
    for dump in loaded:
        say(f"{dump.directory} is loaded: its pin {'would go' if is_dry_run else 'is gone'}")
    return {dump.holder for dump in loaded}


def _say_holders(plan: PurgePlan) -> None:
    """Each holder once: its name, as --override takes it, is long."""
    counts = Counter(
        holder
        for decision in plan.decisions
        if decision.disposition.is_kept
        for holder in decision.holders
    )
    for holder, count in sorted(counts.items()):
        say(f"{counted(count, 'file')} held by {holder}")


def _say_ends(ends: Sequence[PinEnd], what: str) -> None:
    """Who needed what goes: nobody should have to find it out by a load that refuses."""
    for end in ends:
        files = f"{counted(end.file_count, 'file')}, {size_text(end.size_bytes)}"
        say(f"{end.holder} {what}: {end.reason} ({files}); see repl status")


def _decision(decision: PurgeDecision) -> dict[str, object]:
    is_held = decision.disposition.is_kept and decision.holders
    return {
        "name": decision.item.name,
        "what": decision.disposition.value,
        "why": decision.reason,
        "size": decision.item.size_bytes,
        "holders": list(decision.holders) or None,
        "file": _file(decision.item),
        "verdict": f"held by {len(decision.holders)}" if is_held else decision.reason,
    }


cm.add_command(clock)
cm.add_command(fsck)
cm.add_command(hold)
cm.add_command(pins)
cm.add_command(release)
