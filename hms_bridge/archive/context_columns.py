"""How an ArchiveContext is kept in the columns that several tables share."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Row

from changemanager.manifest import ArchiveCause, ArchiveContext


def context_values(context: ArchiveContext) -> dict[str, Any]:
    """A context as column values."""
    return {
        "CAUSE": context.cause.value,
        "TABLE_LOCATION": context.location,
        "DB_NAME": context.database,
        "TBL_NAME": context.table,
        "PART_NAME": context.partition,
        "TXN_ID": context.txn_id,
        "COMPACTION_ID": context.compaction_id,
    }


def context_from_row(row: Row[*tuple[Any, ...]]) -> ArchiveContext:
    """The context of a row that has these columns."""
    return ArchiveContext(
        cause=ArchiveCause(row.CAUSE),
        location=row.TABLE_LOCATION,
        database=row.DB_NAME,
        table=row.TBL_NAME,
        partition=row.PART_NAME,
        txn_id=row.TXN_ID,
        compaction_id=row.COMPACTION_ID,
    )
