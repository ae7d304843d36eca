"""What spark/write_job.py does with the rows of a statement, without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import pyarrow as pa

from changemanager.location import Resolver
from hms_bridge.acid.names import DirectoryName
from hms_bridge.directories.publication import Publication
from hms_bridge.directories.written import EventFile, WrittenDirectory
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.rows.event_files import EventFileSpec, write_deletes, write_inserts
from tests.support.passing import Passing

RowId = tuple[int, int, int]


class TableWrite:
    """One write id of a table under an open transaction.

    ``is_reporting`` False: a client that tells the metastore nothing of its files.
    """

    def __init__(
        self,
        metastore: Metastore,
        resolver: Resolver,
        table: Table,
        txn_id: TxnId,
        write_id: WriteId,
        *,
        is_reporting: bool = True,
    ) -> None:
        self._resolver = resolver
        self._table = table
        self._write_id = write_id
        told: Any = metastore if is_reporting else _Silent(metastore)
        self._publication = Publication(told, resolver, table, txn_id, write_id)

    def insert(
        self, *writers: Iterable[pa.RecordBatch], partition: str = "", statement_id: int = 0
    ) -> None:
        """The batches of each writer, of the table's own columns, in their order."""

        def files(spec: EventFileSpec) -> Iterable[EventFile]:
            return chain.from_iterable(
                write_inserts(self._resolver, spec, _in(partition, batches), number, str(number))
                for number, batches in enumerate(writers)
            )

        name = DirectoryName.delta(self._write_id, self._write_id, statement_id)
        self._publish(name, statement_id, files, DataOperation.INSERT)

    def delete(self, victims: Iterable[RowId], partition: str = "", statement_id: int = 0) -> None:
        """Rows of one partition, in any order."""
        rows = sorted((key[1] >> 16 & 0xFFF, *key) for key in victims)  # docs/hive/acid.md §12
        batch = pa.RecordBatch.from_arrays(
            [
                pa.array([partition] * len(rows), pa.string()),
                *(
                    pa.array([row[at] for row in rows], kind)
                    for at, kind in ((1, pa.int64()), (2, pa.int32()), (3, pa.int64()))
                ),
                pa.array([row[0] for row in rows], pa.int32()),
            ],
            names=["row__partition", "writeid", "bucketid", "rowid", "row__bucket"],
        )

        def files(spec: EventFileSpec) -> Iterable[EventFile]:
            return write_deletes(self._resolver, spec, [batch], "0")

        name = DirectoryName.delete_delta(self._write_id, self._write_id, statement_id)
        self._publish(name, statement_id, files, DataOperation.DELETE)

    def _publish(
        self,
        name: DirectoryName,
        statement_id: int,
        write: Callable[[EventFileSpec], Iterable[EventFile]],
        operation: DataOperation,
    ) -> None:
        publication = self._publication
        spec = EventFileSpec.of_table(
            self._table, publication.staging, self._write_id, statement_id
        )
        try:
            if files := tuple(write(spec)):
                publication.publish([WrittenDirectory(name=name, files=files)], operation)
        finally:
            publication.discard_staging()


def _in(partition: str, batches: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """With the values of the partition behind the columns."""
    values = parse_partition_name(partition) if partition else ()
    for batch in batches:
        more = [pa.array([value] * batch.num_rows, pa.string()) for _, value in values]
        names = [*batch.schema.names, *(column for column, _ in values)]
        yield pa.RecordBatch.from_arrays([*batch.columns, *more], names=names)


class _Silent(Passing):
    """A metastore that is told nothing of files."""

    def add_write_notifications(self, *_: Any) -> None:
        pass

    def add_dynamic_partitions(self, *_: Any) -> None:
        pass
