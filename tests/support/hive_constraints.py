"""Constraints as a Hive on the same database writes them."""

from __future__ import annotations

from sqlalchemy import insert, select

from hms_bridge.backend.engine import open_database
from hms_bridge.backend.schema.catalog_tables import SDS, TBLS
from hms_bridge.backend.schema.dependent_tables import KEY_CONSTRAINTS
from hms_bridge.model.constraint import ConstraintKind

ENABLED, RELIED_ON = 4, 1


def put_constraint(
    url: str,
    table: str,
    name: str,
    kind: ConstraintKind,
    place: int | None,
    *,
    expression: str | None = None,
    flags: int = ENABLED,
) -> None:
    """A constraint on the column at a place; None is a check of the whole table."""
    engine = open_database(url)
    with engine.transaction(write=True) as connection:
        found = connection.execute(
            select(TBLS.c.TBL_ID, SDS.c.CD_ID)
            .join(SDS, TBLS.c.SD_ID == SDS.c.SD_ID)
            .where(table == TBLS.c.TBL_NAME)
        ).one()
        connection.execute(
            insert(KEY_CONSTRAINTS).values(
                PARENT_TBL_ID=found.TBL_ID,
                PARENT_CD_ID=None if place is None else found.CD_ID,
                PARENT_INTEGER_IDX=-1 if place is None else place,
                CONSTRAINT_NAME=name,
                POSITION=1,
                CONSTRAINT_TYPE=kind.value,
                ENABLE_VALIDATE_RELY=flags,
                DEFAULT_VALUE=expression,
            )
        )
    engine.close()
