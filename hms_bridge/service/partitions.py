"""Verbs of partitions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from changemanager.manifest import ArchiveCause
from hms_bridge.archive.file_tasks import FileTask
from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import databases, partitions, tables
from hms_bridge.catalog.limits import check_partition
from hms_bridge.catalog.partition_filter import parse_filter
from hms_bridge.catalog.partition_predicate import bind_filter
from hms_bridge.catalog.partitions import StoredPartition, name_of
from hms_bridge.catalog.places import Owner
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.table_rules import has_own_files
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.errors import (
    AlreadyExistsError,
    InvalidObjectError,
    InvalidOperationError,
    MetaError,
    NoSuchObjectError,
)
from hms_bridge.model.catalog import (
    DEFAULT_CATALOG,
    Partition,
    Table,
    asks_to_keep,
    without_request,
)
from hms_bridge.notification import events
from hms_bridge.service import altered_statistics, file_statistics
from hms_bridge.service.drops import DropVerbs, Looked
from hms_bridge.service.file_statistics import FileCount
from hms_bridge.service.foundation import normal_partition, with_ddl_time
from hms_bridge.service.locations import WarehouseRoots, partition_location
from hms_bridge.service.unit_of_work import UnitOfWork
from hms_bridge.txn import resources


@dataclass(frozen=True, kw_only=True, slots=True)
class _Alteration:
    """What alter_partitions is to do; ``counts`` of files by values."""

    key: tuple[str, str, str]
    wanted: Sequence[Partition]
    environment: Mapping[str, str]
    counts: Mapping[tuple[str, ...], FileCount | None]
    is_one_event: bool
    valid_write_ids: str | None

    def with_statistics(self, table: Table, old: Partition, new: Partition) -> Partition:
        counted = self.counts.get(new.values)
        return replace(
            new,
            parameters=file_statistics.of_partition(table, old, new, counted, self.environment),
        )


class PartitionVerbs(DropVerbs):
    """add, get, alter, drop of partitions (CatalogStore)."""

    def add_partitions(
        self,
        database: str,
        table: str,
        partitions: Sequence[Partition],
        *,
        is_if_not_exists: bool = False,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[Partition, ...]:
        """All or none; returns those that were added, with their locations.

        Raises AlreadyExistsError, NoSuchObjectError, InvalidObjectError.
        """
        key = (database.lower(), table.lower(), catalog.lower())
        stored = self._transactions.read(lambda c: _table_to_add_to(c, key))
        wanted = _distinct(
            stored.table, [_complete(stored.table, p, self._roots, is_new=True) for p in partitions]
        )
        if not wanted:
            return ()
        existing = self._transactions.read(lambda c: _existing(c, stored, wanted))
        if existing and not is_if_not_exists:
            raise _already_exists(stored.table, next(iter(existing)))
        new = {name: partition for name, partition in wanted.items() if name not in existing}
        made = self._make_directories(stored.table, new.values())
        new = self._counted_anew(stored.table, new, made)
        try:
            return self._transactions.write(
                lambda unit: self._insert(unit, key, new, is_if_not_exists=is_if_not_exists)
            )
        except BaseException:
            self._files.undo_made(made)
            raise

    def _make_directories(self, table: Table, new: Iterable[Partition]) -> list[str]:
        given = [(p.storage.location, p) for p in new if p.storage.location is not None]
        places = [place for place, _ in given]
        self._files.settle(*(place for place, p in given if not asks_to_keep(p.parameters)))
        for place in (place for place, p in given if asks_to_keep(p.parameters)):
            self._files.keep(place)
        return [p for p in places if self._files.make_directory(p, is_external=table.is_external)]

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
                parameters=file_statistics.of_added(partition.parameters, counted.get(name)),
            )
            for name, partition in new.items()
        }

    def _insert(
        self,
        unit: UnitOfWork,
        key: tuple[str, str, str],
        wanted: Mapping[str, Partition],
        *,
        is_if_not_exists: bool,
    ) -> tuple[Partition, ...]:
        stored = _table_to_add_to(unit.connection, key, RowLock.SHARED)
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
            self._require_places(unit.connection, stored.table, new)
            unit.events.append(events.partitions_added(stored.table, new, unit.now_seconds))
            new = [replace(one, parameters=without_request(one.parameters)) for one in new]
            partitions.insert_partitions(unit.connection, stored, new)
        return tuple(new)

    def _require_places(
        self, connection: Connection, table: Table, wanted: Sequence[Partition]
    ) -> None:
        """Of those that do not lie where their names say, see :meth:`_require_unshared`."""
        named = {name_of(table, p.values): p.storage.location for p in wanted}
        elsewhere = [
            place
            for name, place in named.items()
            if place and place != partition_location(table, name)
        ]
        owner = Owner(table=table, partitions=frozenset(named))
        self._require_unshared(connection, table, elsewhere, owner)

    def get_partition(
        self, database: str, table: str, values: Sequence[str], catalog: str = DEFAULT_CATALOG
    ) -> Partition:
        """Raises NoSuchObjectError."""

        def work(connection: Connection) -> tuple[StoredPartition, ...]:
            stored = _table(connection, (database.lower(), table.lower(), catalog.lower()))
            return partitions.find_by_names(connection, stored, [name_of(stored.table, values)])

        found = self._transactions.read(work)
        if not found:
            raise NoSuchObjectError(f"partition values=[{', '.join(values)}]")
        return found[0].partition

    def get_partition_names(
        self, database: str, table: str, max_parts: int = -1, catalog: str = DEFAULT_CATALOG
    ) -> tuple[str, ...]:
        """``a=1/b=x`` names, sorted. Raises NoSuchObjectError for an unknown table."""
        return self._transactions.read(
            lambda c: partitions.partition_names(
                c, _table(c, (database.lower(), table.lower(), catalog.lower())), max_parts
            )
        )

    def get_partitions(
        self, database: str, table: str, max_parts: int = -1, catalog: str = DEFAULT_CATALOG
    ) -> tuple[Partition, ...]:
        """Sorted by name. Raises NoSuchObjectError for an unknown table."""
        return self._found(
            database, table, catalog, lambda c, stored: partitions.find_all(c, stored, max_parts)
        )

    def get_partitions_by_names(
        self, database: str, table: str, names: Sequence[str], catalog: str = DEFAULT_CATALOG
    ) -> tuple[Partition, ...]:
        """Those that exist. Raises NoSuchObjectError for an unknown table."""
        return self._found(
            database, table, catalog, lambda c, stored: partitions.find_by_names(c, stored, names)
        )

    def get_partitions_by_values(
        self,
        database: str,
        table: str,
        prefix: Sequence[str],
        max_parts: int = -1,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[Partition, ...]:
        """Those whose values match the given ones; "" or a missing one matches all."""
        return self._found(
            database,
            table,
            catalog,
            lambda c, stored: partitions.find_by_values(c, stored, prefix, max_parts),
        )

    def get_partitions_by_filter(
        self,
        database: str,
        table: str,
        filter_text: str,
        max_parts: int = -1,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[Partition, ...]:
        """Those that a filter like ``ds = "2024-01-02" and n > 3`` selects.

        Raises MetaError for a filter that cannot be parsed, NoSuchObjectError.
        """
        tree = parse_filter(filter_text)

        def find(connection: Connection, stored: StoredTable) -> tuple[StoredPartition, ...]:
            if tree is None:
                return partitions.find_all(connection, stored, max_parts)
            chosen = bind_filter(tree, stored.table.partition_columns)
            return partitions.find_by_filter(connection, stored, chosen, max_parts)

        return self._found(database, table, catalog, find)

    def _found(
        self,
        database: str,
        table: str,
        catalog: str,
        find: Callable[[Connection, StoredTable], tuple[StoredPartition, ...]],
    ) -> tuple[Partition, ...]:
        key = (database.lower(), table.lower(), catalog.lower())
        found = self._transactions.read(lambda c: find(c, _table(c, key)))
        return tuple(stored.partition for stored in found)

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
        """Replace them, found by their values; all or none. Raises NoSuchObjectError."""
        key = (database.lower(), table.lower(), catalog.lower())
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
        self, key: tuple[str, str, str], wanted: Sequence[Partition], environment: Mapping[str, str]
    ) -> Mapping[tuple[str, ...], FileCount | None]:
        """The files of those whose statistics are due, before the transaction."""

        def work(connection: Connection) -> list[tuple[Partition, Partition, Table]]:
            stored = _table(connection, key)
            if stored.table.is_transactional or stored.table.is_view:
                return []
            named = {name_of(stored.table, p.values): p for p in wanted}
            found = partitions.find_by_names(connection, stored, list(named))
            return [(one.partition, named[one.name], stored.table) for one in found]

        return {
            new.values: self._files.count(new.storage.location or old.storage.location)
            for old, new, table in self._transactions.read(work)
            if file_statistics.is_due_for_partition(table, old, new, environment)
        }

    def _alter_partitions(self, unit: UnitOfWork, alteration: _Alteration) -> None:
        key, wanted = alteration.key, alteration.wanted
        stored = _table(unit.connection, key, RowLock.SHARED)
        named = {
            name_of(stored.table, p.values): _complete(stored.table, p, self._roots, is_new=False)
            for p in wanted
        }
        found = {p.name: p for p in partitions.find_by_names(unit.connection, stored, list(named))}
        missing = [name for name in named if name not in found]
        if missing:
            values = ", ".join(named[missing[0]].values)
            raise NoSuchObjectError(f"alter is not possible: partition values=[{values}] missing")
        changes = [
            (
                found[name],
                altered_statistics.altered_partition(
                    unit.connection,
                    stored.table,
                    found[name],
                    _altered(
                        found[name].partition,
                        alteration.with_statistics(stored.table, found[name].partition, partition),
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
        if alteration.is_one_event:
            changed = [new for _, new in changes]
            unit.events += events.partitions_altered(stored.table, changed, unit.now_seconds)
            return
        unit.events += [
            events.partition_altered(stored.table, old.partition, new, unit.now_seconds)
            for old, new in changes
        ]

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
        """Remove them, all or none; files as in drop_table. Raises NoSuchObjectError."""
        key = (database.lower(), table.lower(), catalog.lower())
        looked = None
        if is_data_deleted:
            looked = self._look_at_partitions(
                key, lambda c, stored: partitions.find_by_names(c, stored, names)
            )

        def work(unit: UnitOfWork) -> Sequence[FileTask]:
            stored = _table(unit.connection, key, RowLock.SHARED)
            found = partitions.find_by_names(unit.connection, stored, names)
            if len(found) < len(set(names)) and not is_if_exists:
                missing = sorted(set(names) - {partition.name for partition in found})
                raise NoSuchObjectError(
                    f"Some partitions to drop are missing: {', '.join(missing[:5])} of "
                    f"{stored.table.full_name}"
                )
            return self._drop_rows(unit, stored, found, looked=looked, is_purge=is_purge)

        self._delete_partitions(self._transactions.write(work))

    def _look_at_partitions(
        self,
        key: tuple[str, str, str],
        find: Callable[[Connection, StoredTable], Sequence[StoredPartition]],
    ) -> Looked:
        """What is in the directories of partitions that are about to be dropped."""

        def work(connection: Connection) -> list[str]:
            stored = _table(connection, key)
            if not has_own_files(stored.table):
                return []
            return self._deletable(connection, list(_places(find(connection, stored))))

        return self._look(self._transactions.read(work))

    def _drop_rows(
        self,
        unit: UnitOfWork,
        stored: StoredTable,
        found: Sequence[StoredPartition],
        *,
        looked: Looked | None,
        is_purge: bool,
    ) -> Sequence[FileTask]:
        if not found:
            return ()
        table = stored.table
        partitions.delete_partitions(unit.connection, found)
        if table.is_transactional and table.catalog_name == DEFAULT_CATALOG:
            resources.forget_partitions(
                unit.connection, table.database_name, table.name, [p.name for p in found]
            )
        tasks: Sequence[FileTask] = ()
        if looked is not None and has_own_files(table):
            database = databases.require_database(
                unit.connection, table.database_name, table.catalog_name
            )
            tasks = self._deletions(
                unit,
                database.database,
                Owner(table=table, partitions=frozenset(p.name for p in found)),
                _places(found),
                looked,
                cause=ArchiveCause.DROP_PARTITION,
                is_purge=is_purge,
            )
        values = [partition.partition.values for partition in found]
        unit.events.append(events.partitions_dropped(table, values, unit.now_seconds))
        return tasks


def _places(found: Sequence[StoredPartition]) -> dict[str, str | None]:
    """Their directories, each with the name of its partition."""
    return {p.partition.storage.location: p.name for p in found if p.partition.storage.location}


def _table(
    connection: Connection, key: tuple[str, str, str], lock: RowLock = RowLock.NONE
) -> StoredTable:
    return tables.require_table(connection, *key, lock)


def _table_to_add_to(
    connection: Connection, key: tuple[str, str, str], lock: RowLock = RowLock.NONE
) -> StoredTable:
    stored = tables.find_table(connection, *key, lock)
    if stored is None or not stored.table.is_partitioned:  # or dropped while its parts were read
        stored = tables.find_table(connection, *key, lock)
    if stored is None:
        raise NoSuchObjectError(
            f"Unable to add partitions because {key[2]}.{key[0]}.{key[1]} does not exist"
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
        location = roots.uri(location, f"location of partition {name}")
    complete = replace(normal, storage=replace(normal.storage, location=location or None))
    check_partition(complete, name)
    return complete


def _distinct(table: Table, wanted: Sequence[Partition]) -> dict[str, Partition]:
    named: dict[str, Partition] = {}
    for partition in wanted:
        name = name_of(table, partition.values)
        if name in named:
            raise InvalidObjectError(
                f"Duplicate partitions in the list: {name} of {table.full_name}"
            )
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
        create_time=old.create_time,
        storage=replace(new.storage, location=location),
        parameters=with_ddl_time(dict(new.parameters), now_seconds),
    )
