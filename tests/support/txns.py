"""What writers, readers, workers and the cleaner ask of a world's metastore, in a few words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hms_bridge.errors import AlreadyExistsError
from hms_bridge.model.catalog import Column
from hms_bridge.model.compaction import (
    Compaction,
    CompactionRequest,
    CompactionResponse,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.event import NotificationEvent
from hms_bridge.model.ids import CompactionId, LockId, TxnId, WriteId
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockLevel,
    LockResponse,
    LockState,
    LockType,
)
from hms_bridge.model.target import Scope, Target
from hms_bridge.model.txn import (
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    DynamicPartitions,
    OpenTxns,
    OpenTxnsRequest,
    TxnType,
)
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.service.metastore_service import MetastoreService
from tests.conformance import objects

if TYPE_CHECKING:
    from tests.support.world import World

DB, TABLE = "db", "t"
Events = tuple[NotificationEvent, ...]


def component(
    kind: LockType = LockType.SHARED_WRITE,
    operation: DataOperation | None = DataOperation.INSERT,
    *,
    database: str = DB,
    table: str | None = TABLE,
    partition: str | None = None,
    is_transactional: bool | None = True,
    is_dynamic: bool = False,
) -> LockComponent:
    level = LockLevel.PARTITION if partition else LockLevel.TABLE if table else LockLevel.DB
    return LockComponent(
        type=kind,
        level=level,
        scope=Scope(database, table, partition),
        operation=operation,
        is_transactional=is_transactional,
        is_dynamic_partition_write=is_dynamic,
    )


class Txns:
    """Each verb is the metastore's, with what most tests do not care about; those that end
    something return the events that they logged."""

    def __init__(self, world: World) -> None:
        self._world = world

    @property
    def _metastore(self) -> MetastoreService:
        return self._world.metastore

    def _logged(self, verb: Callable[[], object]) -> Events:
        last = self._metastore.get_current_event_id()
        verb()
        return objects.events_after(self._metastore, last)

    # transactions

    def open(self, count: int = 1, kind: TxnType = TxnType.DEFAULT, **more: Any) -> list[TxnId]:
        request = OpenTxnsRequest(count=count, user="u", host="h", type=kind, **more)
        return list(self._metastore.open_txns(request))

    def open_one(self, kind: TxnType = TxnType.DEFAULT) -> TxnId:
        (txn_id,) = self.open(1, kind)
        return txn_id

    def commit(self, txn_id: int, **more: Any) -> Events:
        request = CommitTxnRequest(txn_id=TxnId(txn_id), **more)
        return self._logged(lambda: self._metastore.commit_txn(request))

    def abort(self, txn_id: int, **more: Any) -> Events:
        request = AbortTxnRequest(txn_id=TxnId(txn_id), **more)
        return self._logged(lambda: self._metastore.abort_txn(request))

    def abort_many(self, ids: Sequence[int]) -> Events:
        txn_ids = [TxnId(txn_id) for txn_id in ids]
        return self._logged(lambda: self._metastore.abort_txns(txn_ids))

    def beat(self, txn_id: int = 0, lock_id: int = 0) -> None:
        self._metastore.heartbeat(TxnId(txn_id), LockId(lock_id))

    def all(self) -> OpenTxns:
        """The open and the aborted ones."""
        return self._metastore.get_open_txns()

    def snapshot(self, current: int = 0) -> ValidTxnList:
        return self.all().snapshot(TxnId(current))

    def allocate(
        self, *txn_ids: int, table: str = TABLE, database: str = DB, **more: Any
    ) -> list[WriteId]:
        request = AllocateWriteIdsRequest(
            database_name=database,
            table_name=table,
            txn_ids=tuple(TxnId(txn_id) for txn_id in txn_ids),
            **more,
        )
        return [pair.write_id for pair in self._metastore.allocate_table_write_ids(request)]

    def valid(
        self, name: str = f"{DB}.{TABLE}", txns: ValidTxnList | None = None, write_id: int = 0
    ) -> ValidWriteIdList:
        asked = WriteId(write_id) if write_id else None
        (valid,) = self._metastore.get_valid_write_ids([name], txns, write_id=asked)
        return valid

    def dynamic(
        self, txn_id: int, write_id: int, *names: str, operation: DataOperation | None = None
    ) -> None:
        partitions = DynamicPartitions(
            txn_id=TxnId(txn_id),
            write_id=WriteId(write_id),
            database_name=DB,
            table_name=TABLE,
            partition_names=names,
            operation=operation,
        )
        self._metastore.add_dynamic_partitions(partitions)

    def write(
        self,
        operation: DataOperation = DataOperation.INSERT,
        partition: str | None = None,
        table: str = TABLE,
    ) -> tuple[TxnId, WriteId]:
        """An open transaction with a lock and a write id."""
        txn_id = self.open_one()
        (write_id,) = self.allocate(txn_id, table=table)
        self.lock(txn_id, component(operation=operation, partition=partition, table=table))
        return txn_id, write_id

    # locks

    def lock(self, txn_id: int, *components: LockComponent, **more: Any) -> LockResponse:
        wanted = components or (component(),)
        return self._metastore.lock(objects.request(*wanted, txn=TxnId(txn_id), **more))

    def check(self, lock_id: int) -> LockState:
        return self._metastore.check_lock(LockId(lock_id)).state

    def unlock(self, lock_id: int) -> None:
        self._metastore.unlock(LockId(lock_id))

    # compactions

    def compact(
        self, table: str = TABLE, partition: str | None = None, **more: Any
    ) -> CompactionResponse:
        self._make(table, partition)
        kind = more.pop("kind", CompactionType.MINOR)
        request = CompactionRequest(target=Target(DB, table, partition), type=kind, **more)
        return self._metastore.compact(request)

    def _make(self, table: str, partition: str | None) -> None:
        """Only what is there is compacted."""
        column, _, value = (partition or "p=").partition("=")
        columns = (Column(name=column, type="string"),)
        with suppress(AlreadyExistsError):
            self._metastore.create_table(objects.acid_table(DB, table, partition_columns=columns))
        if partition is not None:
            added = [objects.partition(DB, table, value)]
            self._metastore.add_partitions(DB, table, added, is_if_not_exists=True)

    def claim(self, worker: str = "w", pool: str | None = None) -> Compaction | None:
        return self._metastore.find_next_compaction(worker, "4", pool)

    def start_compaction(
        self, highest: int, worker: str = "w", kind: TxnType = TxnType.COMPACTION
    ) -> Compaction:
        """Claim an entry and tell what is compacted under which transaction."""
        claimed = self.claim(worker)
        assert claimed is not None
        txn_id = self.open_one(kind)
        mine = replace(claimed, highest_write_id=WriteId(highest))
        self._metastore.update_compactor_state(mine, txn_id)
        return replace(mine, txn_id=txn_id)

    def mark_compacted(self, compaction: Compaction) -> None:
        self._metastore.mark_compacted(compaction)

    def compacted(self, highest: int, **more: Any) -> Compaction:
        """A compaction that is done and committed, from the request on."""
        self.compact(**more)
        return self.finish(highest)

    def finish(self, highest: int) -> Compaction:
        """The same, of what is asked for already."""
        mine = self.start_compaction(highest)
        self.mark_compacted(mine)
        assert mine.txn_id is not None
        self.commit(mine.txn_id)
        return mine

    def fail(self, compaction: Compaction) -> Events:
        return self._logged(lambda: self._metastore.mark_failed(compaction))

    def show(self, request: ShowCompactionsRequest | None = None) -> list[tuple[CompactionId, str]]:
        found = self._metastore.show_compactions(request)
        return [(entry.id, entry.state.word) for entry in found]

    def ready(self, retention_ms: int = 0) -> list[CompactionId]:
        return [entry.id for entry in self._metastore.find_ready_to_clean(retention_ms)]

    def mark_cleaned(self, compaction: Compaction) -> None:
        self._metastore.mark_cleaned(compaction)

    # housekeeping

    def grow_old(self) -> None:
        """Until no id can appear in a gap any more."""
        self._world.clock.advance_ms(self._world.settings.txn.open_timeout_ms + 1)

    def housekeep(self) -> None:
        self._metastore.run_housekeeping()
