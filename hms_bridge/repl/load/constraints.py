"""Constraints of a replica: what a dump says of them is put in the place of what is there.

Names may stand for other constraints already (a bootstrap reads tables after the event that it
starts from), so one that differs goes before that of the dump comes: the last event has the last
word (Hive passes over what is there: LoadConstraint; docs/hive/replication.md §30).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.target_objects import on_target
from hms_bridge.wire.convert_constraint import TableConstraints

_KEYS = (ConstraintKind.PRIMARY_KEY, ConstraintKind.UNIQUE)


def load_constraints(replica: Replica, dumped: Iterable[TableConstraints]) -> None:
    """Those of tables that were brought whole; of one that was dropped while it was dumped there
    are none. Repeated without harm."""
    of_tables = tuple(dumped)
    for is_foreign in (False, True):
        for of_table in of_tables:
            if (of_table.kind is ConstraintKind.FOREIGN_KEY) is not is_foreign:
                continue
            table = replica.find_table(of_table.table_name)
            if table is not None:
                put_constraints(replica, table, of_table)


def put_constraints(replica: Replica, target: Table, of_table: TableConstraints) -> None:
    """Constraints of one kind, of a table that is there. Nothing for those that are there already.

    A foreign key to what is not on the target is left out with a note, as Hive leaves it out
    (AlterTableAddConstraintOperation): the other table may not be replicated. So is a constraint on
    a column that a bootstrap did not find any more.
    """
    database, table = replica.names.target_database, target.name
    there = replica.metastore.get_constraints(database, table)
    known = (*target.storage.columns, *target.partition_columns)
    columns = {column.name.lower() for column in known}
    for name in dict.fromkeys(part.name.lower() for part in of_table.constraints):
        named = (replace(part, name=name) for part in _named(of_table.constraints, name))
        wanted = on_target(named, replica.names.source_database, database)
        if _compared(wanted) == _compared(_named(there, name)):
            continue
        named_columns = (part.column for part in wanted if part.column)
        gone = [column for column in named_columns if column.lower() not in columns]
        if gone:
            replica.add_note(
                f"constraint {name} of {database}.{table} is left out: column {gone[0]} is not "
                "there"
            )
            continue
        if wanted[0].refers_to is not None and not has_key(replica.metastore, wanted):
            replica.add_note(
                f"foreign key {name} of {database}.{table} is left out: "
                f"{wanted[0].refers_to.database_name}.{wanted[0].refers_to.table_name} has no such "
                "key here"
            )
            continue
        for old in _in_the_way(there, wanted):
            replica.metastore.drop_constraint(database, table, old)
        replica.metastore.add_constraints(database, table, wanted)


def drop_constraint(replica: Replica, table: str, name: str) -> None:
    """Drop one of a table that is there; nothing if it is gone."""
    database = replica.names.target_database
    if _named(replica.metastore.get_constraints(database, table), name):
        replica.metastore.drop_constraint(database, table, name)


def _named(constraints: Iterable[ColumnConstraint], name: str) -> tuple[ColumnConstraint, ...]:
    named = (part for part in constraints if part.name.lower() == name.lower())
    return tuple(sorted(named, key=lambda part: part.position))


def _compared(constraints: Iterable[ColumnConstraint]) -> list[ColumnConstraint]:
    """Without what follows from the rest: a foreign key finds the name of its key."""
    return [
        replace(part, refers_to=part.refers_to and replace(part.refers_to, key_name=None))
        for part in constraints
    ]


def _in_the_way(
    there: Iterable[ColumnConstraint], wanted: Sequence[ColumnConstraint]
) -> Iterable[str]:
    """Names of what has to go first: the same name, or another primary key."""
    kind, name = wanted[0].kind, wanted[0].name
    is_primary = kind is ConstraintKind.PRIMARY_KEY
    return dict.fromkeys(
        part.name for part in there if part.name == name or (is_primary and part.kind is kind)
    )


def has_key(target: Metastore, wanted: Sequence[ColumnConstraint]) -> bool:
    """Whether a metastore has the key that the columns of a foreign key refer to."""
    referred = [part.refers_to for part in wanted if part.refers_to is not None]
    columns = [part.column.lower() for part in referred]
    there = target.get_constraints(referred[0].database_name, referred[0].table_name)
    keys = [part for part in there if part.kind in _KEYS]
    return any(
        [(part.column or "").lower() for part in _named(keys, name)] == columns
        for name in {part.name for part in keys}
    )
