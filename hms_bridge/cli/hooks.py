"""``hms-bridge hooks``."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from hms_bridge.cli.options import (
    database_option,
    dry_run_option,
    format_option,
    settings_options,
)
from hms_bridge.cli.output import print_rows, say
from hms_bridge.config.settings import EventSettings, Settings
from hms_bridge.errors import ConfigError, NoSuchObjectError
from hms_bridge.model.hook import Change, HookEvent, HookLag, HookPosition, PointType
from hms_bridge.model.ids import EventId

if TYPE_CHECKING:
    from hms_bridge.hooks.loading import HookKind
    from hms_bridge.service.hook_positions import StoredPositions

LIST_COLUMNS = ("hook", "kind", "heard", "behind", "told", "problem")
TEST_COLUMNS = ("hook", "kind", "outcome", "message")
LAG_COLUMNS = ("hook", "heard", "newest", "behind", "oldest_unheard_seconds", "told")


@click.group()
def hooks() -> None:
    """Code that is asked before a change, told inside of it, or after it.

    \b
    Examples:
      hms-bridge hooks list --config hive-site.xml
      hms-bridge hooks test webhook --config hive-site.xml
      hms-bridge hooks lag --format jsonl
    """


@hooks.command(name="list")
@database_option
@format_option
@settings_options
def list_hooks(metastore_url: str, output_format: str, settings: Settings) -> None:
    """The hooks of the settings, and those that the database has a position of.

    Exit code 1 if one of the settings cannot be loaded.

    \b
    Examples:
      hms-bridge hooks list --config hive-site.xml
      hms-bridge hooks list --set hive.metastore.event.listeners=my_hooks.Guard --format json
    """
    from hms_bridge.hooks.loading import HookKind

    with _positions(metastore_url, settings) as positions:
        lags = {lag.name: lag for lag in positions.lags()}
    rows = []
    for kind in HookKind:
        for name in kind.names(settings):
            lag = lags.pop(name, None) if kind is HookKind.EVENT else None
            rows.append(_listed(name, _word(kind), lag, _problem(name, kind, settings)))
    rows += [_listed(name, "not in these settings", lag, None) for name, lag in lags.items()]
    print_rows(rows, LIST_COLUMNS, output_format, shown=LIST_COLUMNS)
    broken = [row["hook"] for row in rows if row["problem"]]
    if broken:
        raise ConfigError(f"no server can start with {', '.join(map(str, broken))}; see above")


@hooks.command()
@click.argument("name")
@database_option
@format_option
@settings_options
def test(name: str, metastore_url: str, output_format: str, settings: Settings) -> None:
    """Call a hook with an event of the type TEST, which is stored nowhere.

    The name is one of the settings, or any that could stand there. What runs inside of transactions
    is loaded only. Exit code 1 if the hook fails, or refuses.

    \b
    Examples:
      hms-bridge hooks test webhook --config hive-site.xml
      hms-bridge hooks test command --set hms.bridge.hooks.command=/opt/tell-operators
    """
    from hms_bridge.hooks.loading import HookKind

    with _positions(metastore_url, settings) as positions:
        newest = positions.newest()
    kinds = [kind for kind in HookKind if name in kind.names(settings)]
    rows = [_tried(name, kind, settings, newest) for kind in kinds or _kinds(name, settings)]
    print_rows(rows, TEST_COLUMNS, output_format, shown=TEST_COLUMNS)
    if any(row["outcome"] in ("failed", "refused") for row in rows):
        raise ConfigError(f"hook {name} did not take the event; see above")


@hooks.command()
@click.argument("name")
@click.option(
    "--from",
    "event_id",
    required=True,
    type=click.IntRange(min=1),
    help="The first event that is told again.",
)
@dry_run_option
@database_option
@settings_options
def replay(
    name: str, event_id: int, is_dry_run: bool, metastore_url: str, settings: Settings
) -> None:
    """Tell a hook again of an event and of all that came after it.

    A server that tells it takes the new position within seconds. Exit code 1 for an event that the
    hook has yet to hear.

    \b
    Examples:
      hms-bridge hooks replay webhook --from 1200 --dry-run
      hms-bridge hooks replay webhook --from 1200
    """
    with _positions(metastore_url, settings) as positions:
        lag = _lag_of(positions.lags(), name)
        newest = positions.newest()
        if is_dry_run:
            say(f"would tell {name} again from event {event_id} on; it has heard {lag.heard}")
            return
        before = positions.rewind(name, EventId(event_id))
    say(f"{name} is told again from event {event_id} on: {newest.total - before.total} to hear")


@hooks.command()
@click.argument("name")
@click.option(
    "--event", "key", metavar="KEY", required=True, help="Its key, as in the server's log."
)
@dry_run_option
@database_option
@settings_options
def skip(name: str, key: str, is_dry_run: bool, metastore_url: str, settings: Settings) -> None:
    """Pass over the one event that a hook hears next, for it fails on that again and again.

    It never hears of it, but by "replay". A server tries at most once more, and goes on with the
    next one within a minute. Exit code 1 if another event is next.

    \b
    Examples:
      hms-bridge hooks skip webhook --event 1200 --dry-run
      hms-bridge hooks skip webhook --event 1200.7
    """
    with _positions(metastore_url, settings) as positions:
        newest = _lag_of(positions.lags(), name).newest
        event = positions.next_unheard(name, key)
        what = f"{event.key} ({_described(event)})"
        if is_dry_run:
            say(f"{name} would pass over {what}; nothing was changed")
            return
        passed = positions.skip(name, key)
    say(f"{name} passes over {what}: {max(0, newest.total - passed.total)} to hear")


@hooks.command()
@click.argument("name")
@dry_run_option
@database_option
@settings_options
def forget(name: str, is_dry_run: bool, metastore_url: str, settings: Settings) -> None:
    """Remove the position of a hook that is in no server's settings any more.

    Under the same name it would begin anew, after the newest event.

    \b
    Examples:
      hms-bridge hooks forget my_hooks.Old --dry-run
      hms-bridge hooks forget my_hooks.Old
    """
    with _positions(metastore_url, settings) as positions:
        lag = _lag_of(positions.lags(), name)
        if lag.is_told:
            raise ConfigError(
                f"a server tells {name} now: take it out of its settings, and stop it, first; "
                "one that was killed counts as there for some seconds"
            )
        if not is_dry_run:
            positions.forget(name)
    verb = "would forget" if is_dry_run else "forgot"
    say(f"{verb} {name}, which has heard {lag.heard} and not {lag.behind_count} that came after")


@hooks.command()
@database_option
@format_option
@settings_options
def lag(metastore_url: str, output_format: str, settings: Settings) -> None:
    """How far each hook that is told after commits is behind.

    \b
    Examples:
      hms-bridge hooks lag
      hms-bridge hooks lag --format json --database postgresql+psycopg://hive@localhost/metastore
    """
    with _positions(metastore_url, settings) as positions:
        lags = positions.lags()
    rows = [
        {
            "hook": lag.name,
            "heard": str(lag.heard),
            "newest": str(lag.newest),
            "behind": lag.behind_count,
            "oldest_unheard_seconds": lag.oldest_age_ms // 1000,
            "told": lag.is_told,
        }
        for lag in lags
    ]
    print_rows(rows, LAG_COLUMNS, output_format)


def _described(event: HookEvent) -> str:
    names = ".".join(part for part in (event.database_name, event.table_name) if part)
    return f"{event.type} {names}".rstrip()


@contextmanager
def _positions(url: str, settings: Settings) -> Iterator[StoredPositions]:
    """Without hooks: who looks at them must not begin to tell them."""
    from hms_bridge.connect import connected_locally

    quiet = replace(settings, events=_without_hooks(settings.events))
    with connected_locally(url, quiet, is_created=False) as store:
        yield store.metastore.hook_positions


def _without_hooks(events: EventSettings) -> EventSettings:
    return replace(events, hooks=(), listeners=(), pre_listeners=(), transactional_listeners=())


def _listed(name: str, kind: str, lag: HookLag | None, problem: str | None) -> dict[str, object]:
    return {
        "hook": name,
        "kind": kind,
        "heard": None if lag is None else str(lag.heard),
        "behind": None if lag is None else lag.behind_count,
        "told": None if lag is None else lag.is_told,
        "problem": problem,
    }


def _word(kind: HookKind) -> str:
    return kind.name.lower()


def _problem(name: str, kind: HookKind, settings: Settings) -> str | None:
    from hms_bridge.hooks.loading import load_hook

    try:
        load_hook(name, kind, settings)
    except ConfigError as error:
        return str(error)
    return None


def _kinds(name: str, settings: Settings) -> Sequence[HookKind]:
    """Of a name that is not in the settings: what it could be. Raises ConfigError if nothing."""
    from hms_bridge.hooks.loading import HookKind, load_hook

    kinds = [kind for kind in HookKind if _problem(name, kind, settings) is None]
    if not kinds:
        load_hook(name, HookKind.EVENT, settings)
    return kinds


def _tried(
    name: str, kind: HookKind, settings: Settings, newest: HookPosition
) -> dict[str, object]:
    from hms_bridge.hooks.loading import HookKind, fault_of, load_hook
    from hms_bridge.hooks.port import NotHeardError, VetoError

    outcome, message = "heard", None
    try:
        hook: Any = load_hook(name, kind, settings)
        if kind is HookKind.EVENT:
            hook.on_event(_test_event(newest))
        elif kind is HookKind.PRE:
            outcome = "let pass"
            hook.before_change(_TEST_CHANGE)
        else:
            outcome = "loaded"
    except VetoError as error:
        outcome, message = "refused", str(error)
    except NotHeardError as error:
        outcome, message = "failed", str(error)
    except Exception as error:
        outcome, message = "failed", fault_of(error)
    return {"hook": name, "kind": _word(kind), "outcome": outcome, "message": message}


_TEST_CHANGE = Change(
    type=PointType.TEST.value,
    catalog_name=None,
    database_name=None,
    table_name=None,
    message={},
)


def _test_event(newest: HookPosition) -> HookEvent:
    """Its key is before all others and never comes again: a receiver that remembers keys must
    neither pass over an event for it, nor over the next test."""
    from hms_bridge.clock import SystemClock

    now_ms = SystemClock().now_ms()
    return HookEvent(
        id=EventId(0),
        point_id=now_ms,
        time_seconds=now_ms // 1000,
        type=PointType.TEST.value,
        message=json.dumps({"newest": str(newest)}),
    )


def _lag_of(lags: Sequence[HookLag], name: str) -> HookLag:
    lag_of_hook = next((lag for lag in lags if lag.name == name), None)
    if lag_of_hook is None:
        known = ", ".join(lag.name for lag in lags) or "none"
        raise NoSuchObjectError(f"no hook '{name}' has a position here, only: {known}")
    return lag_of_hook
