"""The verbs of transactions, locks and compactions over a database, as a service would do them:
each in one database transaction, refusals raised after it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from sqlalchemy import Connection, Table, insert, select

from hms_bridge.backend.engine import Database
from hms_bridge.backend.retry import run_in_transaction
from hms_bridge.backend.work import Work
from hms_bridge.clock import Clock
from hms_bridge.config.settings import CompactorSettings, Settings, TxnSettings
from hms_bridge.errors import TxnAbortedError
from hms_bridge.model.compaction import (
    Compaction,
    CompactionRequest,
    CompactionResponse,
    CompactionType,
)
from hms_bridge.model.ids import CompactionId, LockId, TxnId, WriteId
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockLevel,
    LockRequest,
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
from hms_bridge.txn import (
    cleaning,
    compaction_history,
    compaction_queue,
    housekeeping,
    locks,
    open_txns,
    valid_write_ids,
    write_ids,
)
from hms_bridge.txn.abort import AbortOutcome, abort_txn, abort_txns
from hms_bridge.txn.commit import CommitOutcome, commit_txn
from hms_bridge.txn.components import add_dynamic_partitions
from tests.support.simulated_clock import SimulatedClock

T = TypeVar("T")
DB, TABLE = "db", "t"


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


class TxnWorld:
    """One database, one clock (time passes only when a test says so)."""

    def __init__(self, database: Database, clock: Clock | None = None) -> None:
        self.database = database
        self.time = SimulatedClock()
        self.clock: Clock = clock or self.time
        self.settings = TxnSettings()
        self.compactor = CompactorSettings(abort_retention_ms=0)  # the rules without it

    def do(self, work: Callable[[Connection], T]) -> T:
        return run_in_transaction(self.database, work, write=True, clock=self.clock)

    def work(self, connection: Connection) -> Work:
        settings = Settings(txn=self.settings, compactor=self.compactor)
        return Work(connection, self.clock, settings)

    def rows(self, table: Table) -> list[dict[str, Any]]:
        with self.database.transaction(write=False) as connection:
            ordered = select(table).order_by(*list(table.columns)[:2])
            return [dict(row) for row in connection.execute(ordered).mappings()]

    def put(self, table: Table, *rows: dict[str, Any]) -> None:
        self.do(lambda connection: connection.execute(insert(table), list(rows)))

    # transactions

    def open(self, count: int = 1, kind: TxnType = TxnType.DEFAULT, **more: Any) -> list[TxnId]:
        request = OpenTxnsRequest(count=count, user="u", host="h", type=kind, **more)
        return list(self.do(lambda c: open_txns.open_txns(self.work(c), request)).ids)

    def open_one(self, kind: TxnType = TxnType.DEFAULT) -> TxnId:
        (txn_id,) = self.open(1, kind)
        return txn_id

    def commit(self, txn_id: int, **more: Any) -> CommitOutcome:
        request = CommitTxnRequest(txn_id=TxnId(txn_id), **more)
        outcome = self.do(lambda c: commit_txn(self.work(c), request))
        if outcome.refusal is not None:
            raise TxnAbortedError(outcome.refusal)
        return outcome

    def abort(self, txn_id: int, **more: Any) -> AbortOutcome:
        request = AbortTxnRequest(txn_id=TxnId(txn_id), **more)
        return self.do(lambda c: abort_txn(self.work(c), request))

    def abort_many(self, ids: Sequence[int]) -> AbortOutcome:
        return self.do(lambda c: abort_txns(self.work(c), [TxnId(one) for one in ids]))

    def open_txns(self) -> OpenTxns:
        return self.do(lambda c: open_txns.get_open_txns(self.work(c)))

    def snapshot(self, current: int = 0) -> ValidTxnList:
        return self.open_txns().snapshot(TxnId(current))

    def allocate(
        self, *txn_ids: int, table: str = TABLE, database: str = DB, **more: Any
    ) -> list[WriteId]:
        request = AllocateWriteIdsRequest(
            database_name=database,
            table_name=table,
            txn_ids=tuple(TxnId(one) for one in txn_ids),
            **more,
        )
        done = self.do(lambda c: write_ids.allocate_table_write_ids(c, request))
        return [pair.write_id for pair in done.pairs]

    def valid(
        self, name: str = f"{DB}.{TABLE}", txns: ValidTxnList | None = None, write_id: int = 0
    ) -> ValidWriteIdList:
        (found,) = self.do(
            lambda c: valid_write_ids.get_valid_write_ids(
                self.work(c),
                [name],
                valid_txns=txns,
                write_id=WriteId(write_id) if write_id else None,
            )
        )
        return found

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
        self.do(lambda c: add_dynamic_partitions(c, partitions))

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
        request = LockRequest(
            components=components or (component(),),
            txn_id=TxnId(txn_id),
            user="u",
            host="h",
            **more,
        )
        return self.do(lambda c: locks.lock(self.work(c), request))

    def check(self, lock_id: int) -> LockState:
        return self.do(lambda c: locks.check_lock(self.work(c), LockId(lock_id))).state

    def unlock(self, lock_id: int) -> None:
        self.do(lambda c: locks.unlock(c, LockId(lock_id)))

    # compactions

    def compact(
        self, table: str = TABLE, partition: str | None = None, **more: Any
    ) -> CompactionResponse:
        kind = more.pop("kind", CompactionType.MINOR)
        request = CompactionRequest(target=Target(DB, table, partition), type=kind, **more)
        return self.do(lambda c: compaction_queue.enqueue(self.work(c), request))

    def claim(self, worker: str = "w", pool: str | None = None) -> Compaction | None:
        return self.do(
            lambda c: compaction_queue.find_next_compaction(self.work(c), worker, "4", pool)
        )

    def start_compaction(
        self, highest: int, worker: str = "w", kind: TxnType = TxnType.COMPACTION
    ) -> Compaction:
        """Claim an entry and tell what is compacted under which transaction."""
        claimed = self.claim(worker)
        assert claimed is not None
        txn_id = self.open_one(kind)
        mine = replace(claimed, highest_write_id=WriteId(highest))
        self.do(lambda c: compaction_queue.update_compactor_state(c, mine, txn_id))
        return replace(mine, txn_id=txn_id)

    def mark_compacted(self, compaction: Compaction) -> None:
        self.do(lambda c: compaction_queue.mark_compacted(c, compaction))

    def compacted(self, highest: int, **more: Any) -> Compaction:
        """A compaction that is done and committed, from the request on."""
        self.compact(**more)
        mine = self.start_compaction(highest)
        self.mark_compacted(mine)
        assert mine.txn_id is not None
        self.commit(mine.txn_id)
        return mine

    def fail(self, compaction: Compaction) -> Compaction | None:
        return self.do(lambda c: compaction_history.mark_failed(self.work(c), compaction))

    def show(self, request: Any = None) -> list[tuple[CompactionId, str]]:
        found = self.do(lambda c: compaction_history.show_compactions(c, request))
        return [(entry.id, entry.state.word) for entry in found]

    def ready(self, retention_ms: int = 0) -> list[CompactionId]:
        found = self.do(lambda c: cleaning.find_ready_to_clean(self.work(c), retention_ms))
        return [entry.id for entry in found]

    def mark_cleaned(self, compaction: Compaction) -> None:
        self.do(lambda c: cleaning.mark_cleaned(self.work(c), compaction))

    # housekeeping

    def grow_old(self) -> None:
        """Until no id can appear in a gap any more."""
        self.time.advance_ms(self.settings.open_timeout_ms + 1)

    def housekeep(self) -> None:
        """Everything once."""
        for work in (
            lambda c: housekeeping.time_out_txns(self.work(c)),
            lambda c: housekeeping.time_out_locks(self.work(c)),
            lambda c: housekeeping.forget_write_sets(self.work(c)),
            lambda c: housekeeping.forget_write_ids(self.work(c)),
            lambda c: housekeeping.forget_txns(self.work(c)),
            lambda c: housekeeping.settle_compactions(self.work(c)),
        ):
            self.do(work)
