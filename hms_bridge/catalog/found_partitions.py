"""What statements gave of partitions of one table: as a list, or as records with the keys of their
rows, for who changes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection

from hms_bridge.catalog.details import Details, load_details
from hms_bridge.catalog.storage import (
    StorageKey,
    alikeness,
    as_read_for_acid,
    load_skews,
    owners_in,
    storage_from_row,
    storage_key,
)
from hms_bridge.model.catalog import Partition, Skew, Storage, Table
from hms_bridge.model.partition_list import PartitionList, PartitionRow

_OWN = attrgetter("PART_ID", "CREATE_TIME", "LAST_ACCESS_TIME", "LOCATION", "WRITE_ID")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredPartition:
    """A partition, its name and the keys of its rows."""

    id: int
    name: str
    partition: Partition
    storage: StorageKey | None


def is_same_place(looked: StoredPartition, now: StoredPartition) -> bool:
    """Whether what was seen of a partition's files is still of it: its table may have been dropped
    and made again meanwhile, or it has got another directory."""
    return looked.id == now.id and (
        looked.partition.storage.location == now.partition.storage.location
    )


@dataclass(frozen=True, slots=True)
class FoundPartitions:
    """Sorted by name."""

    _table: Table
    _rows: Sequence[Any]
    _details: Details
    _skews: Mapping[int, Skew]

    def listed(self) -> PartitionList:
        """Without their keys."""
        table = self._table
        rows = _ListedRows(table, self._rows, self._details, self._skews)
        return PartitionList(table.database_name, table.name, rows, table.catalog_name)

    def stored(self) -> tuple[StoredPartition, ...]:
        """With their keys."""
        return tuple(
            StoredPartition(
                id=row.PART_ID,
                name=row.PART_NAME,
                storage=storage_key(row),
                partition=partition,
            )
            for row, partition in zip(self._rows, self.listed(), strict=True)
        )


class _ListedRows:
    """Made when they are gone through: of many, the first are sent before the last are made. What
    is stored alike is made once, and is one object."""

    def __init__(
        self, table: Table, rows: Sequence[Any], details: Details, skews: Mapping[int, Skew]
    ) -> None:
        self._table = table
        self._rows = rows
        self._details = details
        self._skews = skews
        self._storages: dict[object, Storage] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[PartitionRow]:
        details, storages = self._details, self._storages
        values, parameters = details.partition_values, details.parameters["partitions"]
        kind_of = alikeness(details, self._skews)
        for row in self._rows:
            kind = kind_of(row)
            storage = storages.get(kind)
            if storage is None:
                storage = storages[kind] = self._storage(row)
            key, created, accessed, location, write_id = _OWN(row)
            own, named = tuple(values.get(key, ())), parameters.get(key, {})
            yield PartitionRow(own, created, accessed, storage, location, named, write_id or 0)

    def _storage(self, row: Any) -> Storage:
        columns = tuple(self._details.columns.get(row.CD_ID, ()))
        storage = storage_from_row(row, self._details, self._skews, columns)
        storage = as_read_for_acid(storage) if self._table.is_full_acid else storage
        return replace(storage, location=None)


def described(connection: Connection, table: Table, rows: Sequence[Any]) -> FoundPartitions:
    """Rows of PARTITIONS that have STORAGE_COLUMNS, with all that describes them."""
    owners = owners_in(rows)
    owners.partitions = [row.PART_ID for row in rows]
    details = load_details(connection, owners)
    ordered = sorted(rows, key=attrgetter("PART_NAME"))
    return FoundPartitions(table, ordered, details, load_skews(connection, details))
