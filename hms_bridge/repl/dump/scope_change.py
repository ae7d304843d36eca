"""What a scope of tables means for an incremental dump: which names it carries on, and which come
whole or go because the scope was changed or a rename crossed its edge.

Between two dumps a replica has the tables that were in the scope before, by their names at the last
event. Events are carried on of names that are in the scope before and after. Every other name that
one of both covers is brought whole, if the source has it and it is covered now, or is named as gone
(Hive: ReplDumpTask.shouldBootstrapDumpTable, AlterTableHandler; docs/hive/replication.md §34).
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass

from hms_bridge.errors import ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.repl.dump.event_source import EventRange, is_of, read_events
from hms_bridge.repl.dump.tables_anew import linked_names, names_of_event
from hms_bridge.repl.format.directories import DumpDirectory
from hms_bridge.repl.format.event_payload import Payload
from hms_bridge.repl.format.layout import DumpPaths


@dataclass(frozen=True, kw_only=True, slots=True)
class ScopeChange:
    """From the scope that the replica has to the one that it gets; both may be the same."""

    before: ReplScope
    now: ReplScope

    @property
    def is_modified(self) -> bool:
        """Whether this dump is of another scope than the one before."""
        return self.before != self.now

    @property
    def is_limited(self) -> bool:
        """Whether one of both leaves tables out."""
        return not (self.before.is_whole_database and self.now.is_whole_database)

    def carries(self, table: str) -> bool:
        """Whether events of a name go on: the replica has what is called so, and keeps it."""
        return self.before.contains(table) and self.now.contains(table)

    def crosses(self, table: str) -> bool:
        """Whether a name comes into the scope or leaves it."""
        return self.before.contains(table) != self.now.contains(table)

    def touches(self, table: str) -> bool:
        """Whether the replica has the name, or gets it."""
        return self.before.contains(table) or self.now.contains(table)


@dataclass(frozen=True, kw_only=True, slots=True)
class AnewNames:
    """Names that a dump brings whole or names as gone. ``asked``: for which somebody asked, and
    those that renames tie to them; ``by_scope``: the others, for which the scope is the reason."""

    asked: frozenset[str] = frozenset()
    by_scope: frozenset[str] = frozenset()

    @property
    def all(self) -> frozenset[str]:
        """Those that somebody asked for, and those of the scope, together."""
        return self.asked | self.by_scope


@dataclass(frozen=True, slots=True)
class LeftOutTables(Container[str]):
    """Names whose events a dump leaves out: those that come anew, or are outside the scope."""

    anew: frozenset[str]
    change: ScopeChange

    @property
    def is_any(self) -> bool:
        """Whether there may be one."""
        return bool(self.anew) or self.change.is_limited

    def __contains__(self, name: object) -> bool:
        return name in self.anew or not self.change.carries(str(name))


def names_anew(
    source: Metastore,
    change: ScopeChange,
    wanted: EventRange,
    asked: Iterable[str],
    tables: Iterable[Table],
) -> AnewNames:
    """What has to come whole, or go, for events of all other names to suffice. ``tables``: all of
    the source, read before the end of the range was chosen: a name that is lost between has an
    event in the range then, while one that is lost after its end had none and would stay on the
    replica for good."""
    database = change.now.database_name
    of_asked = linked_names(source, database, wanted, asked)
    if not change.is_limited:
        return AnewNames(asked=of_asked)
    crossing = {table.name for table in tables if change.crosses(table.name)}
    crossing |= _crossing_in(source, change, wanted)
    linked = linked_names(source, database, wanted, of_asked | crossing)
    touched = frozenset(name for name in linked if change.touches(name))
    return AnewNames(asked=of_asked & touched, by_scope=touched - of_asked)


def _crossing_in(source: Metastore, change: ScopeChange, wanted: EventRange) -> set[str]:
    """Names of events that cross the edge, by themselves or by a rename. A table that is not there
    any more has none but in events; the replica may have it all the same."""
    database = change.now.database_name
    crossing: set[str] = set()
    for event in read_events(source, wanted):
        names = names_of_event(event, database)
        crossing |= {name for name in names if change.crosses(name)}
        if _is_of_two(event, database) and len({change.carries(name) for name in names}) > 1:
            crossing |= names
    return crossing


def _is_of_two(event: NotificationEvent, database: str) -> bool:
    return event.type == EventType.ALTER_TABLE.value and is_of(event, database)


def is_renamed_away(event: NotificationEvent, left_out: LeftOutTables) -> bool:
    """Whether an event takes a name away that the replica has, of a table that comes whole or goes:
    to a name outside of the scope, or to one that such a rename ties to it. A real Hive that loads
    the dump drops the table by that event (DropTableHandler); by the names alone it would not."""
    change = left_out.change
    if not change.is_limited or not _is_of_two(event, change.now.database_name):
        return False
    before, after = Payload.of(event).altered_tables()
    is_rename = before.database_name == after.database_name and before.name != after.name
    return is_rename and before.name in left_out.anew and change.carries(before.name)


def require_meant(change: ScopeChange, *, is_meant: bool) -> None:
    """Raises ReplError for a scope that is not that of the dump before unless somebody says that it
    is meant: what leaves a scope is dropped on the replica."""
    if change.is_modified and not is_meant:
        raise ReplError(
            f"the dump before is of {change.before.text}, this one would be of {change.now.text}: "
            "tables that are new in the scope would be copied whole, tables outside of it dropped "
            "on the replica. If that is meant, say so with --change-scope. Else leave the patterns "
            f"out, which goes on as before: 'repl dump {change.now.database_name}'"
        )


def require_covered(change: ScopeChange, asked: Iterable[str]) -> None:
    """Raises ReplError for tables that are asked for and that the scope leaves out."""
    outside = sorted(name for name in asked if not change.now.contains(name))
    if outside:
        raise ReplError(
            f"{', '.join(outside)} is outside of {change.now.text}, so the replica gets none of "
            "it; leave it out, or change the scope (--change-scope)"
        )


def tables_in(scope: ReplScope, tables: Iterable[Table]) -> tuple[Table, ...]:
    """Those that a scope covers."""
    return tuple(table for table in tables if scope.contains(table.name))


def table_list(scope: ReplScope, tables: Iterable[Table], paths: DumpPaths) -> dict[str, str]:
    """What a limited scope covers now, by its path: Hive lists it in every dump, and reads it for
    Atlas only (ReplDumpTask.dumpTableListToDumpLocation)."""
    names = sorted(table.name for table in tables_in(scope, tables))
    return {paths.table_list(scope.database_name): "".join(f"{name}\n" for name in names)}


def scope_of(dump: DumpDirectory | None, database: str) -> ReplScope:
    """That of a dump; all tables where there is none, or it does not say."""
    scope = None if dump is None else dump.scope
    return ReplScope(database_name=database) if scope is None else scope
