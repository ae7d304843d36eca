"""What others may change in a database that loads keep equal to its source: nothing, unasked.

A write id that somebody takes on a replica is the number of one of the source's next writes, and a
rebalancing compaction gives rows other ids than the source's deletes will name. So write ids are
given to replayed transactions only, and only the initiator queues compactions. Definitions are
looked at where our own loads made the replica: the change is let through while a load is at work
(it holds the lease). On the wire a definition that a real Hive's REPL LOAD replays looks like
anybody's (Hive: DropTableOperation), so replicas that Hive made are open to definitions.

The property :data:`OPENED` of the database decides: ``true`` lets everything pass, ``definitions``
those only, ``false`` nothing; without it, as ``definitions``. A source that is handed over to its
replica (:data:`FENCED`) lets nothing pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import databases
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Database
from hms_bridge.model.event import EventType
from hms_bridge.model.lock import LockFilter, LockState
from hms_bridge.model.properties import LAST_EVENT, TARGET_FOR
from hms_bridge.model.target import Scope
from hms_bridge.notification.events import EventDraft
from hms_bridge.repl.lease import LeaseKind
from hms_bridge.repl.remedies import (
    lift_fence,
    open_to_definitions,
    open_to_writers,
    taken_over,
)
from hms_bridge.repl.target_objects import (
    FENCED,
    HANDOVER,
    OPENED,
    PROPERTIES,
    SUCCESSOR,
    is_fenced,
    is_replica,
)
from hms_bridge.txn.lock_list import show_locks

_DEFINITIONS = frozenset(
    {
        EventType.CREATE_TABLE,
        EventType.ALTER_TABLE,
        EventType.DROP_TABLE,
        EventType.ADD_PARTITION,
        EventType.ALTER_PARTITION,
        EventType.ALTER_PARTITIONS,
        EventType.DROP_PARTITION,
        EventType.CREATE_FUNCTION,
        EventType.DROP_FUNCTION,
        EventType.ADD_PRIMARY_KEY,
        EventType.ADD_FOREIGN_KEY,
        EventType.ADD_UNIQUE,
        EventType.ADD_NOT_NULL,
        EventType.ADD_DEFAULT,
        EventType.ADD_CHECK,
        EventType.DROP_CONSTRAINT,
    }
)


_LOOKED_AT = _DEFINITIONS | {EventType.DROP_DATABASE}
_KEPT = (TARGET_FOR, FENCED)


def ask_write_refusal(connection: Connection, database_name: str) -> Callable[[], str | None]:
    """As :func:`write_refusal`, for who asks more before he looks at it."""
    parameters = databases.ask_parameters(connection, database_name.lower())

    def look() -> str | None:
        # Nearly all databases have neither, and are not read as a whole.
        if parameters().keys().isdisjoint(_KEPT):
            return None
        return write_refusal(connection, database_name)

    return look


def expect_writable(connection: Connection, database_name: str) -> None:
    """Fails, when it is done, for a database that loads keep, or that is fenced; of PostgreSQL."""
    databases.expect_no_parameter(connection, database_name.lower(), _KEPT)


def write_refusal(connection: Connection, database_name: str) -> str | None:
    """Why nobody but a load may write to a database; None if others may."""
    return _refusal(
        connection, database_name, "only repl load writes there. Write at its source", "write"
    )


def compaction_refusal(connection: Connection, database_name: str) -> str | None:
    """Why nobody but the initiator may ask for a compaction that keeps row ids; None if others
    may."""
    return _refusal(
        connection,
        database_name,
        "its initiator alone asks for compactions there. Type 'hms-bridge initiator run', or let "
        "'hms-bridge serve --initiator --worker' do it",
        "ask",
    )


def _refusal(connection: Connection, database_name: str, why: str, what: str) -> str | None:
    database = _find(connection, database_name)
    if database is None or _opened(database) in ("", "true"):
        return None
    if is_fenced(database):
        return _fenced_text(database)
    return (
        f"database {database.name} is a replica: {why}; to let others {what} here: "
        f"{open_to_writers(database.name)}"
    )


def is_replicated(connection: Connection, database_name: str) -> bool:
    """Whether loads keep the database. Hives before 4 mark it by ``repl.last.id`` only."""
    database = _find(connection, database_name)
    return database is not None and is_kept_by_loads(database.parameters)


def is_kept_by_loads(parameters: Mapping[str, str]) -> bool:
    """The same of a database's parameters."""
    return is_replica(parameters) or LAST_EVENT in parameters


def require_replicated(connection: Connection, database_name: str, what: str) -> None:
    """Raises MetaError unless loads keep the database: a replayed write id moves the table's
    counter to the source's and forgets what the table's own transactions wrote."""
    if not is_replicated(connection, database_name):
        raise MetaError(
            f"{what}: database {database_name} is no replica. Bootstrap it with repl load, or "
            "leave the fields of a replay out"
        )


def require_definitions_open(connection: Connection, database_name: str, what: str) -> None:
    """Raises MetaError if definitions of the database are a load's own, and none is at work."""
    database = _find(connection, database_name)
    if database is None or _opened(database) != "false":
        return
    # Into a database that changes places nothing is loaded; the lease is the promotion's own.
    if not is_fenced(database) and HANDOVER not in database.parameters:
        lease = LockFilter(scope=Scope(database.name, LeaseKind.LOAD.value))
        if any(lock.state is LockState.ACQUIRED for lock in show_locks(connection, lease)):
            return
    if is_fenced(database):
        raise MetaError(f"{what}: {_fenced_text(database)}")
    raise MetaError(
        f"{what}: database {database.name} is a replica, whose definitions come from its "
        "source; change them there. To change them here: "
        f"{open_to_definitions(database.name)}"
    )


def require_own_definitions(connection: Connection, drafts: Iterable[EventDraft]) -> None:
    """Raises MetaError if the events of a verb are of definitions that are not to be changed.

    A database that goes as a whole may go.
    """
    drafts = [draft for draft in drafts if draft.type in _LOOKED_AT]
    if not drafts:
        return
    gone = {draft.database_name for draft in drafts if draft.type is EventType.DROP_DATABASE}
    changed = {
        name: draft
        for draft in drafts
        if draft.type in _DEFINITIONS
        for name in (draft.database_name, _database_before(draft))
        if name and name not in gone
    }
    for name, draft in changed.items():
        require_definitions_open(
            connection, name, f"{draft.type.value.lower()} {draft.table_name or ''}".strip()
        )


def require_place_kept(before: Database, after: Database) -> None:
    """Raises MetaError if an alteration would undo a change of places.

    Who alters a database writes all of it, as it was when he read it (Hive: alter_database). A load
    or a client that stood still meanwhile would make a replica again of what has taken its source's
    place, or lift the fence of its source.
    """
    is_made_replica = is_replica(after.parameters)
    is_as_before = HANDOVER in after.parameters and is_replica(before.parameters)
    is_successor = HANDOVER in before.parameters and not is_fenced(before)
    if is_successor and is_made_replica and not is_as_before:
        raise MetaError(
            f"database {before.name} takes its source's place, or has taken it, and this change "
            "would make it a replica again: it was read before that. Read it once more"
        )
    is_forgotten = SUCCESSOR in before.parameters.keys() - after.parameters.keys()
    is_lifted = is_fenced(before) and (is_forgotten or not is_fenced(after)) and not is_made_replica
    is_ended = after.parameters.keys().isdisjoint(PROPERTIES)
    if is_lifted and not is_ended and _described(before) != _described(after):
        raise MetaError(
            f"{_fenced_text(before)}. This change would lift its fence, or forget who has its "
            "place: it was read before that. Read it once more"
        )


def require_follower(connection: Connection, database_name: str, what: str) -> None:
    """Raises MetaError for what a load does to a database that takes its source's place, or has:
    the load stood still meanwhile."""
    database = _find(connection, database_name)
    if database is not None and HANDOVER in database.parameters:
        raise MetaError(f"{what}: {taken_over(database.name)}")


def _find(connection: Connection, database_name: str) -> Database | None:
    stored = databases.find_database(connection, database_name.lower())
    return None if stored is None else stored.database


def _described(database: Database) -> tuple[object, ...]:
    """All but its fence."""
    parameters = {key: value for key, value in database.parameters.items() if key != FENCED}
    return (
        parameters,
        database.description,
        database.owner_name,
        database.owner_type,
        database.location,
        database.managed_location,
    )


def _database_before(draft: EventDraft) -> str | None:
    """Where a table was that is renamed into another database: the message says it, not the row."""
    name = draft.message.get("db")
    return name if isinstance(name, str) else None


def _opened(database: Database) -> str:
    """The property, as it counts; empty for a database that anybody may change."""
    if is_fenced(database):
        return "false"
    if not is_replica(database.parameters):
        return ""
    opened = database.parameters.get(OPENED, "").strip().lower()
    return opened if opened in ("true", "false") else "definitions"


def _fenced_text(database: Database) -> str:
    return (
        f"database {database.name} is fenced ({FENCED}): its replica takes its place, or has "
        f"taken it; write there. To give it back: {lift_fence(database.parameters[FENCED])}"
    )
