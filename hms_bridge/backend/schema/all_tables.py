"""Every table module, so that METADATA is complete, and the rows that a new schema starts with."""

from __future__ import annotations

from typing import Any

from sqlalchemy import MetaData, Table

from hms_bridge.backend.schema import (
    archive_tables,
    catalog_tables,
    connector_tables,
    dependent_tables,
    function_tables,
    mark_tables,
    notification_tables,
    plan_tables,
    privilege_tables,
    replication_tables,
    report_tables,
    token_tables,
    txn_tables,
    unused_tables,
)
from hms_bridge.backend.schema.metadata import METADATA

TABLES: MetaData = METADATA
"""All tables."""

TABLE_MODULES = (
    archive_tables,
    catalog_tables,
    connector_tables,
    dependent_tables,
    function_tables,
    mark_tables,
    notification_tables,
    plan_tables,
    privilege_tables,
    replication_tables,
    report_tables,
    token_tables,
    txn_tables,
    unused_tables,
)
"""Who declares them."""

SEEDS: tuple[tuple[Table, dict[str, Any]], ...] = (
    *txn_tables.SEEDS,
    *notification_tables.SEEDS,
    *archive_tables.SEEDS,
)
"""(table, row): rows to put in where the table is empty."""
