"""Constraints that Hive keeps for tables: primary and foreign keys, unique, not null, default,
check. They have no foreign key in the database, so nothing but this module keeps them true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    update,
)

from hms_bridge.backend.batches import batches
from hms_bridge.backend.schema.catalog_tables import COLUMNS_V2, DBS, PARTITION_KEYS, TBLS
from hms_bridge.backend.schema.dependent_tables import KEY_CONSTRAINTS
from hms_bridge.errors import InvalidObjectError
from hms_bridge.model.catalog import Column
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind, ReferredColumn

_K = KEY_CONSTRAINTS.c
_ENABLED, _VALIDATED, _RELIED_ON = 4, 2, 1
"""Bits of ENABLE_VALIDATE_RELY (docs/hive/metastore.md §29; Hive: ObjectStore.addForeignKeys)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConstrainedTable:
    """A table that has constraints, or that they refer to."""

    id: int
    column_list_id: int | None
    full_name: str
    columns: Sequence[Column]
    partition_columns: Sequence[Column]


@dataclass(frozen=True, kw_only=True, slots=True)
class NewConstraint:
    """What is to be stored of one column; ``other``: the table that a foreign key refers to."""

    owner: ConstrainedTable
    constraint: ColumnConstraint
    other: ConstrainedTable | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ColumnChange:
    """A table's columns before and after, and the keys of both lists."""

    table_id: int
    old_list_id: int
    new_list_id: int
    old: Sequence[Column]
    new: Sequence[Column]

    def new_place(self, place: int) -> int | None:
        """Where the column at an old place is now; None if it is gone.

        A column that has another name at the same place was renamed, if the rest stands still.
        """
        if not 0 <= place < len(self.old):
            return None
        names = [column.name.lower() for column in self.new]
        name = self.old[place].name.lower()
        if name in names:
            return names.index(name)
        is_renamed = len(self.old) == len(self.new) and all(
            before.name.lower() == after
            for at, (before, after) in enumerate(zip(self.old, names, strict=True))
            if at != place
        )
        return place if is_renamed else None


def of_table(connection: Connection, table_id: int) -> tuple[ColumnConstraint, ...]:
    """All of a table, by name; a foreign key is of the table that refers to the other one."""
    is_foreign = _K.CONSTRAINT_TYPE == ConstraintKind.FOREIGN_KEY.value
    own = _column_at(
        case((is_foreign, _K.CHILD_TBL_ID), else_=_K.PARENT_TBL_ID),
        case((is_foreign, _K.CHILD_CD_ID), else_=_K.PARENT_CD_ID),
        case((is_foreign, _K.CHILD_INTEGER_IDX), else_=_K.PARENT_INTEGER_IDX),
    )
    other = _column_at(_K.PARENT_TBL_ID, _K.PARENT_CD_ID, _K.PARENT_INTEGER_IDX)
    rows = connection.execute(
        select(
            KEY_CONSTRAINTS,
            own.label("COLUMN_NAME"),
            other.label("OTHER_COLUMN"),
            TBLS.c.TBL_NAME.label("OTHER_TABLE"),
            DBS.c.NAME.label("OTHER_DATABASE"),
        )
        .select_from(KEY_CONSTRAINTS)
        .join(TBLS, TBLS.c.TBL_ID == _K.PARENT_TBL_ID)
        .join(DBS, TBLS.c.DB_ID == DBS.c.DB_ID)
        .where(_is_of(table_id))
        .order_by(_K.CONSTRAINT_NAME, _K.POSITION)
    ).all()
    keys = _key_names(connection, [row.PARENT_TBL_ID for row in rows])
    return tuple(
        ColumnConstraint(
            name=row.CONSTRAINT_NAME,
            kind=ConstraintKind(row.CONSTRAINT_TYPE),
            column=row.COLUMN_NAME,
            expression=row.DEFAULT_VALUE,
            is_enabled=bool(row.ENABLE_VALIDATE_RELY & _ENABLED),
            is_validated=bool(row.ENABLE_VALIDATE_RELY & _VALIDATED),
            is_relied_on=bool(row.ENABLE_VALIDATE_RELY & _RELIED_ON),
            position=row.POSITION,
            refers_to=_referred(row, keys),
        )
        for row in rows
    )


def _referred(row: Row[Any], keys: Mapping[int, str]) -> ReferredColumn | None:
    if row.CONSTRAINT_TYPE != ConstraintKind.FOREIGN_KEY.value:
        return None
    return ReferredColumn(
        database_name=row.OTHER_DATABASE,
        table_name=row.OTHER_TABLE,
        column=row.OTHER_COLUMN or "",
        key_name=keys.get(row.PARENT_TBL_ID),
        update_rule=row.UPDATE_RULE or 0,
        delete_rule=row.DELETE_RULE or 0,
    )


def _is_of(table_id: int) -> ColumnElement[bool]:
    return or_(
        and_(_K.PARENT_TBL_ID == table_id, _K.CHILD_TBL_ID.is_(None)), _K.CHILD_TBL_ID == table_id
    )


def _column_at(
    table: ColumnElement[Any], column_list: ColumnElement[Any], place: ColumnElement[Any]
) -> ColumnElement[Any]:
    """A column's name; one without a list is of the partition columns."""
    stored = (
        select(COLUMNS_V2.c.COLUMN_NAME)
        .where(column_list == COLUMNS_V2.c.CD_ID, place == COLUMNS_V2.c.INTEGER_IDX)
        .correlate(KEY_CONSTRAINTS)
        .scalar_subquery()
    )
    partition = (
        select(PARTITION_KEYS.c.PKEY_NAME)
        .where(table == PARTITION_KEYS.c.TBL_ID, place == PARTITION_KEYS.c.INTEGER_IDX)
        .correlate(KEY_CONSTRAINTS)
        .scalar_subquery()
    )
    return case((column_list.is_not(None), stored), else_=partition)


def _key_names(connection: Connection, table_ids: Sequence[int]) -> dict[int, str]:
    """The primary key of each table. A foreign key does not say which key it refers to."""
    is_key = _K.CONSTRAINT_TYPE == ConstraintKind.PRIMARY_KEY.value
    query = select(_K.PARENT_TBL_ID, _K.CONSTRAINT_NAME).where(is_key)
    return {
        row.PARENT_TBL_ID: row.CONSTRAINT_NAME
        for piece in batches(sorted(set(table_ids)))
        for row in connection.execute(query.where(_K.PARENT_TBL_ID.in_(piece)))
    }


def insert_constraint(connection: Connection, row: NewConstraint) -> None:
    """One column of one; the caller has seen that the name is free.

    Raises InvalidObjectError for a column that a table does not have.
    """
    constraint = row.constraint
    flags = (
        constraint.is_enabled * _ENABLED
        | constraint.is_validated * _VALIDATED
        | constraint.is_relied_on * _RELIED_ON
    )
    own = _place(row.owner, constraint.column)
    values: dict[str, object] = {
        "CONSTRAINT_NAME": constraint.name,
        "POSITION": constraint.position,
        "CONSTRAINT_TYPE": constraint.kind.value,
        "ENABLE_VALIDATE_RELY": flags,
        "DEFAULT_VALUE": constraint.expression,
    }
    if constraint.refers_to is not None and row.other is not None:
        values |= _side("CHILD", row.owner, own) | {
            "UPDATE_RULE": constraint.refers_to.update_rule,
            "DELETE_RULE": constraint.refers_to.delete_rule,
        }
        values |= _side("PARENT", row.other, _place(row.other, constraint.refers_to.column))
    else:
        values |= _side("PARENT", row.owner, own)
    connection.execute(insert(KEY_CONSTRAINTS).values(values))


def _side(side: str, table: ConstrainedTable, place: tuple[int | None, int]) -> dict[str, object]:
    return {
        f"{side}_TBL_ID": table.id, f"{side}_CD_ID": place[0], f"{side}_INTEGER_IDX": place[1]
    }  # fmt: skip


def _place(table: ConstrainedTable, column: str | None) -> tuple[int | None, int]:
    """The column list and the place in it; without a list: of the partition columns, or (-1) of
    the whole table."""
    if column is None:
        return None, -1
    for key, columns in ((table.column_list_id, table.columns), (None, table.partition_columns)):
        names = [known.name.lower() for known in columns]
        if column.lower() in names:
            return key, names.index(column.lower())
    raise InvalidObjectError(
        f"{table.full_name} has no column {column}; name one that it has in the constraint"
    )


def is_taken(connection: Connection, table_id: int, name: str) -> bool:
    """Whether a table has a constraint of a name, or another one's foreign key to it has it: both
    are stored under the table that is referred to."""
    of_name = and_(_K.PARENT_TBL_ID == table_id, _K.CONSTRAINT_NAME == name)
    return connection.scalar(select(func.count()).where(of_name)) != 0


def delete_constraint(connection: Connection, table_id: int, name: str) -> bool:
    """Remove one of a table; whether it was there."""
    of_name = and_(_is_of(table_id), _K.CONSTRAINT_NAME == name)
    return connection.execute(delete(KEY_CONSTRAINTS).where(of_name)).rowcount > 0


def forget_table(connection: Connection, table_id: int) -> None:
    """The table was dropped: its constraints, and foreign keys of others that refer to it
    (ObjectStore.dropTable; docs/hive/metastore.md §29)."""
    connection.execute(
        delete(KEY_CONSTRAINTS).where(
            or_(_K.PARENT_TBL_ID == table_id, _K.CHILD_TBL_ID == table_id)
        )
    )


def follow_columns(connection: Connection, change: ColumnChange) -> None:
    """The table has another column list: constraints go on naming the same columns; one that
    names a column which is gone goes too."""
    sides = (
        (_K.PARENT_TBL_ID, _K.PARENT_CD_ID, _K.PARENT_INTEGER_IDX),
        (_K.CHILD_TBL_ID, _K.CHILD_CD_ID, _K.CHILD_INTEGER_IDX),
    )
    for owner, column_list, place in sides:
        is_here = and_(owner == change.table_id, column_list == change.old_list_id)
        rows = connection.execute(
            select(_K.PARENT_TBL_ID, _K.CONSTRAINT_NAME, _K.POSITION, place).where(is_here)
        ).all()
        for table_id, name, position, old_place in rows:
            of_constraint = and_(_K.PARENT_TBL_ID == table_id, _K.CONSTRAINT_NAME == name)
            new_place = change.new_place(old_place)
            if new_place is None:
                connection.execute(delete(KEY_CONSTRAINTS).where(of_constraint))
                continue
            connection.execute(
                update(KEY_CONSTRAINTS)
                .where(of_constraint, _K.POSITION == position)
                .values({column_list: change.new_list_id, place: new_place})
            )
