"""Verbs of constraints, which refuse what a real Hive refuses (tests/golden/wire). Nothing but
writers of rows, who ask for NOT NULL, DEFAULT and CHECK, keeps what they say."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import count

from hms_bridge.backend.connection import Connection
from hms_bridge.backend.work import sql
from hms_bridge.catalog import constraints, tables
from hms_bridge.catalog.constraints import ConstrainedTable, NewConstraint
from hms_bridge.catalog.limits import check_constraint
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.errors import InvalidObjectError, MetaError
from hms_bridge.model.catalog import DEFAULT_CATALOG, Table
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind, ReferredColumn
from hms_bridge.notification import object_events
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import UnitOfWork, reads_whole, writes

_PREFIXES = {
    ConstraintKind.PRIMARY_KEY: "pk",
    ConstraintKind.FOREIGN_KEY: "fk",
    ConstraintKind.UNIQUE: "uk",
    ConstraintKind.NOT_NULL: "nn",
    ConstraintKind.DEFAULT: "dc",
    ConstraintKind.CHECK: "ck",
}
_KEYS = (ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE)
_IN_HIVES_ORDER = (
    ConstraintKind.PRIMARY_KEY,
    ConstraintKind.FOREIGN_KEY,
    ConstraintKind.UNIQUE,
    ConstraintKind.NOT_NULL,
    ConstraintKind.DEFAULT,
    ConstraintKind.CHECK,
)


def _get_constraints(
    connection: Connection, database: str, table: str, catalog: str = DEFAULT_CATALOG
) -> tuple[ColumnConstraint, ...]:
    stored = tables.find_table(connection, database.lower(), table.lower(), catalog.lower())
    return constraints.of_table(connection, stored.id) if stored is not None else ()


def add_constraints(
    unit: UnitOfWork,
    database: str,
    table: str,
    wanted: Sequence[ColumnConstraint],
    catalog: str = DEFAULT_CATALOG,
) -> None:
    """Of one kind, with their event. Raises InvalidObjectError, MetaError, NoSuchObjectError."""
    if len({constraint.kind for constraint in wanted}) != 1:
        raise InvalidObjectError(
            f"{database}.{table}: constraints of one kind are added at a time; send others apart"
        )
    owner = tables.require_table(
        unit.connection, database.lower(), table.lower(), catalog.lower(), RowLock.EXCLUSIVE
    )
    own = _constrained(owner)
    there = constraints.of_table(unit.connection, owner.id)
    named = _with_names(
        f"{owner.id}_{unit.now_ms}", wanted, {constraint.name for constraint in there}
    )
    _require_free(own, named, there)
    others = {
        constraint: _other(unit, constraint.refers_to, catalog)
        for constraint in named
        if constraint.refers_to
    }
    _require_keys(unit.connection, others)
    for constraint in named:
        check_constraint(constraint, own.full_name)
        constraints.insert_constraint(
            unit.connection,
            NewConstraint(owner=own, constraint=constraint, other=others.get(constraint)),
        )
    unit.events.append(object_events.constraints_added(owner.table, named, unit.now_seconds))


def add_with_table(unit: UnitOfWork, table: Table, wanted: Sequence[ColumnConstraint]) -> None:
    """Those of a table that is made in the same transaction, kind by kind, after its own event
    (HMSHandler.create_table_core; docs/hive/replication.md §30). Keys come first where one of them
    is referred to by the table itself: whoever replays the events needs it there."""
    kinds = sorted(_IN_HIVES_ORDER, key=lambda kind: _refers_to_itself(table, wanted, kind))
    for kind in kinds:
        of_kind = [constraint for constraint in wanted if constraint.kind is kind]
        if of_kind:
            add_constraints(unit, table.database_name, table.name, of_kind, table.catalog_name)


def _refers_to_itself(
    table: Table, wanted: Sequence[ColumnConstraint], kind: ConstraintKind
) -> bool:
    own = (table.database_name.lower(), table.name.lower())
    referred = [
        constraint.refers_to
        for constraint in wanted
        if constraint.kind is kind and constraint.refers_to is not None
    ]
    return any(
        (reference.database_name.lower(), reference.table_name.lower()) == own
        for reference in referred
    )


def _drop_constraint(
    unit: UnitOfWork, database: str, table: str, name: str, catalog: str = DEFAULT_CATALOG
) -> None:
    owner = tables.require_table(
        unit.connection, database.lower(), table.lower(), catalog.lower(), RowLock.EXCLUSIVE
    )
    if not constraints.delete_constraint(unit.connection, owner.id, name.lower()):
        raise InvalidObjectError(
            f"The constraint: {name} does not exist for the associated table: "
            f"{owner.table.full_name}"
        )
    unit.events.append(
        object_events.constraint_dropped(owner.table, name.lower(), unit.now_seconds)
    )


class ConstraintVerbs(VerbFamily):
    """The ConstraintStore."""

    get_constraints = reads_whole(sql(_get_constraints))
    add_constraints = writes(add_constraints)
    drop_constraint = writes(_drop_constraint)


def _constrained(stored: tables.StoredTable) -> ConstrainedTable:
    return ConstrainedTable(
        id=stored.id,
        column_list_id=None if stored.storage is None else stored.storage.column_list_id,
        full_name=stored.table.full_name,
        columns=stored.table.storage.columns,
        partition_columns=stored.table.partition_columns,
    )


def _with_names(
    key: str, wanted: Sequence[ColumnConstraint], taken: Collection[str]
) -> tuple[ColumnConstraint, ...]:
    """Names in lower case. Those of a call without one get theirs: a key one for all columns."""
    kind = wanted[0].kind
    is_key = kind in (*_KEYS, ConstraintKind.FOREIGN_KEY)
    made = (f"{_PREFIXES[kind]}_{key}_{number}" for number in count())
    free = (name for name in made if name not in taken)
    of_key = next(free)
    return tuple(
        replace(constraint, name=constraint.name.lower() or (of_key if is_key else next(free)))
        for constraint in wanted
    )


def _require_free(
    owner: ConstrainedTable, named: Sequence[ColumnConstraint], there: Sequence[ColumnConstraint]
) -> None:
    if named[0].kind is ConstraintKind.PRIMARY_KEY and any(
        constraint.kind is ConstraintKind.PRIMARY_KEY for constraint in there
    ):
        raise MetaError(f"Primary key already exists for: {owner.full_name}")
    keys = [(constraint.name, constraint.position) for constraint in named]
    taken = sorted(
        {constraint.name for constraint in there} & {constraint.name for constraint in named}
    )
    if taken or len(set(keys)) < len(keys):
        name = taken[0] if taken else keys[0][0]
        raise InvalidObjectError(f"Constraint name already exists: {name} ({owner.full_name})")


def _other(unit: UnitOfWork, referred: ReferredColumn, catalog: str) -> ConstrainedTable:
    """The table that a foreign key refers to. Raises NoSuchObjectError."""
    return _constrained(
        tables.require_table(
            unit.connection,
            referred.database_name.lower(),
            referred.table_name.lower(),
            catalog.lower(),
            RowLock.SHARED,
        )
    )


def _require_keys(
    connection: Connection, others: Mapping[ColumnConstraint, ConstrainedTable]
) -> None:
    """Raises MetaError for a foreign key to columns that are no key of the other table,
    InvalidObjectError for one whose name another one to that table has."""
    for name in dict.fromkeys(constraint.name for constraint in others):
        other = next(table for constraint, table in others.items() if constraint.name == name)
        if constraints.is_taken(connection, other.id, name):
            raise InvalidObjectError(
                f"Constraint name already exists: {name} (of {other.full_name}, or of a foreign "
                "key to it)"
            )
        columns = [
            constraint.refers_to.column.lower()
            for constraint in others
            if constraint.name == name and constraint.refers_to
        ]
        if columns not in _keys(constraints.of_table(connection, other.id)):
            raise MetaError(
                f"Foreign key references {', '.join(columns)} of {other.full_name}; but no "
                "corresponding primary key or unique key exists; add that first"
            )


def _keys(there: Sequence[ColumnConstraint]) -> list[list[str]]:
    """Columns of the primary and unique keys of a table."""
    keys = [constraint for constraint in there if constraint.kind in _KEYS]
    names = dict.fromkeys(key.name for key in keys)
    return [[(key.column or "").lower() for key in keys if key.name == name] for name in names]
