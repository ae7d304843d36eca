"""Constraints that Hive keeps for tables: primary and foreign keys, unique, not null, default,
check. They have no foreign key in the database, so nothing but this module keeps them true."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, and_, delete, func, or_, select, update

from hms_bridge.backend.schema.catalog_tables import COLUMNS_V2, PARTITION_KEYS
from hms_bridge.backend.schema.dependent_tables import KEY_CONSTRAINTS
from hms_bridge.model.catalog import Column
from hms_bridge.model.constraint import ColumnConstraint, ConstraintKind

_K = KEY_CONSTRAINTS.c
_ENABLED, _VALIDATED, _RELIED_ON = 4, 2, 1
"""Bits of ENABLE_VALIDATE_RELY (Hive: ``ObjectStore.addConstraint``)."""


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
    """Those that writers keep, by name (Hive: ``MetaStoreDirectSql.getCheckConstraints``)."""
    rows = connection.execute(
        select(
            _K.CONSTRAINT_NAME,
            _K.CONSTRAINT_TYPE,
            _K.DEFAULT_VALUE,
            _K.ENABLE_VALIDATE_RELY,
            _K.PARENT_CD_ID,
            COLUMNS_V2.c.COLUMN_NAME,
            PARTITION_KEYS.c.PKEY_NAME,
        )
        .select_from(KEY_CONSTRAINTS)
        .outerjoin(
            COLUMNS_V2,
            and_(
                COLUMNS_V2.c.CD_ID == _K.PARENT_CD_ID,
                COLUMNS_V2.c.INTEGER_IDX == _K.PARENT_INTEGER_IDX,
            ),
        )
        .outerjoin(
            PARTITION_KEYS,
            and_(
                PARTITION_KEYS.c.TBL_ID == _K.PARENT_TBL_ID,
                PARTITION_KEYS.c.INTEGER_IDX == _K.PARENT_INTEGER_IDX,
            ),
        )
        .where(
            _K.PARENT_TBL_ID == table_id,
            _K.CONSTRAINT_TYPE.in_([kind.value for kind in ConstraintKind]),
        )
        .order_by(_K.CONSTRAINT_NAME, _K.POSITION)
    )
    return tuple(
        ColumnConstraint(
            name=row.CONSTRAINT_NAME,
            kind=ConstraintKind(row.CONSTRAINT_TYPE),
            column=row.COLUMN_NAME if row.PARENT_CD_ID is not None else row.PKEY_NAME,
            expression=row.DEFAULT_VALUE,
            is_enabled=bool(row.ENABLE_VALIDATE_RELY & _ENABLED),
            is_validated=bool(row.ENABLE_VALIDATE_RELY & _VALIDATED),
            is_relied_on=bool(row.ENABLE_VALIDATE_RELY & _RELIED_ON),
        )
        for row in rows
    )


def constraint_names(connection: Connection, table_id: int) -> tuple[str, ...]:
    """Of a table; a foreign key is of the table that refers to the other one. Sorted."""
    owner = func.coalesce(_K.CHILD_TBL_ID, _K.PARENT_TBL_ID)
    query = select(_K.CONSTRAINT_NAME).where(owner == table_id).distinct()
    return tuple(sorted(connection.scalars(query)))


def forget_table(connection: Connection, table_id: int) -> None:
    """The table was dropped: its constraints, and foreign keys of others that refer to it
    (ObjectStore.dropTable)."""
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
