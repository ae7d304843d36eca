"""A worker of Hive's that rebalances a table of the source: every row gets another ROW__ID."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
)
from hms_bridge.model.target import Scope, Target
from hms_bridge.model.txn import CommitTxnRequest, OpenTxnsRequest, TxnType
from hms_bridge.orc.acid_layout import ACID_COLUMNS
from hms_bridge.orc.acid_writer import AcidOrcWriter
from hms_bridge.orc.arrow_types import arrow_type
from hms_bridge.session.transaction import current_snapshot
from tests.simulation.cluster import Cluster
from tests.simulation.disk import Directory
from tests.simulation.model import Effect, Tables
from tests.simulation.plain_reader import RowId, Rows, cut_rows, read_rows
from tests.simulation.statements import NotTodayError, bucket_property, row_type


class ForeignWorker:
    """What Hive's own worker does beside ours, each a method that an actor runs to its end."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def rebalance_as_hive(self, dice: random.Random) -> None:
        """The rows of one table or partition in a base of the transaction, numbered anew through
        all of it (RebalanceQueryCompactor: write ids stay, buckets and row numbers change)."""
        cluster = self.cluster
        tables = cluster.model.tables
        found = [
            (name, part) for name in sorted(tables) for part in sorted(tables[name].partitions)
        ]
        if not found:
            raise NotTodayError("nothing to rebalance")
        table, partition = dice.choice(found)
        store = cluster.source.metastore
        wanted = Target(cluster.database, table, partition or None)
        store.compact(
            CompactionRequest(
                target=wanted,
                type=CompactionType.REBALANCE,
                pool_name="hive",
            )
        )
        entry = store.find_next_compaction("hive", "4.2.0", "hive")
        if entry is None or (entry.type, entry.target) != (CompactionType.REBALANCE, wanted):
            raise NotTodayError("another entry comes first")
        (txn_id,) = store.open_txns(
            OpenTxnsRequest(user="hive", host="h", type=TxnType.REBALANCE_COMPACTION)
        )
        self._lock(txn_id, table, partition)
        txns = current_snapshot(store, txn_id)
        (write_ids,) = store.get_valid_write_ids([f"{cluster.database}.{table}"], txns)
        highest = write_ids.compactor_view().high_watermark
        store.update_compactor_state(
            replace(entry, highest_write_id=highest, txn_id=txn_id), txn_id
        )
        place = cluster.source.places(table)[partition]
        node = cluster.disk.find(place)
        view = replace(cluster.source.view(table), highest=highest)
        rows = read_rows(node if isinstance(node, Directory) else None, view)
        columns = cluster.source.columns(table)
        anew = {
            old: (old[0], bucket_property(0), number) for number, old in enumerate(sorted(rows))
        }
        if not rows:
            raise NotTodayError("no rows")
        self._write(f"{place}/base_{highest:07d}_v{txn_id:07d}", rows, anew, row_type(columns))
        store.mark_compacted(replace(entry, highest_write_id=highest, txn_id=txn_id))

        def apply(tables: Tables) -> None:
            known = tables[table].partitions.get(partition)
            if known is not None:
                written = cut_rows(known, len(columns))
                there = {old: written[old] for old in anew if old in known}
                for old in there:
                    del known[old]
                known.update({anew[old]: row for old, row in there.items()})

        ledger = cluster.source.ledger
        effect = Effect(lambda: ledger.is_committed(txn_id), apply, has_same_rows=True)
        with cluster.meaning(effect):
            store.commit_txn(CommitTxnRequest(txn_id=txn_id))

    def _lock(self, txn_id: TxnId, table: str, partition: str) -> None:
        component = LockComponent(
            type=LockType.EXCL_WRITE,
            level=LockLevel.PARTITION if partition else LockLevel.TABLE,
            scope=Scope(self.cluster.database, table, partition or None),
            operation=DataOperation.NO_TXN,
            is_transactional=True,
        )
        answer = self.cluster.source.metastore.lock(
            LockRequest(components=(component,), txn_id=txn_id, user="hive", host="h")
        )
        if answer.state is not LockState.ACQUIRED:
            raise NotTodayError("locked")

    def _write(self, base: str, rows: Rows, anew: Mapping[RowId, RowId], kind: Any) -> None:
        olds = sorted(rows)
        keys = [anew[old] for old in olds]
        fields = [
            pa.array([rows[o][at] if at < len(rows[o]) else None for o in olds], arrow_type(child))
            for at, child in enumerate(kind.children)
        ]
        events = pa.RecordBatch.from_arrays(
            [
                pa.array([0] * len(keys), pa.int32()),
                pa.array([key[0] for key in keys], pa.int64()),
                pa.array([key[1] for key in keys], pa.int32()),
                pa.array([key[2] for key in keys], pa.int64()),
                pa.array([key[0] for key in keys], pa.int64()),
                pa.StructArray.from_arrays(fields, list(kind.names)),
            ],
            names=list(ACID_COLUMNS),
        )
        volume = self.cluster.volume
        volume.make_working_directory(base)
        with (
            volume.open_output(f"{base}/bucket_00000") as sink,
            AcidOrcWriter(sink, kind) as writer,
        ):
            writer.write(events)
            writer.close()
        self.cluster.disk.settle(base)
