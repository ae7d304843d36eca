"""Move partitions from one table to another of the same form: rows, and directories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from changemanager.location import parse_uri
from changemanager.manifest import ArchiveCause, ArchiveContext
from hms_bridge.archive.file_tasks import FileTask
from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import databases, partitions, tables
from hms_bridge.catalog.found_partitions import StoredPartition, is_same_place
from hms_bridge.catalog.places import Owner
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import Column, Partition, Table
from hms_bridge.model.target import TableName
from hms_bridge.notification import events
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.locations import partition_location
from hms_bridge.service.replica_gate import require_definitions_open
from hms_bridge.service.unit_of_work import UnitOfWork


@dataclass(frozen=True, kw_only=True, slots=True)
class _Exchange:
    """Which partition becomes which; the directory of each, and where it goes."""

    source: StoredTable
    target: StoredTable
    pairs: Sequence[tuple[StoredPartition, Partition]]
    is_source_of_replication: bool

    @property
    def moves(self) -> list[tuple[str, str, str]]:
        """Name, place and new place of each that has files."""
        return [
            (old.name, old.partition.storage.location, new.storage.location)
            for old, new in self.pairs
            if old.partition.storage.location and new.storage.location
        ]

    def require_same(
        self, connection: Connection, name: str, source: TableName, target: TableName
    ) -> None:
        """Hold both tables alone; the target, and the partition of that name, are what was looked
        at. Raises MetaError."""
        stored = _hold(connection, (source, target), RowLock.EXCLUSIVE)
        into = stored[target]
        is_same = into.id == self.target.id
        is_same &= into.table.storage.location == self.target.table.storage.location
        old = next(old for old, _ in self.pairs if old.name == name)
        now = partitions.find_by_names(connection, stored[source], [name]).stored()
        if not is_same or not now or not is_same_place(old, now[0]):
            raise _changed(source)


class ExchangePartitionVerbs(VerbFamily):
    """exchange_partitions: not in the port, because no other room needs it; the server does."""

    def exchange_partitions(
        self, values: Mapping[str, str], source: TableName, target: TableName
    ) -> tuple[Partition, ...]:
        """Move the partitions with these values by column, all or none; how they are now.

        Rules: HMSHandler.exchange_partitions; transactional tables are refused, as Hive's
        compiler does. Raises MetaError, also if nothing has these values, or the target has one
        of the partitions; InvalidOperationError if one of the directories is there.
        """
        plan = self._transactions.read_whole(lambda c: self._plan(c, values, source, target))
        if plan.is_source_of_replication:
            self._files.require_archive(f"table {plan.source.table.full_name}")
        self._file_work.settle(*(place for _, *both in plan.moves for place in both))
        with ExitStack() as moves:  # what was moved first is put back last
            tasks = [
                moves.enter_context(
                    self._file_work.moved(
                        place,
                        new_place,
                        context=ArchiveContext(
                            cause=ArchiveCause.RENAME,
                            location=place,
                            database=source.database,
                            table=source.table,
                            partition=name,
                        ),
                        is_archived=plan.is_source_of_replication,
                        require=partial(plan.require_same, name=name, source=source, target=target),
                    )
                )
                for name, place, new_place in plan.moves
            ]
            return self._transactions.write(
                lambda unit: self._exchange(unit, values, source, target, plan, tasks)
            )

    def _exchange(
        self,
        unit: UnitOfWork,
        values: Mapping[str, str],
        source: TableName,
        target: TableName,
        planned: _Exchange,
        moved: Sequence[FileTask],
    ) -> tuple[Partition, ...]:
        _hold(unit.connection, (source, target), RowLock.SHARED)
        # Once more under the locks: the rows must still say what the directories were moved for.
        plan = self._plan(unit.connection, values, source, target, RowLock.EXCLUSIVE)
        is_same = [old.id for old, _ in plan.pairs] == [old.id for old, _ in planned.pairs]
        is_same &= plan.moves == planned.moves and plan.target.id == planned.target.id
        if not is_same or not all(self._file_work.finish(unit, task) for task in moved):
            raise _changed(source)
        new = [partition for _, partition in plan.pairs]
        partitions.insert_partitions(unit.connection, plan.target, new)
        partitions.delete_partitions(unit.connection, [old for old, _ in plan.pairs])
        now = unit.now_seconds
        unit.events.append(events.partitions_added(plan.target.table, new, now))
        unit.events += [
            events.partitions_dropped(plan.source.table, [old.partition.values], now)
            for old, _ in plan.pairs
        ]
        return tuple(new)

    def _plan(
        self,
        connection: Connection,
        values: Mapping[str, str],
        source: TableName,
        target: TableName,
        lock: RowLock = RowLock.NONE,
    ) -> _Exchange:
        plan = _plan(connection, values, source, target, lock)
        for name in dict.fromkeys((source.database, target.database)):
            require_definitions_open(connection, name, f"exchange_partitions {target.table}")
        owner = Owner(
            table=plan.source.table, partitions=frozenset(old.name for old, _ in plan.pairs)
        )
        self._files.rule.require_alone(connection, owner, *(place for _, place, _ in plan.moves))
        return plan


def _plan(
    connection: Connection,
    values: Mapping[str, str],
    source: TableName,
    target: TableName,
    lock: RowLock,
) -> _Exchange:
    """What would be done. Raises MetaError for what must not."""
    into = _require(connection, target, "destination")
    out_of = _require(connection, source, "source")
    wanted = _values(out_of.table, values)
    moving = partitions.find_by_values(connection, out_of, wanted, lock=lock).stored()
    if not moving:
        shown = ", ".join(f"{key}={value}" for key, value in values.items())
        raise MetaError(
            f"No partition is found with the values {{{shown}}} for the table {source.table}"
        )
    _check_form(out_of.table, into.table)
    existing = partitions.existing_names(connection, into, [partition.name for partition in moving])
    if existing:
        raise MetaError(f"The partition {min(existing)} already exists in the table {target.table}")
    return _Exchange(
        source=out_of,
        target=into,
        pairs=[(stored, _moved(stored, out_of.table, into.table)) for stored in moving],
        is_source_of_replication=_check_replication(connection, source, target),
    )


def _hold(
    connection: Connection, keys: Sequence[TableName], lock: RowLock
) -> dict[TableName, StoredTable]:
    # One order for all, so that nobody waits in a ring.
    return {key: tables.require_table(connection, *key.parts, lock) for key in sorted(set(keys))}


def _changed(source: TableName) -> MetaError:
    return MetaError(
        f"partitions of {source.database}.{source.table} were changed by someone else while their "
        "directories were moved; try again"
    )


def _require(connection: Connection, key: TableName, which: str) -> StoredTable:
    stored = tables.find_table(connection, key.database, key.table, key.catalog)
    if stored is None:
        raise MetaError(f"The {which} table {key.catalog}.{key.database}.{key.table} not found")
    return stored


def _values(table: Table, values: Mapping[str, str]) -> list[str]:
    given = {name.lower(): value for name, value in values.items()}
    names = [column.name for column in table.partition_columns]
    unknown = sorted(given.keys() - set(names))
    if unknown or not any(given.values()):
        raise MetaError(
            f"Invalid partition key & values; {', '.join(unknown) or 'no value'} given for "
            f"{table.full_name}, whose partition columns are {', '.join(names) or 'none'}"
        )
    wanted = [given.get(name) or "" for name in names]
    first_gap = wanted.index("") if "" in wanted else len(wanted)
    if any(wanted[first_gap:]):
        raise MetaError(
            f"a value for {names[first_gap]} is missing: partitions are exchanged by their first "
            "columns"
        )
    return wanted


def _check_form(source: Table, target: Table) -> None:
    for table in (source, target):
        if table.is_view:
            raise MetaError(f"{table.full_name} is a view, which has no partitions of its own")
        if table.is_transactional:
            raise MetaError(
                f"Exchange partition is not allowed with transactional tables: {table.full_name}"
            )
    if _form(source.storage.columns) != _form(target.storage.columns) or _form(
        source.partition_columns
    ) != _form(target.partition_columns):
        raise MetaError("The tables have different schemas. Their partitions cannot be exchanged.")


def _form(columns: Sequence[Column]) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in columns]


def _check_replication(connection: Connection, source: TableName, target: TableName) -> bool:
    """Whether the files must be archived. Files never go from one database to another where one
    of them is a replication source (HiveMetaStore.isRenameAllowed)."""
    is_source = [
        databases.require_database(
            connection, key.database, key.catalog
        ).database.is_replication_source
        for key in (source, target)
    ]
    if source.catalog != target.catalog:
        raise MetaError("You cannot move a partition across catalogs")
    if source.database != target.database and any(is_source):
        raise MetaError(
            f"Exchange partition not allowed from {source.database} to {target.database}, since "
            "one of them is a replication source"
        )
    return any(is_source)


def _moved(stored: StoredPartition, source: Table, target: Table) -> Partition:
    """The partition as one of the target. Raises MetaError for one that does not lie where its
    table would put it: others may share that place."""
    old = stored.partition
    place, new_place = old.storage.location, partition_location(target, stored.name)
    if place is not None and place != partition_location(source, stored.name):
        raise MetaError(
            f"partition {stored.name} of {source.full_name} lies at {place}, outside its table; "
            "move it there before it is exchanged (ALTER TABLE … PARTITION … SET LOCATION)"
        )
    if place and new_place and parse_uri(place).file_system != parse_uri(new_place).file_system:
        raise MetaError(
            f"{place} and {new_place} are on different file systems; copy the rows instead"
        )
    return replace(
        old,
        database_name=target.database_name,
        table_name=target.name,
        storage=replace(old.storage, location=new_place if place else None),
    )
