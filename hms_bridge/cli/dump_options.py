"""What a dump can be asked for, as ``repl dump`` is."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import click


@dataclass(frozen=True, kw_only=True, slots=True)
class DumpOptions:
    """What is not given is as the settings say. ``wait``: a duration; a bare number means hours,
    as in Hive. ``event_limit``: how many events at most."""

    root: str | None = None
    policy: str = "hms-bridge"
    is_bootstrap_forced: bool = False
    tables_anew: tuple[str, ...] = ()
    is_scope_changed: bool = False
    external_base: str | None = None
    wait: str | None = None
    is_abort_allowed: bool = False
    is_previous_kept: bool = False
    has_no_checksums: bool = False
    event_limit: int | None = None
    is_unknown_empty: bool = False


_OPTIONS = (
    click.option("--root", metavar="DIR", help="Where dumps go.  [default: setting]"),
    click.option(
        "--policy",
        default=DumpOptions().policy,
        show_default=True,
        help="Name of the replication.",
    ),
    click.option(
        "--bootstrap",
        "is_bootstrap_forced",
        is_flag=True,
        help="Begin anew with a bootstrap dump.",
    ),
    click.option(
        "--table-anew",
        "tables_anew",
        multiple=True,
        metavar="TABLE",
        help="Bring TABLE whole instead of its events, also in place of a dump that cannot be "
        "loaded; may be given more than once.",
    ),
    click.option(
        "--change-scope",
        "is_scope_changed",
        is_flag=True,
        help="DATABASE may cover other tables than the dump before did: new ones come whole, the "
        "load drops the others. Without patterns: all tables from now on.",
    ),
    click.option(
        "--external-base",
        metavar="DIR",
        help="Also dump the data of external tables; the load copies it below DIR of the replica.",
    ),
    click.option(
        "--wait",
        metavar="DURATION",
        help="How long a bootstrap waits for open writers.  [default: setting]",
    ),
    click.option(
        "--abort-writers",
        "is_abort_allowed",
        is_flag=True,
        help="Then abort those that hold locks on the database, instead of giving up.",
    ),
    click.option(
        "--keep-previous", "is_previous_kept", is_flag=True, help="Leave older dumps there."
    ),
    click.option(
        "--no-checksums",
        "has_no_checksums",
        is_flag=True,
        help="Name files without checksum and archive, for a real Hive that loads from a local "
        "disk or an object store.",
    ),
    click.option(
        "--limit",
        "event_limit",
        type=click.IntRange(min=1),
        metavar="EVENTS",
        help="Cover so many events of the log at most; the next dump goes on.  [default: setting]",
    ),
    click.option(
        "--assume-empty",
        "is_unknown_empty",
        is_flag=True,
        help="Writes of which nothing is known any more wrote nothing.",
    ),
)


def dump_options(command: Callable[..., object]) -> Callable[..., object]:
    """An option for each field of DumpOptions; the verb gets ``asked``."""

    @functools.wraps(command)
    def with_options(*args: object, **kwargs: Any) -> object:
        given = {field.name: kwargs.pop(field.name) for field in fields(DumpOptions)}
        return command(*args, asked=DumpOptions(**given), **kwargs)

    verb: Callable[..., object] = with_options
    for option in reversed(_OPTIONS):
        verb = option(verb)
    return verb
