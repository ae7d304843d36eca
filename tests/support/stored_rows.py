"""What stands in a table of a database: for what no call shows."""

from __future__ import annotations

from typing import Any

from sqlalchemy import create_engine, select

from hms_bridge.backend.schema.all_tables import TABLES


def rows_of(database_url: str, table: str) -> list[dict[str, Any]]:
    """All rows, in the order of the primary key."""
    wanted = TABLES.tables[table]
    engine = create_engine(database_url)
    try:
        with engine.connect() as connection:
            rows = connection.execute(select(wanted).order_by(*wanted.primary_key.columns))
            return [dict(row._mapping) for row in rows]
    finally:
        engine.dispose()
