"""The roots of a table (itself, or its partitions), and what a snapshot reads of each."""

from __future__ import annotations

import functools
import logging
from collections.abc import Iterator
from dataclasses import dataclass

from changemanager.location import Location, Resolver
from hms_bridge.acid.listing import DirectoryListing
from hms_bridge.directories.known_ids import require_known_ids
from hms_bridge.directories.listing import list_acid_directory
from hms_bridge.errors import AcidFormatError
from hms_bridge.metastore import CatalogStore, Metastore
from hms_bridge.model.catalog import Storage, Table
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.rows.reader import has_raw_rows
from hms_bridge.snapshot.plan import ReadPlan, plan_read

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Root:
    """``location`` is a URI; ``values`` are a partition's, as texts."""

    location: str
    storage: Storage
    values: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedRoot:
    """A root, and what one look found in it."""

    root: Root
    place: Location
    listing: DirectoryListing


def table_roots(catalog: CatalogStore, table: Table) -> Iterator[Root]:
    """Raises AcidFormatError for one without a place."""
    if not table.is_partitioned:
        storage = table.storage
        yield Root(location=_location(storage.location, table.full_name), storage=storage)
        return
    for partition in catalog.get_partitions(table.database_name, table.name):
        yield Root(
            location=_location(partition.storage.location, table.full_name),
            storage=partition.storage,
            values=partition.values,
        )


def list_root(
    metastore: Metastore,
    resolver: Resolver,
    table: Table,
    root: Root,
    *,
    txns: ValidTxnList,
    write_ids: ValidWriteIdList,
) -> ListedRoot:
    """Look into a root, for a snapshot that was taken before. Raises AcidFormatError, OSError."""
    place = resolver(root.location)
    volume = place.volume
    listing = list_acid_directory(
        volume,
        place.path,
        has_raw_rows=functools.partial(has_raw_rows, volume),
        is_insert_only=table.is_insert_only,
    )
    require_known_ids(metastore, table, listing, txns, write_ids)
    return ListedRoot(root=root, place=place, listing=listing)


def plan_root(
    table: Table, listed: ListedRoot, *, txns: ValidTxnList, write_ids: ValidWriteIdList
) -> ReadPlan:
    """What a snapshot reads of a root; files that are none of the format are logged.

    Raises NotEnoughHistoryError for a snapshot that was compacted away, AcidFormatError.
    """
    plan = plan_read(
        listed.listing,
        txns=txns,
        write_ids=write_ids,
        is_bucketed=bool(table.storage.bucket_columns),
        is_insert_only=table.is_insert_only,
    )
    if plan.unread:
        _LOG.warning(
            "%s: no row is read from %s%s, which has no name of the ACID format; if it holds "
            "rows, LOAD it with Hive, else move it out of the table",
            table.full_name,
            plan.unread[0],
            f" and {len(plan.unread) - 1} more" if len(plan.unread) > 1 else "",
        )
    return plan


def _location(location: str | None, name: str) -> str:
    if not location:
        raise AcidFormatError(f"{name} has no location; mend the table")
    return location
