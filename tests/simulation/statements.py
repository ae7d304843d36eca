"""Transactions of clients of Hive's kind: their locks, write ids and files."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa

from hms_bridge.acid.names import DirectoryName
from hms_bridge.model.event import WriteNotification
from hms_bridge.model.ids import WriteId
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
)
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import (
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    DynamicPartitions,
    OpenTxnsRequest,
)
from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.types import OrcType, struct_type
from hms_bridge.rows.writer import DeltaTarget
from tests.simulation.cluster import Cluster
from tests.simulation.definitions import Columns
from tests.simulation.disk import Directory
from tests.simulation.foreign_files import write_bucket
from tests.simulation.model import Effect, write_effect
from tests.simulation.plain_reader import Row, RowId, Rows

_WAITS_MAX = 6
PAUSES = 8
"""Points at which a statement or a reader stands still: its other tasks are at work."""
_BUCKET_VERSION = 1 << 29


class NotTodayError(Exception):
    """The statement finds nothing to do, or does not get its locks."""


def row_type(columns: Columns) -> OrcType:
    """Of a table with these columns."""
    return struct_type(
        [name for name, _ in columns], [parse_hive_type(kind) for _, kind in columns]
    )


def bucket_property(statement: int) -> int:
    """Of bucket 0 (BucketCodec V1)."""
    return _BUCKET_VERSION + statement


class Statement:
    """One transaction of a client of Hive's kind."""

    def __init__(self, cluster: Cluster, dice: random.Random, table: str) -> None:
        self.cluster = cluster
        self.dice = dice
        self.store = cluster.source.metastore
        self.database = cluster.database
        self.table = table
        (self.id,) = self.store.open_txns(OpenTxnsRequest(user="u", host="h"))
        self.inserts: dict[str, Rows] = {}
        self.deletes: dict[str, set[RowId]] = {}
        self.overwritten: set[str] = set()
        self.write_id = WriteId(0)
        self.table_id: int | None = None
        self._written: list[tuple[str, tuple[str, ...]]] = []
        self._called = table
        cluster.on_moved.append(self._follow)
        cluster.on_renamed.append(self._follow_table)

    def lock(
        self,
        kind: LockType,
        operation: DataOperation,
        partitions: Sequence[str],
        *,
        is_dynamic: bool = True,
    ) -> None:
        """`is_dynamic`: who locks the whole table may write to any partition."""
        components = tuple(
            LockComponent(
                type=kind,
                level=LockLevel.PARTITION if partition else LockLevel.TABLE,
                scope=Scope(self.database, self.table, partition or None),
                operation=operation,
                is_transactional=True,
                is_dynamic_partition_write=is_dynamic and partitions == [""],
            )
            for partition in partitions
        )
        answer = self.store.lock(
            LockRequest(components=components, txn_id=self.id, user="u", host="h")
        )
        for _ in range(_WAITS_MAX):
            if answer.state is LockState.ACQUIRED:
                return
            self.cluster.scheduler.point("waits for a lock")
            answer = self.store.check_lock(answer.lock_id)
        if answer.state is not LockState.ACQUIRED:
            raise NotTodayError("locked")

    def allocate(self) -> None:
        (given,) = self.store.allocate_table_write_ids(
            AllocateWriteIdsRequest(
                database_name=self.database, table_name=self.table, txn_ids=(self.id,)
            )
        )
        self.write_id = given.write_id
        self.table_id = self.cluster.source.table_ids().get(self.table)

    def seen(self, partition: str) -> Rows:
        """Committed rows, as this statement's snapshot has them: it holds its locks."""
        table = self.cluster.model.tables.get(self.table)
        return dict(table.partitions.get(partition, {})) if table else {}

    def columns(self) -> Columns:
        """As the client's plan has them now."""
        if self.table not in self.cluster.source.table_ids():
            raise NotTodayError("dropped")
        return self.cluster.source.columns(self.table)

    def insert(self, path: str, partition: str, rows: Sequence[Row], statement: int) -> None:
        rows = [tuple(row) for row in rows]  # what was cut off is not written again
        bucket = self._write_rows(path, rows, statement)
        ids = ((self.write_id, bucket_property(statement), at) for at in range(len(rows)))
        self.inserts.setdefault(partition, {}).update(zip(ids, rows, strict=True))
        self._note(partition, [bucket])

    def delete(self, path: str, partition: str, victims: Sequence[RowId], statement: int) -> None:
        kinds = (pa.int64(), pa.int32(), pa.int64())
        columns = zip(zip(*sorted(victims), strict=True), kinds, strict=True)
        ids, buckets, rows = (pa.array(values, kind) for values, kind in columns)
        bucket = write_bucket(
            self.cluster.volume,
            path,
            DirectoryName.delete_delta(self.write_id, self.write_id, statement),
            self._target(statement, self.columns()),
            self._token,
            lambda writers: writers.delete(0, (ids, buckets, rows)),
        )
        self.deletes.setdefault(partition, set()).update(victims)
        self._note(partition, [bucket])

    def overwrite(self, path: str, partition: str, rows: Sequence[Row]) -> None:
        """A base of the write id, empty for no rows: as Hive's direct insert does it."""
        name = f"base_{self.write_id:07d}"
        volume = self.cluster.volume
        self.overwritten.add(partition)
        if not rows:
            volume.make_working_directory(f"{path}/{name}")
            with volume.open_output(f"{path}/{name}/_orc_acid_version") as output:
                output.write(b"2")
            self.cluster.disk.settle(f"{path}/{name}")
            self._note(partition, [])
            return
        hidden = f"{path}/.hive-staging_{self.id}"
        bucket = self._write_rows(hidden, rows, 0)
        volume.rename(bucket.rpartition("/")[0], f"{path}/{name}")
        volume.remove_tree(hidden)
        self.cluster.disk.settle(f"{path}/{name}")
        ids = ((self.write_id, bucket_property(0), at) for at in range(len(rows)))
        self.inserts.setdefault(partition, {}).update(zip(ids, rows, strict=True))
        self._note(partition, [f"{path}/{name}/bucket_00000"])

    def commit(self, operation: DataOperation, *, is_dynamic: bool = False) -> None:
        for _ in range(PAUSES):
            self.cluster.scheduler.point("other tasks go on", changes=False)
        notifications = [self._notification(*one) for one in self._written]
        self.store.add_write_notifications(notifications)
        names = tuple(sorted({*self.inserts, *self.deletes, *self.overwritten} - {""}))
        if names and is_dynamic:
            self.store.add_dynamic_partitions(
                DynamicPartitions(
                    txn_id=self.id,
                    write_id=self.write_id,
                    database_name=self.database,
                    table_name=self.table,
                    partition_names=names,
                    operation=operation,
                )
            )
        with self.cluster.meaning(self.effect()):
            self.store.commit_txn(CommitTxnRequest(txn_id=self.id))

    def commit_without_lock(self, path: str) -> None:
        """Whoever took no lock looks whether its files would be read: a base may have come that
        hides them, or they went with the directory."""
        for _ in range(PAUSES):
            self.cluster.scheduler.point("other tasks go on", changes=False)
        notifications = [self._notification(*one) for one in self._written]
        self.store.add_write_notifications(notifications)
        with self.cluster.scheduler.atomic(), self.cluster.meaning(self.effect()):
            node = self.cluster.disk.find(path)
            names = node.names if isinstance(node, Directory) else {}
            bases = (int(name[5:12]) for name in names if name.startswith("base_"))
            if f"delta_{self.write_id:07d}" not in " ".join(names) or any(
                base > self.write_id for base in bases
            ):
                raise NotTodayError("somebody was faster")
            self.store.commit_txn(CommitTxnRequest(txn_id=self.id))

    def effect(self) -> Effect:
        return write_effect(
            self.cluster.source.ledger,
            self.id,
            lambda: self._called,
            self.inserts,
            self.deletes,
            self.overwritten,
            lambda: self.cluster.source.table_ids().get(self._called) == self.table_id,
        )

    def _follow(self, table: str, old: str, new: str) -> None:
        """What it had written to a partition that was renamed went along."""
        moved = self.cluster.source.places(table)[new]
        if table != self._called or not self.cluster.disk.has_name(moved, f"_{self.write_id:07d}"):
            return
        for changes in (self.inserts, self.deletes):
            if old in changes:
                changes[new] = changes.pop(old)
        if old in self.overwritten:
            self.overwritten.remove(old)
            self.overwritten.add(new)

    def _follow_table(self, old: str, new: str) -> None:
        """What it had written to a table that was renamed went along, but for what came late."""
        if self._called != old or self.cluster.source.table_ids().get(new) != self.table_id:
            return
        self._called = new
        places, name = self.cluster.source.places(new), f"_{self.write_id:07d}"
        for partition in {*self.inserts, *self.deletes, *self.overwritten}:
            if not self.cluster.disk.has_name(places.get(partition, ""), name):
                self.inserts.pop(partition, None)
                self.deletes.pop(partition, None)
                self.overwritten.discard(partition)

    def abort(self) -> None:
        self.store.abort_txn(AbortTxnRequest(txn_id=self.id))

    def _write_rows(self, path: str, rows: Sequence[Row], statement: int) -> str:
        columns = self.columns()
        batch = _batch(rows, columns)
        return write_bucket(
            self.cluster.volume,
            path,
            DirectoryName.delta(self.write_id, self.write_id, statement),
            self._target(statement, columns),
            self._token,
            lambda writers: writers.insert(0, batch),
        )

    @property
    def _token(self) -> str:
        return f"write_v{self.id:07d}"

    def _target(self, statement: int, columns: Columns) -> DeltaTarget:
        return DeltaTarget(table=row_type(columns), write_id=self.write_id, statement_id=statement)

    def _note(self, partition: str, paths: Sequence[str]) -> None:
        self._written.append((partition, tuple(paths)))

    def _notification(self, partition: str, paths: tuple[str, ...]) -> WriteNotification:
        files = [self.cluster.resolve(path) for path in paths]
        return WriteNotification(
            txn_id=self.id,
            write_id=self.write_id,
            database_name=self.database,
            table_name=self.table,
            partition_values=(partition.partition("=")[2],) if partition else (),
            files=tuple(file.uri for file in files),
            checksums=tuple(file.checksum() for file in files),
            subdirectories=tuple(file.parent.name for file in files),
        )


def _batch(rows: Sequence[Row], columns: Columns) -> pa.RecordBatch:
    if any(len(row) > len(columns) for row in rows):
        raise NotTodayError("the table is another one now")
    arrays = [
        pa.array([row[at] if at < len(row) else None for row in rows], arrow_type(kind))
        for at, kind in enumerate(row_type(columns).children)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[name for name, _ in columns])
