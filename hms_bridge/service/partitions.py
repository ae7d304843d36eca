"""Verbs of partitions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from hms_bridge.archive.file_tasks import FileTask
from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import partitions, tables
from hms_bridge.catalog.found_partitions import StoredPartition, is_same_place
from hms_bridge.catalog.limits import check_partition
from hms_bridge.catalog.partitions import name_of
from hms_bridge.catalog.places import Owner
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.errors import (
    AlreadyExistsError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from hms_bridge.model.catalog import (
    DEFAULT_CATALOG,
    Partition,
    Table,
    asks_to_keep,
    stored_parameters,
)
from hms_bridge.model.target import TableName
from hms_bridge.notification import events
from hms_bridge.service import altered_statistics, file_statistics
from hms_bridge.service.file_statistics import FileCount
from hms_bridge.service.foundation import (
    VerbFamily,
    changed_meanwhile,
    normal_partition,
    with_ddl_time,
)
from hms_bridge.service.locations import WarehouseRoots, partition_location
from hms_bridge.service.unit_of_work import UnitOfWork


@dataclass(frozen=True, kw_only=True, slots=True)
class _Alteration:
    """What alter_partitions is to do; ``counts`` of files by values, for the partitions that were
    looked at."""

    key: TableName
    wanted: Sequence[Partition]
    environment: Mapping[str, str]
    counts: Mapping[tuple[str, ...], tuple[StoredPartition, FileCount | None]]
    is_one_event: bool
    valid_write_ids: str | None

    def with_statistics(self, table: Table, old: StoredPartition, new: Partition) -> Partition:
        looked, counted = self.counts.get(new.values, (old, None))
        if not is_same_place(looked, old):
            raise changed_meanwhile(
                f"partition {old.name} of {table.full_name}", "its files were counted"
            )
        parameters = file_statistics.of_partition(
            table, old.partition, new, counted, self.environment
        )
        return replace(new, parameters=parameters)


class PartitionVerbs(VerbFamily):
    """add, alter, drop of partitions (CatalogStore)."""

    def add_partitions(
        self,
        database: str,
        table: str,
        partitions: Sequence[Partition],
        *,
        is_if_not_exists: bool = False,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[Partition, ...]:
        key = TableName.lower(database, table, catalog)
        stored = self._transactions.read_whole(lambda c: _table_to_add_to(c, key))
        wanted = _distinct(
            stored.table, [_complete(stored.table, p, self._roots, is_new=True) for p in partitions]
        )
        if not wanted:
            return ()
        # For what is refused no directory is made; under the lock, `_insert` looks again.
        existing = self._transactions.read(lambda c: _existing(c, stored, wanted))
        if existing and not is_if_not_exists:
            raise _already_exists(stored.table, next(iter(existing)))
        new = {name: partition for name, partition in wanted.items() if name not in existing}
        made = self._make_directories(stored.table, new.values())
        new = self._counted_anew(stored.table, new, made)
        try:
            return self._transactions.write(
                lambda unit: self._insert(
                    unit, key, stored.id, new, is_if_not_exists=is_if_not_exists
                )
            )
        except BaseException:
            self._files.undo_made(made)
            raise

    def _make_directories(self, table: Table, new: Iterable[Partition]) -> list[str]:
        given = [(p.storage.location, p) for p in new if p.storage.location is not None]
        places = [place for place, _ in given]
        self._file_work.settle(*(place for place, p in given if not asks_to_keep(p.parameters)))
        for place in (place for place, p in given if asks_to_keep(p.parameters)):
            self._file_work.keep(place)
        return self._files.make_directories(places, is_external=table.is_external)

    def _counted_anew(
        self, table: Table, new: Mapping[str, Partition], made: Sequence[str]
    ) -> dict[str, Partition]:
        """Of partitions whose directories were there before."""
        counted = {
            name: self._files.count(partition.storage.location)
            for name, partition in new.items()
            if partition.storage.location not in made
            and file_statistics.is_due_for_added(table, partition)
        }
        return {
            name: replace(
                partition,
                parameters=file_statistics.of_added(partition.parameters, counted[name]),
            )
            if name in counted
            else partition
            for name, partition in new.items()
        }

    def _insert(
        self,
        unit: UnitOfWork,
        key: TableName,
        table_id: int,
        wanted: Mapping[str, Partition],
        *,
        is_if_not_exists: bool,
    ) -> tuple[Partition, ...]:
        stored = _table_to_add_to(unit.connection, key, RowLock.SHARED)
        if stored.id != table_id:
            # They were completed, and their directories made, for the table that is gone.
            raise MetaError(
                f"{stored.table.full_name} was dropped and made again while partitions were added "
                "to it; try again"
            )
        existing = _existing(unit.connection, stored, wanted)
        if existing and not is_if_not_exists:
            raise _already_exists(stored.table, next(iter(existing)))
        new = [
            replace(
                partition,
                create_time=unit.now_seconds,
                parameters=with_ddl_time(dict(partition.parameters), unit.now_seconds),
            )
            for name, partition in wanted.items()
            if name not in existing
        ]
        if new:
            places = [p.storage.location for p in new if p.storage.location is not None]
            self._file_work.require_unmoved(unit.connection, places)
            self._require_places(unit.connection, stored.table, new)
            unit.events.append(events.partitions_added(stored.table, new, unit.now_seconds))
            new = [
                replace(partition, parameters=stored_parameters(partition.parameters))
                for partition in new
            ]
            partitions.insert_partitions(unit.connection, stored, new)
        return tuple(new)

    def _require_places(
        self, connection: Connection, table: Table, wanted: Sequence[Partition]
    ) -> None:
        """Of those that do not lie where their names say, see DeletionRule.require_unshared."""
        named = {name_of(table, p.values): p.storage.location for p in wanted}
        elsewhere = [
            place
            for name, place in named.items()
            if place and place != partition_location(table, name)
        ]
        owner = Owner(table=table, partitions=frozenset(named))
        self._files.rule.require_unshared(connection, table, elsewhere, owner)

    def alter_partitions(
        self,
        database: str,
        table: str,
        partitions: Sequence[Partition],
        *,
        environment: Mapping[str, str] | None = None,
        catalog: str = DEFAULT_CATALOG,
        is_event_each: bool = False,
        valid_write_ids: str | None = None,
    ) -> None:
        key = TableName.lower(database, table, catalog)
        given = environment or {}
        alteration = _Alteration(
            key=key,
            wanted=partitions,
            environment=given,
            counts=self._count(key, partitions, given),
            is_one_event=self._settings.events.is_alter_partitions_one_event and not is_event_each,
            valid_write_ids=valid_write_ids,
        )
        self._transactions.write(lambda unit: self._alter_partitions(unit, alteration))

    def _count(
        self, key: TableName, wanted: Sequence[Partition], environment: Mapping[str, str]
    ) -> Mapping[tuple[str, ...], tuple[StoredPartition, FileCount | None]]:
        """The files of those whose statistics are due, before the transaction."""

        def work(connection: Connection) -> list[tuple[StoredPartition, Partition, Table]]:
            stored = _table(connection, key)
            if stored.table.is_transactional or stored.table.is_view:
                return []
            named = {name_of(stored.table, p.values): p for p in wanted}
            stored_partitions = partitions.find_by_names(connection, stored, list(named)).stored()
            return [
                (stored_partition, named[stored_partition.name], stored.table)
                for stored_partition in stored_partitions
            ]

        return {
            new.values: (
                old,
                self._files.count(new.storage.location or old.partition.storage.location),
            )
            for old, new, table in self._transactions.read_whole(work)
            if file_statistics.is_due_for_partition(table, old.partition, new, environment)
        }

    def _alter_partitions(self, unit: UnitOfWork, alteration: _Alteration) -> None:
        key, wanted = alteration.key, alteration.wanted
        stored = _table(unit.connection, key, RowLock.SHARED)
        named = {
            name_of(stored.table, p.values): _complete(stored.table, p, self._roots, is_new=False)
            for p in wanted
        }
        existing = {
            p.name: p
            for p in partitions.find_by_names(
                unit.connection, stored, list(named), RowLock.EXCLUSIVE
            ).stored()
        }
        missing = [name for name in named if name not in existing]
        if missing:
            values = ", ".join(named[missing[0]].values)
            raise NoSuchObjectError(f"alter is not possible: partition values=[{values}] missing")
        changes = [
            (
                existing[name],
                altered_statistics.altered_partition(
                    unit.connection,
                    stored.table,
                    existing[name],
                    _altered(
                        existing[name].partition,
                        alteration.with_statistics(stored.table, existing[name], partition),
                        unit.now_seconds,
                    ),
                    alteration.valid_write_ids,
                ),
            )
            for name, partition in named.items()
        ]
        moved = [
            new for old, new in changes if new.storage.location != old.partition.storage.location
        ]
        self._require_places(unit.connection, stored.table, moved)
        partitions.update_partitions(unit.connection, stored, changes)
        unit.events += events.partitions_altered(
            stored.table,
            [(old.partition, new) for old, new in changes],
            unit.now_seconds,
            is_one_event=alteration.is_one_event,
        )

    def drop_partitions(
        self,
        database: str,
        table: str,
        names: Sequence[str],
        *,
        catalog: str = DEFAULT_CATALOG,
        is_data_deleted: bool = True,
        is_purge: bool = False,
        is_if_exists: bool = False,
    ) -> None:
        key = TableName.lower(database, table, catalog)
        looked = None
        if is_data_deleted:
            looked = self._drops.look_at_partitions(
                key, lambda c, stored: partitions.find_by_names(c, stored, names).stored()
            )

        def work(unit: UnitOfWork) -> Sequence[FileTask]:
            stored = _table(unit.connection, key, RowLock.SHARED)
            doomed = partitions.find_by_names(
                unit.connection, stored, names, RowLock.EXCLUSIVE
            ).stored()
            if len(doomed) < len(set(names)) and not is_if_exists:
                missing = sorted(set(names) - {partition.name for partition in doomed})
                raise NoSuchObjectError(
                    f"Some partitions to drop are missing: {', '.join(missing[:5])} of "
                    f"{stored.table.full_name}"
                )
            return self._drops.drop_partitions(
                unit, stored, doomed, looked=looked, is_purge=is_purge
            )

        self._drops.carry_out(self._transactions.write(work))


def _table(connection: Connection, key: TableName, lock: RowLock = RowLock.NONE) -> StoredTable:
    return tables.require_table(connection, *key.parts, lock)


def _table_to_add_to(
    connection: Connection, key: TableName, lock: RowLock = RowLock.NONE
) -> StoredTable:
    stored = tables.find_table(connection, *key.parts, lock)
    if stored is None:
        raise NoSuchObjectError(
            f"Unable to add partitions because {key.catalog}.{key} does not exist"
        )
    if not stored.table.is_partitioned:
        raise InvalidOperationError(
            f"{stored.table.full_name} is not partitioned, so no partition can be added"
        )
    return stored


def _complete(
    table: Table, partition: Partition, roots: WarehouseRoots, *, is_new: bool
) -> Partition:
    """With the names of its table; a new one has a location too."""
    if not partition.values:
        raise MetaError("The partition values cannot be null or empty.")
    name = name_of(table, partition.values)
    normal = normal_partition(partition, table)
    location = normal.storage.location
    if not location and is_new and not table.is_view:
        location = partition_location(table, name)
    if location:
        location = roots.directory(location, f"location of partition {name}")
    complete = replace(normal, storage=replace(normal.storage, location=location or None))
    check_partition(complete, name)
    return complete


def _distinct(table: Table, wanted: Sequence[Partition]) -> dict[str, Partition]:
    named: dict[str, Partition] = {}
    for partition in wanted:
        name = name_of(table, partition.values)
        if name in named:
            raise MetaError(f"Duplicate partitions in the list: {name} of {table.full_name}")
        named[name] = partition
    return named


def _existing(
    connection: Connection, stored: StoredTable, wanted: Mapping[str, Partition]
) -> frozenset[str]:
    return partitions.existing_names(connection, stored, list(wanted))


def _already_exists(table: Table, name: str) -> AlreadyExistsError:
    return AlreadyExistsError(f"Partition already exists: {name} of {table.full_name}")


def _altered(old: Partition, new: Partition, now_seconds: int) -> Partition:
    location = new.storage.location or old.storage.location
    return replace(
        new,
        create_time=new.create_time or old.create_time,
        storage=replace(new.storage, location=location),
        parameters=with_ddl_time(dict(new.parameters), now_seconds),
    )
