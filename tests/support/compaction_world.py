"""A table with three writes in a real metastore, and workers on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from changemanager.filesystem.local import LocalVolume
from changemanager.location import FsspecResolver
from hms_bridge.compaction.kernel import BucketKernel, LocalExecutor
from hms_bridge.compaction.worker import Worker, WorkerIdentity
from hms_bridge.connect import LocalStore
from hms_bridge.model.catalog import (
    ORC_INPUT_FORMAT,
    ORC_OUTPUT_FORMAT,
    Column,
    Storage,
    Table,
)
from hms_bridge.model.compaction import CompactionRequest, CompactionState, CompactionType
from hms_bridge.model.lock import DataOperation, LockComponent, LockLevel, LockRequest, LockType
from hms_bridge.model.target import Scope, Target
from hms_bridge.model.txn import (
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    OpenTxnsRequest,
)
from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.rows.reader import ROW_ID_TYPE
from hms_bridge.rows.scan import plan_scan, read_scan_split, row_type
from hms_bridge.rows.transaction import current_snapshot
from hms_bridge.rows.writer import DeltaTarget, write_delete_delta, write_insert_delta

LOCAL = LocalVolume()
COLUMNS = (Column(name="id", type="int"), Column(name="v", type="string"))
WHO = WorkerIdentity(worker_id="host-1", version="test", user="worker", host="host")


class World:
    """A table with three writes (the last one deletes), and a worker on it."""

    def __init__(self, store: LocalStore) -> None:
        self.store = store
        self.metastore = store.metastore
        self.metastore.create_table(
            Table(
                name="t",
                database_name="default",
                storage=Storage(
                    columns=COLUMNS,
                    input_format=ORC_INPUT_FORMAT,
                    output_format=ORC_OUTPUT_FORMAT,
                ),
                parameters={"transactional": "true"},
            )
        )
        location = self.metastore.get_table("default", "t").storage.location
        self.root = store.resolver(location or "").path
        for number in range(2):
            self.write(insert=[(number * 10 + n, f"v{n}") for n in range(3)])
        self.write(delete=[1, 11])

    def write(
        self,
        insert: list[Any] | None = None,
        delete: list[int] | None = None,
        columns: tuple[Column, ...] = COLUMNS,
    ) -> None:
        (txn,) = self.metastore.open_txns(OpenTxnsRequest(user="u", host="h"))
        operation = DataOperation.INSERT if insert else DataOperation.DELETE
        self.metastore.lock(
            LockRequest(
                components=(
                    LockComponent(
                        type=LockType.SHARED_READ if insert else LockType.EXCL_WRITE,
                        level=LockLevel.TABLE,
                        scope=Scope("default", "t"),
                        operation=operation,
                        is_transactional=True,
                    ),
                ),
                txn_id=txn,
                user="u",
                host="h",
            )
        )
        (given,) = self.metastore.allocate_table_write_ids(
            AllocateWriteIdsRequest(database_name="default", table_name="t", txn_ids=(txn,))
        )
        target = DeltaTarget(
            root=self.root,
            table=row_type(columns),
            write_id=given.write_id,
            statement_id=0,
            token=f"w{given.write_id}",
        )
        if insert:
            types = [arrow_type(one) for one in target.table.children]
            batch = pa.record_batch(
                [pa.array(v, t) for v, t in zip(zip(*insert, strict=True), types, strict=True)],
                names=list(target.table.names),
            )
            write_insert_delta(LOCAL, target, [(0, batch)])
        else:
            keys = {row["id"]: row["row__id"] for row in self.rows()}
            victims = pa.array([keys[one] for one in delete or ()], ROW_ID_TYPE)
            write_delete_delta(LOCAL, target, [victims])
        self.metastore.commit_txn(CommitTxnRequest(txn_id=txn))

    def rows(self, name: str = "t", columns: tuple[Column, ...] = COLUMNS) -> list[dict[str, Any]]:
        table = self.metastore.get_table("default", name)
        txns = current_snapshot(self.metastore)
        write_ids = self.metastore.get_valid_write_ids([f"default.{name}"], txns)[0]
        splits = plan_scan(
            self.metastore, self.store.resolver, table, txns=txns, write_ids=write_ids
        )
        found = [
            row
            for split in splits
            for batch in read_scan_split(self.store.resolver, split, columns, has_row_ids=True)
            for row in batch.to_pylist()
        ]
        return sorted(found, key=lambda row: row["id"])

    def request(self, kind: CompactionType = CompactionType.MAJOR) -> None:
        answer = self.metastore.compact(CompactionRequest(target=Target("default", "t"), type=kind))
        assert answer.is_accepted

    def worker(
        self, metastore: Any = None, executor: Any = None, who: WorkerIdentity = WHO
    ) -> Worker:
        kernel = BucketKernel(resolver=FsspecResolver())
        return Worker(
            metastore or self.metastore,
            executor or LocalExecutor(kernel=kernel),
            FsspecResolver(),
            who,
        )

    def names(self) -> set[str]:
        return {path.name for path in Path(self.root).iterdir()}

    def state(self) -> CompactionState:
        return self.metastore.show_compactions()[0].state
