"""Publishes what a writer wrote: staged files become directories, which the metastore hears of."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from changemanager.filesystem.volume import Volume
from changemanager.location import Location, Resolver
from hms_bridge.acid.names import BucketFileName, DirectoryKind, DirectoryName
from hms_bridge.directories.staging import (
    discard,
    finish,
    forget_dead_temporaries,
    hidden_name,
    stage_directory,
    token_of,
)
from hms_bridge.directories.written import EventFile, WrittenDirectory
from hms_bridge.errors import AcidFormatError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.event import WriteNotification
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.model.properties import DO_NOT_UPDATE
from hms_bridge.model.statistics_state import ACCURATE, without_trust
from hms_bridge.model.txn import DynamicPartitions
from hms_bridge.model.valid_ids import ValidTxnList
from hms_bridge.session.heartbeat import require_open

_UNCOUNTED = {DO_NOT_UPDATE: "true"}
"""Environment of changes: the metastore counts no files."""
_LOG = logging.getLogger(__name__)


class Publication:
    """One write to one table under an open transaction. ``staging`` is where its tasks write."""

    def __init__(
        self,
        metastore: Metastore,
        resolver: Resolver,
        table: Table,
        txn_id: TxnId,
        write_id: WriteId,
    ) -> None:
        if not table.storage.location:
            raise AcidFormatError(f"{table.full_name} has no location; mend the table")
        self._metastore = metastore
        self._resolver = resolver
        self._table = table
        self._txn_id = txn_id
        self._write_id = write_id
        self._token = token_of("write", txn_id)
        self.staging = f"{table.storage.location.rstrip('/')}/{hidden_name(self._token)}"

    def publish(self, written: Sequence[WrittenDirectory], operation: DataOperation) -> None:
        """Give every directory its name, then report it; the commit is the caller's."""
        names = sorted({file.partition for staged in written for file in staged.files})
        partitions = self._partitions_there(names) if self._table.is_partitioned else {}
        locations = self._locations(partitions)
        self._distrust_statistics(partitions)
        placed: list[Location] = []
        notifications = []
        try:
            for partition, location in locations.items():
                files: list[Location] = []
                for staged in written:
                    own = [file for file in staged.files if file.partition == partition]
                    if own:
                        self._require_open()
                        files += self._place(staged.name, own, location)
                        placed.append(location.child(staged.name.format()))
                notifications.append(self._notification(partition, location, files))
            self._require_open()
        except BaseException:
            for directory in placed:
                directory.volume.remove_tree(directory.path)
            raise
        self._metastore.add_write_notifications(notifications)
        if self._table.is_partitioned and names:
            self._metastore.add_dynamic_partitions(
                DynamicPartitions(
                    txn_id=self._txn_id,
                    write_id=self._write_id,
                    database_name=self._table.database_name,
                    table_name=self._table.name,
                    partition_names=tuple(names),
                    operation=operation,
                )
            )

    def _require_open(self) -> None:
        """Raises TxnAbortedError, NoSuchTxnError if the transaction was given up for lost.

        Once its write id is cleaned up, nothing says any more that it was aborted: a directory that
        came later would be read. So it is asked before each comes, and what came is taken back if
        the transaction has ended by then.
        """
        require_open(self._metastore, self._txn_id)

    def _distrust_statistics(self, partitions: Mapping[str, Partition]) -> None:
        """Hive answers count(*), min and max from statistics that are said to be right, and these
        rows are not counted: under their write id, whoever gathers beside us knows it too."""
        table = self._table
        if table.is_partitioned:
            changed = [
                replace(
                    partition,
                    parameters=without_trust(partition.parameters),
                    write_id=self._write_id,
                )
                for partition in partitions.values()
                if ACCURATE in partition.parameters
            ]
            if changed:
                self._metastore.alter_partitions(
                    table.database_name, table.name, changed, environment=_UNCOUNTED
                )
            return
        fresh = self._metastore.get_table(table.database_name, table.name)
        if ACCURATE in fresh.parameters:
            after = replace(
                fresh, parameters=without_trust(fresh.parameters), write_id=self._write_id
            )
            self._metastore.alter_table(
                table.database_name, table.name, after, environment=_UNCOUNTED
            )

    def forget_dead(self, txns: ValidTxnList) -> None:
        """Remove what earlier statements' tasks left; ``txns`` is the transaction's snapshot."""
        location = self._resolver(self._table.storage.location or "")
        try:
            forget_dead_temporaries(location.volume, location.path, txns.with_open(self._txn_id))
        except OSError as error:  # no reason for this statement to fail
            _LOG.warning("cannot remove what earlier statements left: %s", error)

    def discard_staging(self) -> None:
        """Remove what tasks left; nothing visible is touched."""
        location = self._resolver(self.staging)
        volume = location.volume
        if volume.status(location.path) is not None:
            volume.remove_tree(location.path)

    def _locations(self, partitions: Mapping[str, Partition]) -> dict[str, Location]:
        """Where each partition lies, or the table that has none."""
        if not self._table.is_partitioned:
            return {"": self._resolver(self._table.storage.location or "")}
        return {
            name: self._resolver(partition.storage.location or "")
            for name, partition in partitions.items()
        }

    def _partitions_there(self, names: Sequence[str]) -> dict[str, Partition]:
        """By name, in this order; those that are not there yet are added."""
        table = self._table
        known = self._partitions(names)
        missing = [name for name in names if name not in known]
        if missing:
            self._metastore.add_partitions(
                table.database_name,
                table.name,
                [self._new_partition(name) for name in missing],
                is_if_not_exists=True,
            )
            known = self._partitions(names)
        return {name: known[name] for name in names}

    def _partitions(self, names: Sequence[str]) -> dict[str, Partition]:
        """By the names that the files carry, which the metastore spells alike."""
        partitions = self._metastore.get_partitions_by_names(
            self._table.database_name, self._table.name, names
        )
        by_values = {partition.values: partition for partition in partitions}
        values = {name: tuple(v for _, v in parse_partition_name(name)) for name in names}
        return {name: by_values[v] for name, v in values.items() if v in by_values}

    def _new_partition(self, name: str) -> Partition:
        """Stored like its table, as Hive makes them (``Partition.createMetaPartitionObject``): a
        partition without a SerDe keeps Hive from reading the whole table."""
        return Partition(
            values=tuple(value for _, value in parse_partition_name(name)),
            database_name=self._table.database_name,
            table_name=self._table.name,
            catalog_name=self._table.catalog_name,
            storage=replace(self._table.storage, location=None),
        )

    def _place(
        self, name: DirectoryName, files: Sequence[EventFile], root: Location
    ) -> list[Location]:
        """Gather the tasks' files in one directory and give it its name (staging.py)."""
        volume = root.volume
        staged = stage_directory(volume, root.path, name, self._token)
        try:
            for file in files:
                _move(
                    volume, self._resolver(file.path).path, f"{staged.path}/{_bucket(name, file)}"
                )
            finish(volume, staged)
        except BaseException:
            discard(volume, staged)
            raise
        return [root.child(f"{name.format()}/{_bucket(name, file)}") for file in files]

    def _notification(
        self, partition: str, root: Location, files: Sequence[Location]
    ) -> WriteNotification:
        return WriteNotification(
            txn_id=self._txn_id,
            write_id=self._write_id,
            database_name=self._table.database_name,
            table_name=self._table.name,
            partition_values=tuple(v for _, v in parse_partition_name(partition))
            if partition
            else (),
            files=tuple(file.uri for file in files),
            checksums=tuple(file.checksum() for file in files),
            subdirectories=tuple(
                file.parent.uri[len(root.uri.rstrip("/")) + 1 :] for file in files
            ),
        )


def _bucket(name: DirectoryName, file: EventFile) -> str:
    """Hive 4 names the attempt in both kinds. Trino (trinodb/trino issue 31302) and Hive 3
    (AcidUtils.createBucketFile) look for delete events without it, and Hive 4 finds both: its
    compactions write them so (docs/hive/acid.md §3, §13)."""
    attempt = None if name.kind is DirectoryKind.DELETE_DELTA else 0
    return BucketFileName(bucket_id=file.bucket_id, attempt_id=attempt).format()


def _move(volume: Volume, source: str, target: str) -> None:
    """Move one file within a file system; never over another."""
    try:
        volume.rename(source, target)
    except FileExistsError as error:
        raise AcidFormatError("two tasks wrote one bucket of one partition", target) from error
