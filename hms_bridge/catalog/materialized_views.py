"""Which tables a materialized view reads, as Hive keeps it (docs/hive/metastore.md §29)."""

from __future__ import annotations

from sqlalchemy import ColumnElement, Connection, and_, delete, exists, select, update

from hms_bridge.backend.schema.catalog_tables import DBS, TBLS
from hms_bridge.backend.schema.dependent_tables import MV_CREATION_METADATA, MV_TABLES_USED
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Table

_M = MV_CREATION_METADATA.c
_U = MV_TABLES_USED.c


def require_unused(connection: Connection, table_id: int) -> None:
    """Raises MetaError if a materialized view that exists reads this table.

    What a view that is gone left behind does not count.
    """
    view = and_(
        TBLS.c.TBL_NAME == _M.TBL_NAME,
        TBLS.c.DB_ID == DBS.c.DB_ID,
        DBS.c.NAME == _M.DB_NAME,
        DBS.c.CTLG_NAME == _M.CAT_NAME,
    )
    rows = connection.execute(
        select(_M.DB_NAME, _M.TBL_NAME)
        .join_from(
            MV_TABLES_USED,
            MV_CREATION_METADATA,
            _U.MV_CREATION_METADATA_ID == _M.MV_CREATION_METADATA_ID,
        )
        .where(_U.TBL_ID == table_id, exists().where(view))
    )
    names = sorted(f"{database}.{name}" for database, name in rows)
    if names:
        raise MetaError(
            "Cannot drop table as it is used in the following materialized views "
            f"[{', '.join(names)}]"
        )


def forget_view(connection: Connection, view: Table) -> None:
    """The materialized view was dropped."""
    keys = select(_M.MV_CREATION_METADATA_ID).where(_is(view))
    ids = list(connection.scalars(keys))
    connection.execute(delete(MV_TABLES_USED).where(_U.MV_CREATION_METADATA_ID.in_(ids)))
    connection.execute(delete(MV_CREATION_METADATA).where(_M.MV_CREATION_METADATA_ID.in_(ids)))


def rename_view(connection: Connection, old: Table, new: Table) -> None:
    """The materialized view has another name."""
    connection.execute(
        update(MV_CREATION_METADATA)
        .where(_is(old))
        .values(DB_NAME=new.database_name, TBL_NAME=new.name)
    )


def _is(view: Table) -> ColumnElement[bool]:
    return and_(
        _M.CAT_NAME == view.catalog_name,
        _M.DB_NAME == view.database_name,
        _M.TBL_NAME == view.name,
    )
