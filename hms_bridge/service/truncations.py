"""TRUNCATE TABLE, as Hive 4.2's metastore does it (HMSHandler.truncateTableInternal).

A transactional table gets an empty base of the statement's write id in each directory: readers see
it once the transaction commits, and nothing is lost if it aborts. Hive deletes the files of such a
table at once when a client asks for it (docs/hive/metastore.md §9); here they stay for the cleaner,
so a write id is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from changemanager.manifest import ArchiveCause, ArchiveContext
from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import databases, partitions, tables
from hms_bridge.catalog.found_partitions import StoredPartition, is_same_place
from hms_bridge.catalog.places import Owner
from hms_bridge.catalog.row_locks import RowLock
from hms_bridge.catalog.tables import StoredTable
from hms_bridge.config.settings import DELETION_ROOTS
from hms_bridge.errors import InvalidOperationError, MetaError, MetastoreError
from hms_bridge.model.catalog import DEFAULT_CATALOG, Database, Table
from hms_bridge.model.ids import WriteId
from hms_bridge.model.properties import LAST_DDL_TIME
from hms_bridge.model.target import TableName
from hms_bridge.notification import events
from hms_bridge.service import file_statistics
from hms_bridge.service.deletion_rule import OUTSIDE
from hms_bridge.service.foundation import VerbFamily, changed_meanwhile
from hms_bridge.service.replica_gate import require_definitions_open
from hms_bridge.service.unit_of_work import UnitOfWork
from hms_bridge.txn import write_ids


@dataclass(frozen=True, kw_only=True, slots=True)
class _Truncation:
    """What to empty: a table, or those of its partitions."""

    key: TableName
    database: Database
    stored: StoredTable
    names: tuple[str, ...] | None
    partitions: Mapping[int, StoredPartition]
    places: tuple[tuple[str, str | None], ...]
    write_id: WriteId

    @property
    def table(self) -> Table:
        return self.stored.table

    def require_same(self, now: StoredTable) -> None:
        """What was emptied belongs to that table. Raises MetaError."""
        place = self.table.storage.location
        if (now.id, now.table.storage.location) != (self.stored.id, place):
            raise _changed(now.table.full_name)

    def emptied_of(self, now: Sequence[StoredPartition]) -> list[StoredPartition]:
        """Without those that came since the look, whose rows are there. Raises MetaError."""
        emptied = [partition for partition in now if partition.id in self.partitions]
        for partition in emptied:
            if not is_same_place(self.partitions[partition.id], partition):
                raise _changed(f"partition {partition.name} of {self.table.full_name}")
        return emptied


class TruncationVerbs(VerbFamily):
    """truncate_table (CatalogStore)."""

    def truncate_table(
        self,
        database: str,
        name: str,
        partition_names: Sequence[str] | None = None,
        *,
        write_id: WriteId | None = None,
        valid_write_ids: str | None = None,  # noqa: ARG002 (all rows go, so all may believe it)
        is_data_deleted: bool = True,
        catalog: str = DEFAULT_CATALOG,
    ) -> None:
        key = TableName.lower(database, name, catalog)
        given = WriteId(-1) if write_id is None else write_id
        truncation = self._transactions.read_whole(
            lambda c: _look_up(c, key, partition_names, given)
        )
        self._transactions.read(
            lambda c: require_definitions_open(
                c, key.database, f"truncate {truncation.table.full_name}"
            )
        )
        if truncation.table.is_transactional:
            self._add_bases(truncation)
            return
        if is_data_deleted:
            self._delete_data(truncation)
        self._transactions.write(lambda unit: self._note_truncation(unit, truncation))

    def _add_bases(self, truncation: _Truncation) -> None:
        # Not even an empty base is put where a client may name any directory.
        self._transactions.read(lambda c: self._roots_of(c, truncation))
        added = []
        try:
            for place, _ in truncation.places:
                if self._files.add_truncated_base(place, truncation.write_id):
                    added.append(place)
            self._transactions.write(lambda unit: self._note_truncation(unit, truncation))
        except MetastoreError:
            self._files.undo_truncated_bases(added, truncation.write_id)
            raise

    def _delete_data(self, truncation: _Truncation) -> None:
        if truncation.database.is_replication_source:
            self._files.require_archive(f"table {truncation.table.full_name}")
        roots = self._transactions.read(lambda c: self._roots_of(c, truncation))
        for place, partition in truncation.places:
            self._file_work.empty(
                place,
                root=roots[place],
                context=ArchiveContext(
                    cause=ArchiveCause.TRUNCATE,
                    location=place,
                    database=truncation.table.database_name,
                    table=truncation.table.name,
                    partition=partition,
                ),
                is_archived=truncation.database.is_replication_source,
            )

    def _roots_of(self, connection: Connection, truncation: _Truncation) -> dict[str, str]:
        """The allowed root above each directory. Raises InvalidOperationError if one has none:
        the rows would stay."""
        self._require_all_alone(connection, truncation)
        wanted = [place for place, _ in truncation.places]
        roots = self._files.rule.roots_of(wanted)
        for place in wanted:
            if place not in roots:
                raise InvalidOperationError(
                    f"{place} cannot be emptied: it is {OUTSIDE}; name a directory above it in "
                    f"{DELETION_ROOTS.name}, or delete its files by hand"
                )
        return roots

    def _require_all_alone(self, connection: Connection, truncation: _Truncation) -> None:
        stored = tables.require_table(connection, *truncation.key.parts)
        self._require_in_place(connection, truncation, stored)
        is_whole = truncation.names is None or not stored.table.is_partitioned
        names = None if is_whole else frozenset(truncation.names or ())
        self._files.rule.require_alone(
            connection,
            Owner(table=stored.table, partitions=names),
            *(place for place, _ in truncation.places),
            what="emptied",
        )

    def _require_in_place(
        self, connection: Connection, truncation: _Truncation, now: StoredTable
    ) -> None:
        """What lies there is the table's, and nothing of it is elsewhere because a rename that may
        yet be committed moves it. Raises MetaError."""
        truncation.require_same(now)
        self._file_work.require_unmoved(connection, [place for place, _ in truncation.places])

    def _note_truncation(self, unit: UnitOfWork, truncation: _Truncation) -> None:
        stored = tables.require_table(unit.connection, *truncation.key.parts, RowLock.EXCLUSIVE)
        self._require_in_place(unit.connection, truncation, stored)
        if stored.table.is_partitioned:
            some = truncation.emptied_of(_partitions(unit.connection, stored, truncation.names))
            self._note_partitions(unit, stored.table, some, truncation.write_id)
            return
        emptied = replace(
            stored.table, parameters=file_statistics.of_nothing(stored.table.parameters)
        )
        after = replace(emptied, write_id=max(truncation.write_id, emptied.write_id))
        tables.update_table(unit.connection, stored, after, stored.database_id)
        # The message has the table's old write id, and the statement's beside it.
        unit.events.append(
            events.table_altered(
                emptied, emptied, unit.now_seconds, is_truncate=True, write_id=truncation.write_id
            )
        )

    def _note_partitions(
        self, unit: UnitOfWork, table: Table, some: Sequence[StoredPartition], write_id: WriteId
    ) -> None:
        if not some:
            return
        changes = [
            (
                stored_partition,
                replace(
                    stored_partition.partition,
                    write_id=write_id if write_id > 0 else stored_partition.partition.write_id,
                    parameters=file_statistics.of_nothing(stored_partition.partition.parameters)
                    | {LAST_DDL_TIME: str(unit.now_seconds)},
                ),
            )
            for stored_partition in some
        ]
        stored = tables.require_table(
            unit.connection, table.database_name, table.name, table.catalog_name
        )
        partitions.update_partitions(unit.connection, stored, changes)
        unit.events += events.partitions_altered(
            table,
            [(new, new) for _, new in changes],
            unit.now_seconds,
            is_one_event=self._settings.events.is_alter_partitions_one_event,
            is_truncate=True,
        )


def _changed(what: str) -> MetaError:
    return changed_meanwhile(what, "it was emptied")


def _look_up(
    connection: Connection,
    key: TableName,
    names: Sequence[str] | None,
    write_id: WriteId,
) -> _Truncation:
    stored = tables.require_table(connection, *key.parts)
    table, place = stored.table, stored.table.storage.location
    places: tuple[tuple[str, str | None], ...] = ((place, None),) if place else ()
    wanted = None if names is None else tuple(names)
    _check(connection, table, write_id)
    some: Sequence[StoredPartition] = ()
    if table.is_partitioned:
        some = _partitions(connection, stored, wanted)
        places = tuple(
            (stored_partition.partition.storage.location, stored_partition.name)
            for stored_partition in some
            if stored_partition.partition.storage.location
        )
    return _Truncation(
        key=key,
        database=databases.require_database(connection, key.database, key.catalog).database,
        stored=stored,
        names=wanted,
        partitions={partition.id: partition for partition in some},
        places=places,
        write_id=write_id,
    )


def _partitions(
    connection: Connection, stored: tables.StoredTable, names: tuple[str, ...] | None
) -> tuple[StoredPartition, ...]:
    if names is None:
        return partitions.find_all(connection, stored).stored()
    return partitions.find_by_names(connection, stored, names).stored()


def _check(connection: Connection, table: Table, write_id: WriteId) -> None:
    if table.is_view:
        raise InvalidOperationError(
            f"{table.full_name} is a view, which has no rows of its own to remove"
        )
    if table.is_transactional and not write_ids.is_open(
        connection, table.database_name, table.name, write_id
    ):
        # A base of an id that somebody gets later would hide all rows when that one commits.
        raise InvalidOperationError(
            f"{table.full_name} is transactional, and {write_id} is no write id of an open "
            "transaction on it: truncate it in a transaction, so that readers keep what they see"
        )
