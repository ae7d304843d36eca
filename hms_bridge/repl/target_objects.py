"""What a dumped object becomes on the target: another database and place, same content. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from hms_bridge.errors import ReplError
from hms_bridge.model.catalog import (
    WRITE_IDS_ABOVE,
    Database,
    Partition,
    PrincipalType,
    Table,
)
from hms_bridge.model.constraint import ColumnConstraint
from hms_bridge.model.ids import EventId
from hms_bridge.model.properties import (
    CHECKPOINT,
    DO_NOT_UPDATE,
    FIRST_INCREMENTAL_PENDING,
    INCOMPATIBLE,
    LAST_EVENT,
    SOURCE_FOR,
    TARGET_FOR,
    TARGET_LAST_EVENT,
)
from hms_bridge.model.repl_scope import ReplScope
from hms_bridge.model.statistics_state import without_columns, without_trust
from hms_bridge.repl.format.directories import DumpDirectory, newest_known
from hms_bridge.repl.format.external_list import external_target

FIRST_INCREMENTAL_TABLES = "hms.bridge.repl.first.inc.tables"
"""Of ours, on a database: names of tables that the last dump brought whole."""

ORIGIN = "hms.bridge.repl.origin"
"""Of ours, on a database: the source event of the last whole load, and its hash."""

SCOPE = "hms.bridge.repl.scope"
"""Of ours, on a replica's database: the patterns of the tables that it has, as
``'include'.'exclude'``; not there: all of the source's."""

BEGUN = "hms.bridge.repl.begun"
"""Of ours, on a table: the dump that brings it whole, until it is."""

OPENED = "hms.bridge.replica.open"
"""Of ours, on a replica's database: ``false`` where only loads change it, ``definitions`` where
others may define what it holds, ``true`` where they may write too (service/replica_gate.py)."""

WAS_OPEN = "hms.bridge.replica.was.open"
"""Of ours, on a replica's database: others were let in once, so it may differ from its source in
ways that no event shows."""

FENCED = "hms.bridge.repl.fenced"
"""Of ours, on a source's database: which policy hands it over. Nobody but loads changes it."""

SUCCESSOR = "hms.bridge.repl.successor"
"""Of ours, on a former source: who took its place (repl/successor.py). Stays when its part ends,
until an admin opens it."""

HANDOVER = "hms.bridge.repl.handover"
"""Of ours, on a database that takes its source's place, or has (handover/record.py)."""

DIVERGED = "hms.bridge.repl.diverged"
"""Of ours, on a former source: names of tables that changed on both sides, or only here, and so are
right only when a dump has brought them whole."""
DRILL = "hms.bridge.repl.drill"
"""Of ours, on a database that a drill made for itself: where the drill keeps its dumps."""

PROPERTIES = (
    SOURCE_FOR,
    TARGET_FOR,
    FENCED,
    HANDOVER,
    DIVERGED,
    OPENED,
    WAS_OPEN,
    LAST_EVENT,
    TARGET_LAST_EVENT,
    CHECKPOINT,
    FIRST_INCREMENTAL_PENDING,
    FIRST_INCREMENTAL_TABLES,
    ORIGIN,
    SCOPE,
    INCOMPATIBLE,
    DRILL,
)
"""What makes a database a source or a replica."""

BOOTSTRAP_STATE_PREFIX = "bootstrap.dump.state."

AS_ON_SOURCE: Mapping[str, str] = {DO_NOT_UPDATE: "true"}
"""Environment of changes: the source's statistics are kept, and no files are counted."""


def replay_environment(table: Table) -> Mapping[str, str]:
    """The environment in which a change of a table or its partitions is replayed.

    Hive takes trust in the statistics of a transactional table only with the write ids that prove
    it (ObjectStore.alterTable), which a replay has not: there the target counts anew.
    """
    return {} if table.is_transactional else AS_ON_SOURCE


_OWNER = "hive"

_SOURCE_PROPERTIES = frozenset((*PROPERTIES, SUCCESSOR, BEGUN, WRITE_IDS_ABOVE)) - {LAST_EVENT}
_TARGET_PROPERTIES = _SOURCE_PROPERTIES | {
    LAST_EVENT,
    "repl.failover.endpoint",
    "repl.background.enable",
    "hive.repl.is.custom.db.loc",
    "hive.repl.is.custom.db.managedloc",
}


def replicated_parameters(parameters: Mapping[str, str]) -> dict[str, str]:
    """Parameters of a source object without those of its own replication."""
    return {
        key: value
        for key, value in parameters.items()
        if key not in _SOURCE_PROPERTIES and not key.startswith(BOOTSTRAP_STATE_PREFIX)
    }


def is_replica(parameters: Mapping[str, str]) -> bool:
    """Whether a load made the database; Hive writes and empties the property so
    (ReplConst.TARGET_OF_REPLICATION)."""
    return parameters.get(TARGET_FOR, "").strip().lower() not in ("", "false")


def has_taken_over(parameters: Mapping[str, str]) -> bool:
    """Whether a database was a replica and has taken its source's place."""
    return HANDOVER in parameters and not is_replica(parameters)


def is_fenced(database: Database) -> bool:
    """Whether a source is handed over to its replica, or was."""
    return bool(database.parameters.get(FENCED, "").strip())


def is_loaded(table: Table) -> bool:
    """Whether a load made a table, or brought it last: only such may go with what it replicates."""
    return any(key in table.parameters for key in (LAST_EVENT, CHECKPOINT, BEGUN))


def noted_scope(parameters: Mapping[str, str], source_database: str) -> ReplScope | None:
    """The tables that a replica, whose database has these parameters, has of its source's, as loads
    of ours noted. None: no load of ours made it, so nobody noted anything.

    Raises ConfigError for a property that somebody changed to what is none."""
    patterns = parameters.get(SCOPE, "").strip()
    if not patterns and OPENED not in parameters:
        return None
    return ReplScope.parse(f"{source_database}.{patterns}" if patterns else source_database)


def known_scope(
    parameters: Mapping[str, str], source_database: str, dumps: Iterable[DumpDirectory]
) -> ReplScope:
    """The same; where the replica does not note it, what was dumped last. ``dumps``: newest first.
    Raises ConfigError."""
    newest = newest_known(dumps)
    dumped = None if newest is None else newest.scope
    noted = noted_scope(parameters, source_database)
    return noted or dumped or ReplScope(database_name=source_database)


def diverged_tables(database: Database) -> frozenset[str]:
    """The names in :data:`DIVERGED`."""
    return frozenset(filter(None, database.parameters.get(DIVERGED, "").split(",")))


def last_event_of(parameters: Mapping[str, str]) -> EventId | None:
    """The source event that an object stands at; None if it was never replicated."""
    text = parameters.get(LAST_EVENT, "")
    return EventId(int(text)) if text.isascii() and text.isdecimal() else None


def replica_event(database: Database | None) -> EventId | None:
    """The source event that a replica's database, if there is one, stands at; None before its
    bootstrap is loaded to its end."""
    return None if database is None else last_event_of(database.parameters)


def new_database(source: Database, name: str, checkpoint: str) -> Database:
    """The target's database while a bootstrap is loaded; ``repl.last.id`` comes at the end."""
    parameters = replicated_parameters(source.parameters)
    parameters.pop(LAST_EVENT, None)
    parameters |= {
        CHECKPOINT: checkpoint,
        FIRST_INCREMENTAL_PENDING: "true",
        TARGET_FOR: "true",
        OPENED: "false",
    }
    return replace(source, name=name, location=None, managed_location=None, parameters=parameters)


def owned_database(database: Database) -> Database:
    """The same with an owner: a real Hive cannot load one without."""
    if database.owner_name is not None:
        return database
    return replace(database, owner_name=_OWNER, owner_type=PrincipalType.USER)


def altered_database(existing: Database, source: Database) -> Database:
    """The target's database after an ALTER DATABASE of the source; places stay the target's."""
    kept = {key: value for key, value in existing.parameters.items() if key in _TARGET_PROPERTIES}
    new = {
        key: value
        for key, value in replicated_parameters(source.parameters).items()
        if key not in _TARGET_PROPERTIES
    }
    return replace(
        existing,
        description=source.description,
        owner_name=source.owner_name,
        owner_type=source.owner_type,
        parameters=new | kept,
    )


def with_parameters(database: Database, changes: Mapping[str, str | None]) -> Database:
    """The same database with parameters set, or removed (None)."""
    parameters = dict(database.parameters)
    for key, value in changes.items():
        if value is None:
            parameters.pop(key, None)
        else:
            parameters[key] = value
    return replace(database, parameters=parameters)


def target_table(
    source: Table,
    database_name: str,
    *,
    last_event: EventId,
    existing: Table | None = None,
    external_base: str | None = None,
) -> Table:
    """The table on the target. Managed tables go where the target puts them, or stay there.

    Raises ReplError for an external table without a base directory for such data, and for an
    Iceberg table.
    """
    require_files_of_hive(source)
    parameters = _copied_parameters(source.parameters, source) | {LAST_EVENT: str(last_event)}
    location = _location(source, source, existing, external_base)
    return replace(
        source,
        database_name=database_name,
        storage=replace(source.storage, location=location),
        parameters=parameters,
        id=None if existing is None else existing.id,
        write_id=-1,
    )


def foreign_view_note(view: Table, target_database: str) -> str | None:
    """What to say of a view that reads its source's database by name in one of another name.

    Its text comes along as it is, as with Hive (docs/hive/replication.md §28); the name may be of
    another object in it, so nobody writes it anew.
    """
    source = view.database_name
    text = view.view_expanded_text or view.view_original_text or ""
    if source == target_database or not view.is_any_view:
        return None
    if re.search(rf"(?<![\w.`])`?{re.escape(source)}`?\s*\.", text, re.IGNORECASE) is None:
        return None
    return (
        f"view {target_database}.{view.name} reads database {source} by name, as on the source: "
        f"here that is another database, or none. Load into a database named {source}"
    )


def require_files_of_hive(table: Table) -> None:
    """Raises ReplError for an Iceberg table: its files name each other by their full paths, so the
    copy would read and change the source's."""
    if table.parameters.get("table_type", "").lower() == "iceberg":
        raise ReplError(
            f"{table.full_name} is an Iceberg table, which cannot be replicated: its copy would "
            "be at work on the source's files. Move it to another database (ALTER TABLE … RENAME "
            "TO), then dump with --bootstrap"
        )


def target_partition(
    source: Partition,
    database_name: str,
    *,
    table: Table,
    last_event: EventId,
    existing: Partition | None = None,
    external_base: str | None = None,
) -> Partition:
    """The partition on the target, below its table unless the table is external."""
    location = _location(source, table, existing, external_base)
    return replace(
        source,
        database_name=database_name,
        table_name=table.name,
        storage=replace(source.storage, location=location),
        parameters=_copied_parameters(source.parameters, table) | {LAST_EVENT: str(last_event)},
        write_id=-1,
    )


def on_target(
    constraints: Iterable[ColumnConstraint], source: str, target: str
) -> tuple[ColumnConstraint, ...]:
    """What refers to the source's database refers to the target's there, as a load has it."""
    return tuple(
        constraint
        if constraint.refers_to is None or constraint.refers_to.database_name != source
        else replace(constraint, refers_to=replace(constraint.refers_to, database_name=target))
        for constraint in constraints
    )


def is_of_loads_only(parameters: Mapping[str, str]) -> bool:
    """Whether nobody but loads could ever change a replica of ours."""
    return parameters.get(OPENED) == "false" and WAS_OPEN not in parameters


def has_moved(before: Table | Partition, after: Table | Partition) -> bool:
    """Whether a change gave an object another directory (SET LOCATION); the files stay behind."""
    old, new = before.storage.location, after.storage.location
    return (old or "").rstrip("/") != (new or "").rstrip("/")


def _copied_parameters(parameters: Mapping[str, str], table: Table) -> dict[str, str]:
    """Column statistics do not come along. Were they said to be right, an INSERT there would take
    those of its own rows for those of all; and of a transactional table nothing can be proved."""
    copied = replicated_parameters(parameters)
    return without_trust(copied) if table.is_transactional else without_columns(copied, None)


def _location(
    source: Table | Partition,
    table: Table,
    existing: Table | Partition | None,
    base: str | None,
) -> str | None:
    """Where it is on the target; None: where the target's metastore puts it."""
    if existing is not None:
        return existing.storage.location
    place = source.storage.location
    if not table.is_external or place is None:
        return None
    if base is None:
        raise ReplError(
            f"{table.full_name} is external, and nobody has named the directory of the replica "
            "below which its data goes: type the load again with --external-base DIR; for a "
            "policy, 'hms-bridge repl policy add NAME --replace --target-set "
            "hive.repl.replica.external.table.base.dir=DIR'"
        )
    return external_target(base, place)
