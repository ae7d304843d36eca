"""Partitions of one table, as many as there are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol, overload

from hms_bridge.model.catalog import DEFAULT_CATALOG, Partition, Storage


class PartitionRow(NamedTuple):
    """What is a partition's own. ``storage`` has no place, and is one object for all that are
    stored alike."""

    values: tuple[str, ...]
    create_time: int
    last_access_time: int
    storage: Storage
    location: str | None
    parameters: Mapping[str, str]
    write_id: int
    is_statistics_compliant: bool | None = None


class PartitionRows(Protocol):
    """As many as its length says, and the same each time."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[PartitionRow]: ...


class PartitionList(Sequence[Partition]):
    """Partitions that become records when they are looked at: a server that sends thousands writes
    them from their rows (:mod:`hms_bridge.wire.partition_bytes`). Equal to any sequence of the same
    partitions."""

    def __init__(
        self,
        database_name: str,
        table_name: str,
        rows: PartitionRows,
        catalog_name: str = DEFAULT_CATALOG,
    ) -> None:
        self.database_name = database_name
        self.table_name = table_name
        self.catalog_name = catalog_name
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Partition]:
        return map(self._record, self.rows)

    @overload
    def __getitem__(self, place: int) -> Partition: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Partition, ...]: ...
    def __getitem__(self, place: int | slice) -> Partition | tuple[Partition, ...]:
        if not isinstance(self.rows, Sequence):
            self.rows = tuple(self.rows)
        if isinstance(place, slice):
            return tuple(map(self._record, self.rows[place]))
        return self._record(self.rows[place])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(tuple(self))

    def _record(self, row: PartitionRow) -> Partition:
        return Partition(
            values=row.values,
            database_name=self.database_name,
            table_name=self.table_name,
            catalog_name=self.catalog_name,
            create_time=row.create_time,
            last_access_time=row.last_access_time,
            storage=replace(row.storage, location=row.location),
            parameters=row.parameters,
            write_id=row.write_id,
            is_statistics_compliant=row.is_statistics_compliant,
        )


def lists_of(partitions: Iterable[Partition]) -> list[PartitionList]:
    """The same partitions in the same order; a list is of one table."""
    if isinstance(partitions, PartitionList):
        return [partitions]
    return [
        PartitionList(
            partition.database_name,
            partition.table_name,
            [
                PartitionRow(
                    partition.values,
                    partition.create_time,
                    partition.last_access_time,
                    replace(partition.storage, location=None),
                    partition.storage.location,
                    partition.parameters,
                    partition.write_id,
                    partition.is_statistics_compliant,
                )
            ],
            partition.catalog_name,
        )
        for partition in partitions
    ]
