"""``hms-bridge cm pins``, ``cm hold`` and ``cm release``: who keeps files in the archive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from hms_bridge.cli.options import (
    database_option,
    dry_run_option,
    format_option,
    given_table,
    settings_options,
)
from hms_bridge.cli.output import print_rows, say, size_text, time_text
from hms_bridge.config.settings import Settings
from hms_bridge.dml.named import find_database
from hms_bridge.errors import ConfigError
from hms_bridge.model.counted import counted

if TYPE_CHECKING:
    from changemanager.location import Location
    from changemanager.manifest import Pin
    from changemanager.pinned import PinUse
    from hms_bridge.connect import LocalStore
    from hms_bridge.repl.pinned_dumps import PinnedDump

_COLUMNS = (
    "holder", "kind", "database", "table", "state", "files", "bytes", "named", "since",
    "archived since", "expires", "kept until", "reason",
)  # fmt: skip
_SHOWN = (
    "kind", "database", "table", "state", "files", "size", "since", "expires", "kept until",
    "holder",
)  # fmt: skip
_HOLD_MS_MAX = 1000 * 365 * 86_400_000
_LABEL_MAX = 200
_RELEASE_COLUMNS = ("holder", "what", "state", "files", "bytes", "reason")


@click.command()
@database_option
@format_option
@settings_options
def pins(metastore_url: str, output_format: str, settings: Settings) -> None:
    """List who keeps files from the purge: dumps, policies, people.

    A dump holds the files that it names until it is loaded; a policy holds what was archived
    since the last dump of a database to its root began. Both are kept until their budget is over
    ('kept until', by what is archived now): what a replica that is out of reach can
    still count on.

    \b
    Examples:
      hms-bridge cm pins
      hms-bridge cm pins --format json
    """
    from hms_bridge.connect import connected_locally

    with connected_locally(metastore_url, settings, is_created=False) as store:
        uses, dumps = _look(store)
        ends = {use.pin.holder: _kept_until_ms(use.pin, store, settings) for use in uses}
    rows = [_row(use, dumps) | {"kept until": time_text(ends[use.pin.holder])} for use in uses]
    print_rows(rows, _COLUMNS, output_format, shown=_SHOWN)
    say(counted(len(uses), "pin"))


def _kept_until_ms(pin: Pin, store: LocalStore, settings: Settings) -> int | None:
    """When the first budget of a dump or policy is over; None where nothing ends it, or all did."""
    from changemanager.budget import budget_ends_ms
    from changemanager.manifest import PinKind

    if pin.given_up is not None:
        return None
    archive = settings.archive
    held = store.manifest.held_files(pin.holder)
    ends = [budget_ends_ms(pin, held, archive.budget, archive.retain_ms)]
    if pin.kind is PinKind.POLICY and pin.archived_since_ms is not None:
        # What came before the last dump began is in it; with nothing since, nothing can be lost.
        first_seconds = store.metastore.first_event_seconds(pin.archived_since_ms // 1000)
        kept_ms = max(settings.event_ttl_ms, settings.repl.event_budget_ms)
        if first_seconds is not None:
            ends.append(max(first_seconds * 1000, pin.archived_since_ms) + kept_ms)
    return min((end_ms for end_ms in ends if end_ms is not None), default=None)


@click.command()
@click.argument("label")
@click.argument("what")
@click.option(
    "--for", "duration", metavar="DURATION", help="So long, as 30d or 12h; else until released."
)
@click.option("--reason", default="held by hand", show_default=True, help="Shown by 'cm pins'.")
@database_option
@settings_options
def hold(
    label: str,
    what: str,
    duration: str | None,
    reason: str,
    metastore_url: str,
    settings: Settings,
) -> None:
    """Keep from the purge what is archived of WHAT, a database or database.table.

    What is archived later is kept too, so a table may be held before it is there: a note then says
    that nothing of that name is known. The same LABEL again replaces the hold; 'cm release
    hold:LABEL' ends it.

    \b
    Examples:
      hms-bridge cm hold audit sales --for 30d --reason 'see ticket 17'
      hms-bridge cm hold move sales.orders
    """
    from changemanager.manifest import Pin, PinKind
    from changemanager.pinned import pin_uses
    from changemanager.plausible_time import stamp_ms
    from changemanager.retention import take_inventory
    from hms_bridge.connect import connected_locally

    _require_label(label)
    database, table = what.strip().lower(), None
    if "." in what:
        name = given_table(what)
        database, table = name.database, name.table
    duration_ms = None if duration is None else _hold_ms(duration)
    with connected_locally(metastore_url, settings, is_created=False) as store:
        # As the archive stamps files: this host's clock may be behind.
        now_ms = stamp_ms(store.clock.now_ms(), store.manifest.known_times())
        pin = Pin(
            holder=f"hold:{label}",
            kind=PinKind.HOLD,
            reason=reason,
            created_at_ms=now_ms,
            expires_at_ms=None if duration_ms is None else now_ms + duration_ms,
            database=database,
            table=table,
        )
        archive = store.archive()
        (use,) = pin_uses((pin,), take_inventory(archive, store.manifest), now_ms)
        if not use.file_count:
            find_database(store.metastore, database)  # a mistyped one; a dropped one may have files
            if table is not None and table not in store.metastore.get_tables(database):
                say(
                    f"note: nothing is archived of {database}.{table}, and there is no such table; "
                    "correct the name, unless it is yet to come"
                )
        _announce(store, archive.cmroot, pin)
        store.manifest.put_pin(pin)
    say(f"{pin.holder} holds {counted(use.file_count, 'file')}, {size_text(use.size_bytes)}")


def _require_label(label: str) -> None:
    if not label.strip() or not label.isprintable() or len(label) > _LABEL_MAX:
        raise click.UsageError(
            f"{label[:40]!r} names no hold: write a text of one line, {_LABEL_MAX} characters at "
            "most; cm pins lists it, and cm release takes it"
        )


def _announce(store: LocalStore, cmroot: Location, pin: Pin) -> None:
    """Other metastores' purges see that this one holds files there. Raises ConfigError."""
    from changemanager.sharing import announce

    try:
        announce(cmroot, store.database_id())
    except OSError as error:
        raise ConfigError(
            f"{pin.holder} holds nothing: the archive {cmroot.uri} (hive.repl.cmrootdir) cannot be "
            f"written ({error}); let it be a directory that this user may write, then hold again"
        ) from error


def _hold_ms(duration: str) -> int:
    """A bare number would be days here and hours in hive.repl.cm.retain."""
    from hms_bridge.config.durations import parse_duration_ms

    if duration.strip().lstrip("+-").isdecimal():
        raise click.UsageError(
            f"--for takes a number and a unit, as 30d or 12h, not '{duration.strip()}'"
        )
    duration_ms = parse_duration_ms(duration, "d")
    if duration_ms <= 0:
        raise click.UsageError("--for takes a duration longer than 0, as 30d")
    if duration_ms > _HOLD_MS_MAX:
        raise click.UsageError("--for takes 1000 years at most; without it the hold has no end")
    return duration_ms


@click.command()
@click.argument("holders", nargs=-1, metavar="[HOLDER]...")
@click.option(
    "--loaded", "is_loaded", is_flag=True, help="Of all dumps that are loaded; the purge does so."
)
@click.option(
    "--gone", "is_gone", is_flag=True, help="Of all dumps whose directory was removed or moved."
)
@dry_run_option
@database_option
@format_option
@settings_options
def release(
    holders: tuple[str, ...],
    is_loaded: bool,
    is_gone: bool,
    is_dry_run: bool,
    metastore_url: str,
    output_format: str,
    settings: Settings,
) -> None:
    """Let go of what HOLDER keeps, as 'cm pins' names it; a purge may then delete it.

    Nothing is deleted at once. A dump that is released before it is loaded may lose its files;
    a policy that is released comes back with the next dump.

    \b
    Examples:
      hms-bridge cm release --loaded --dry-run
      hms-bridge cm release 'dump:sales:file:/dr/dumps/c2FsZXM=/7f3c…'
      hms-bridge cm release policy:sales:file:/dr/dumps
    """
    from changemanager.pinned import plan_release
    from changemanager.pinned import release as carry_out
    from hms_bridge.connect import connected_locally
    from hms_bridge.repl.pinned_dumps import PinnedDumpState

    if not (holders or is_loaded or is_gone):
        raise click.UsageError("name holders as 'hms-bridge cm pins' lists them, or use --loaded")
    wanted = {PinnedDumpState.LOADED} if is_loaded else set()
    wanted |= {PinnedDumpState.GONE} if is_gone else set()
    with connected_locally(metastore_url, settings, is_created=False) as store:
        uses, dumps = _look(store)
        also = [pinned.holder for pinned in dumps.values() if pinned.state in wanted]
        plan = plan_release(uses, [*holders, *also])
        for use in plan.uses:
            dump = dumps.get(use.pin.holder)
            if dump is not None and dump.state is PinnedDumpState.WAITING:
                say(f"note: {dump.directory} is not loaded; after a purge its load may refuse")
        gone = () if is_dry_run else carry_out(store.manifest, plan)
    rows = [
        {**_row(use, dumps), "what": _became(use, gone, is_dry_run=is_dry_run)} for use in plan.uses
    ]
    print_rows(rows, _RELEASE_COLUMNS, output_format, shown=("what", *_SHOWN))
    count = len(plan.uses) if is_dry_run else len(gone)
    say(f"{'would release' if is_dry_run else 'released'} {counted(count, 'pin')}")
    if not is_dry_run and len(gone) < len(plan.uses):
        raise SystemExit(1)


def _became(use: PinUse, gone: Sequence[str], *, is_dry_run: bool) -> str:
    if is_dry_run:
        return "would be released"
    return "released" if use.pin.holder in gone else "kept: it was pinned anew"


def _reason(pin: Pin) -> str:
    return pin.reason if pin.given_up is None else pin.given_up.reason


def _look(store: LocalStore) -> tuple[tuple[PinUse, ...], Mapping[str, PinnedDump]]:
    from changemanager.pinned import pin_uses
    from changemanager.retention import take_inventory
    from hms_bridge.repl.pinned_dumps import pinned_dumps

    held = store.manifest.pins()
    items = take_inventory(store.archive(), store.manifest)
    dumps = pinned_dumps(store.resolver, held)
    return pin_uses(held, items, store.clock.now_ms()), {dump.holder: dump for dump in dumps}


def _row(use: PinUse, dumps: Mapping[str, PinnedDump]) -> dict[str, object]:
    pin, dump = use.pin, dumps.get(use.pin.holder)
    state = dump.state.value if dump else None
    if pin.given_up is not None:
        state = "given up"
    return {
        "holder": pin.holder,
        "kind": pin.kind.name.lower(),
        "database": dump.database if dump else pin.database,
        "table": pin.table,
        "state": state if use.is_live else "expired",
        "files": use.file_count,
        "bytes": use.size_bytes,
        "size": size_text(use.size_bytes),
        "named": use.named_count or None,
        "since": time_text(pin.created_at_ms),
        "archived since": time_text(pin.archived_since_ms),
        "expires": time_text(pin.expires_at_ms),
        "reason": (dump.reason if dump else "") or _reason(pin),
    }
