"""A transaction of a client that writes rows: what Hive does, in the order in which it does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hms_bridge.model.event import WriteNotification
from hms_bridge.model.ids import WriteId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.model.txn import DynamicPartitions
from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.rows.scan import row_type
from hms_bridge.rows.writer import DeltaTarget, WrittenDelta, write_delete_delta, write_insert_delta
from tests.conformance import objects

if TYPE_CHECKING:
    from tests.support.world import World

ROW_ID = pa.struct([("writeid", pa.int64()), ("bucketid", pa.int32()), ("rowid", pa.int64())])


class OpenWrite:
    """A transaction of the world's metastore that is not ended yet.

    ``is_reporting`` False: a client that tells the metastore nothing of its files.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._metastore = world.metastore
        self.is_reporting = True
        self.id = world.open()

    def lock(self, table: str, operation: DataOperation = DataOperation.INSERT) -> None:
        database = self._world.database
        component = objects.component(database, table, LockType.SHARED_WRITE, operation)
        self._metastore.lock(objects.request(component, txn=self.id))

    def write_id(self, table: str) -> WriteId:
        return objects.write_id(self._metastore, self.id, self._world.database, table)

    def insert(
        self,
        table: str,
        rows: Sequence[tuple[Any, ...]],
        partition: str = "",
        statement: int = 0,
    ) -> None:
        target = self._target(table, partition, statement)
        types = [arrow_type(one) for one in target.table.children]
        values = [pa.array(v, t) for v, t in zip(zip(*rows, strict=True), types, strict=True)]
        batch = pa.RecordBatch.from_arrays(values, names=list(target.table.names))
        written = write_insert_delta(self._world.volume, target, [(0, batch)])
        self._notify(table, partition, target, written, DataOperation.INSERT)

    def delete(
        self, table: str, ids: Iterable[int], partition: str = "", statement: int = 0
    ) -> None:
        wanted = set(ids)
        victims = sorted(
            row["row__id"]
            for row in self._world.rows(table)
            if row["id"] in wanted and (not partition or f"p={row['p']}" == partition)
        )
        keys = [dict(zip(ROW_ID.names, victim, strict=True)) for victim in victims]
        target = self._target(table, partition, statement)
        written = write_delete_delta(self._world.volume, target, [pa.array(keys, ROW_ID)])
        self._notify(table, partition, target, written, DataOperation.DELETE)

    def commit(self) -> None:
        self._world.commit(self.id)

    def abort(self) -> None:
        self._world.abort(self.id)

    def _target(self, table: str, partition: str, statement: int) -> DeltaTarget:
        columns = self._world.describe(table).storage.columns
        return DeltaTarget(
            root=self._world.root(table, partition).path,
            table=row_type(columns),
            write_id=self.write_id(table),
            statement_id=statement,
            token=self._world.token(),
        )

    def _notify(
        self,
        table: str,
        partition: str,
        target: DeltaTarget,
        written: WrittenDelta | None,
        operation: DataOperation,
    ) -> None:
        assert written is not None
        if not self.is_reporting:
            return
        files = [self._world.resolve(bucket.path) for bucket in written.buckets]
        values = tuple(v for _, v in parse_partition_name(partition)) if partition else ()
        self._metastore.add_write_notifications(
            [
                WriteNotification(
                    txn_id=self.id,
                    write_id=target.write_id,
                    database_name=self._world.database,
                    table_name=table,
                    partition_values=values,
                    files=tuple(file.uri for file in files),
                    checksums=tuple(file.checksum() for file in files),
                    subdirectories=tuple(file.parent.name for file in files),
                )
            ]
        )
        if partition:
            self._metastore.add_dynamic_partitions(
                DynamicPartitions(
                    txn_id=self.id,
                    write_id=target.write_id,
                    database_name=self._world.database,
                    table_name=table,
                    partition_names=(partition,),
                    operation=operation,
                )
            )
