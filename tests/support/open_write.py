"""A transaction of a client that writes rows: what Hive does, in the order in which it does it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from hms_bridge.model.ids import WriteId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.rows.scan import row_type
from tests.conformance import objects
from tests.support.table_write import TableWrite

if TYPE_CHECKING:
    from tests.support.world import World


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
        row = row_type(self._world.describe(table).storage.columns)
        types = [arrow_type(one) for one in row.children]
        values = [pa.array(v, t) for v, t in zip(zip(*rows, strict=True), types, strict=True)]
        batch = pa.RecordBatch.from_arrays(values, names=list(row.names))
        self._writing(table).insert([batch], partition=partition, statement_id=statement)

    def delete(
        self, table: str, ids: Iterable[int], partition: str = "", statement: int = 0
    ) -> None:
        wanted = set(ids)
        victims = [
            tuple(row["row__id"])
            for row in self._world.rows(table)
            if row["id"] in wanted and (not partition or f"p={row['p']}" == partition)
        ]
        self._writing(table).delete(victims, partition=partition, statement_id=statement)

    def commit(self) -> None:
        self._world.commit(self.id)

    def abort(self) -> None:
        self._world.abort(self.id)

    def _writing(self, table: str) -> TableWrite:
        return TableWrite(
            self._metastore,
            self._world.resolve,
            self._world.describe(table),
            self.id,
            self.write_id(table),
            is_reporting=self.is_reporting,
        )
