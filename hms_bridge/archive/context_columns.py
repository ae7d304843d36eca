"""How an ArchiveContext is kept in the columns that several tables share."""

from __future__ import annotations

from changemanager.manifest import ArchiveCause, ArchiveContext
from hms_bridge.backend.columns import Columns, member

CONTEXT = Columns(
    ArchiveContext,
    cause=member("CAUSE", ArchiveCause),
    location="TABLE_LOCATION",
    database="DB_NAME",
    table="TBL_NAME",
    partition="PART_NAME",
    txn_id="TXN_ID",
    compaction_id="COMPACTION_ID",
)
"""Their order is a part of what a digest is made of (:mod:`hms_bridge.archive.records`)."""
