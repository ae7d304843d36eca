"""The names in rows of column statistics: those of catalog, database, table and partition.

They stand beside the id up to Hive 4.0, so that a rename has to follow; later schemas have none
(docs/hive/metastore.md §12).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Connection, Table, select, update

from hms_bridge.backend.schema.catalog_tables import PART_COL_STATS, PARTITIONS, TAB_COL_STATS
from hms_bridge.backend.schema.present import is_present
from hms_bridge.model import catalog


def names_in_rows(connection: Connection, rows: Table, table: catalog.Table) -> dict[str, str]:
    """What new rows of TAB_COL_STATS or PART_COL_STATS (``rows``) name; nothing where none do."""
    if not is_present(connection, rows.c.TABLE_NAME):
        return {}
    return {
        "CAT_NAME": table.catalog_name,
        "DB_NAME": table.database_name,
        "TABLE_NAME": table.name,
    }


def rename_table(connection: Connection, table_id: int, database: str, name: str) -> None:
    """The table has another name, or lies in another database."""
    names = {"DB_NAME": database, "TABLE_NAME": name}
    _rename(connection, TAB_COL_STATS, TAB_COL_STATS.c.TBL_ID == table_id, names)
    own = select(PARTITIONS.c.PART_ID).where(PARTITIONS.c.TBL_ID == table_id)
    _rename(connection, PART_COL_STATS, PART_COL_STATS.c.PART_ID.in_(own), names)


def rename_partition(connection: Connection, partition_id: int, name: str) -> None:
    """The partition has other values."""
    of_partition = PART_COL_STATS.c.PART_ID == partition_id
    _rename(connection, PART_COL_STATS, of_partition, {"PARTITION_NAME": name})


def _rename(connection: Connection, table: Table, where: Any, names: dict[str, str]) -> None:
    values = {name: value for name, value in names.items() if is_present(connection, table.c[name])}
    if values:
        connection.execute(update(table).where(where).values(**values))
