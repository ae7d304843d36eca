"""Files with numbers that the metastore never gave: it is older than they are.

That is so after its database was restored from a backup while the tables went on. A compacted
directory of those days is not seen then, and what it replaced is gone: the table looks empty, a
dump of it is empty, and a compaction of what is left would hide the rows for good.
"""

from __future__ import annotations

from typing import Protocol

from hms_bridge.acid.listing import DirectoryListing
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import WriteId
from hms_bridge.model.txn import OpenTxns
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList


class GivenIds(Protocol):
    """A metastore that says which numbers it has given."""

    def get_open_txns(self) -> OpenTxns:
        """With the highest transaction so far."""

    def get_max_allocated_write_id(self, database: str, table: str) -> WriteId:
        """0 if there is none."""


def require_known_ids(
    metastore: GivenIds,
    table: Table,
    listing: DirectoryListing,
    txns: ValidTxnList,
    write_ids: ValidWriteIdList,
) -> None:
    """Raises AcidFormatError, naming a directory, if the metastore never gave its number.

    What is beyond the reader's lists may be of a writer or compactor that came later, so the
    metastore is asked again then: it gives a number before anybody can make a directory of it.
    """
    names = [directory.name for directory in listing.directories]
    newest = max(names, key=lambda name: name.visibility_txn_id, default=None)
    if newest is not None and newest.visibility_txn_id > txns.high_watermark:
        highest = metastore.get_open_txns().high_watermark
        if newest.visibility_txn_id > highest:
            raise _older(listing, newest.format(), f"transaction {newest.visibility_txn_id}")
    latest = max(names, key=lambda name: name.max_write_id, default=None)
    if latest is not None and latest.max_write_id > write_ids.high_watermark:
        given = metastore.get_max_allocated_write_id(table.database_name, table.name)
        if latest.max_write_id > given:
            raise _older(listing, latest.format(), f"write id {latest.max_write_id}")


def _older(listing: DirectoryListing, name: str, number: str) -> AcidFormatError:
    return AcidFormatError(
        f"{name} is of {number}, which this metastore never gave: its database is older than the "
        "table, as after a backup was restored, and rows would be missing. Restore a newer one, or "
        "take the table away (table adopt registers it in a new metastore); move the directory "
        "away if it is not of this table",
        listing.root,
    )
