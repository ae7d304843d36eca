"""The port: what every room that needs a metastore sees of it.

``Metastore`` is the sum of ten protocols, of which six stand in
:mod:`hms_bridge.metadata_store`. It is implemented by ``service.MetastoreService`` (over SQL), by
``client.ThriftMetastoreClient`` (ours or a real Hive metastore), and both pass the same behaviour
suite. ``LocalMetastore`` adds what Hive offers to its own threads only, and what a monitor asks
(:mod:`hms_bridge.cleaning_store`).

Names are given and returned in lower case. Every method raises the errors of
``hms_bridge.errors`` that its docstring names, MetaError for a refusal without a class of its
own, and MetastoreUnavailableError where the metastore is remote and cannot be reached.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from hms_bridge.cleaning_store import CleaningStore, FigureStore
from hms_bridge.metadata_store import (
    ConstraintStore,
    FunctionStore,
    MaterializedViewStore,
    NotificationStore,
    PlaceStore,
    StatisticsStore,
)
from hms_bridge.model.catalog import DEFAULT_CATALOG, Database, Partition, Table
from hms_bridge.model.compaction import (
    AbortOutcome,
    Compaction,
    CompactionRequest,
    CompactionResponse,
    ShowCompactionsRequest,
)
from hms_bridge.model.ids import CompactionId, LockId, TxnId, WriteId
from hms_bridge.model.lock import LockFilter, LockInfo, LockRequest, LockResponse
from hms_bridge.model.txn import (
    AbortReason,
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    DynamicPartitions,
    HeartbeatRangeResult,
    OpenTxns,
    OpenTxnsRequest,
    TableWriteIdState,
    TxnInfo,
    TxnToWriteId,
    TxnType,
)
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList


class CatalogStore(Protocol):
    """Databases, tables and partitions.

    Patterns are Hive's: ``*`` any text, ``|`` or; None means all. Every change writes its
    notification event in the same database transaction (I8).
    """

    def create_database(self, database: Database) -> None:
        """Create it, and its directory. Raises AlreadyExistsError, InvalidObjectError."""

    def get_database(self, name: str, catalog: str = DEFAULT_CATALOG) -> Database:
        """Raises NoSuchObjectError."""

    def get_databases(
        self, pattern: str | None = None, catalog: str = DEFAULT_CATALOG
    ) -> tuple[str, ...]:
        """Names, sorted."""

    def alter_database(self, name: str, database: Database) -> None:
        """Replace everything but name and catalog; what is None of description, places and kind of
        owner stays. Raises NoSuchObjectError."""

    def drop_database(
        self,
        name: str,
        *,
        catalog: str = DEFAULT_CATALOG,
        is_data_deleted: bool = True,
        is_cascade: bool = False,
    ) -> None:
        """Raises NoSuchObjectError; InvalidOperationError when tables are left and no cascade
        was asked, or when the database is a replication source."""

    def create_table(self, table: Table, *, trusted_columns: Sequence[str] = ()) -> None:
        """Create it, and its directory if it is managed and gives no location. If it has no
        files, the statistics of ``trusted_columns`` can be believed from the start. Raises
        AlreadyExistsError, InvalidObjectError, NoSuchObjectError (its database)."""

    def get_table(self, database: str, name: str, catalog: str = DEFAULT_CATALOG) -> Table:
        """Raises NoSuchObjectError."""

    def get_tables(
        self,
        database: str,
        pattern: str | None = None,
        table_type: str | None = None,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[str, ...]:
        """Names, sorted; none for an unknown database."""

    def get_tables_by_names(
        self, database: str, names: Sequence[str], catalog: str = DEFAULT_CATALOG
    ) -> tuple[Table, ...]:
        """Those that exist."""

    def alter_table(
        self,
        database: str,
        name: str,
        table: Table,
        *,
        environment: Mapping[str, str] | None = None,
        valid_write_ids: str | None = None,
    ) -> None:
        """Replace it (also renames). Raises NoSuchObjectError, InvalidOperationError."""

    def drop_table(
        self,
        database: str,
        name: str,
        *,
        catalog: str = DEFAULT_CATALOG,
        is_data_deleted: bool = True,
        is_purge: bool = False,
    ) -> None:
        """Remove it; the files of a managed table go too, archived first where the database is
        a replication source (I4). Raises NoSuchObjectError."""

    def truncate_table(
        self,
        database: str,
        name: str,
        partition_names: Sequence[str] | None = None,
        *,
        write_id: WriteId | None = None,
        valid_write_ids: str | None = None,
        is_data_deleted: bool = True,
        catalog: str = DEFAULT_CATALOG,
    ) -> None:
        """Empty it, or partitions of it; a transactional one when the write id commits. Raises
        NoSuchObjectError, InvalidOperationError (a view, or no write id of a transactional one)."""

    def add_partitions(
        self,
        database: str,
        table: str,
        partitions: Sequence[Partition],
        *,
        is_if_not_exists: bool = False,
        catalog: str = DEFAULT_CATALOG,
    ) -> tuple[Partition, ...]:
        """All or none; returns those that were added, with their locations.

        Raises AlreadyExistsError, NoSuchObjectError, InvalidObjectError."""

    def get_partition(
        self, database: str, table: str, values: Sequence[str], catalog: str = DEFAULT_CATALOG
    ) -> Partition:
        """Raises NoSuchObjectError."""

    def get_partition_names(
        self, database: str, table: str, max_parts: int = -1, catalog: str = DEFAULT_CATALOG
    ) -> tuple[str, ...]:
        """``a=1/b=x`` names, sorted. Raises NoSuchObjectError for an unknown table."""

    def get_partitions(
        self, database: str, table: str, max_parts: int = -1, catalog: str = DEFAULT_CATALOG
    ) -> Sequence[Partition]:
        """Sorted by name. Raises NoSuchObjectError for an unknown table."""

    def get_partitions_by_names(
        self, database: str, table: str, names: Sequence[str], catalog: str = DEFAULT_CATALOG
    ) -> Sequence[Partition]:
        """Those that exist. Names are compared as they come, keys too: DS=a is not ds=a (Hive 4.2:
        GetPartitionsHandler.getPartitionsByNames, MetaStoreDirectSql.getPartitionsByNames). Raises
        NoSuchObjectError for an unknown table."""

    def get_partitions_by_values(
        self,
        database: str,
        table: str,
        prefix: Sequence[str],
        max_parts: int = -1,
        catalog: str = DEFAULT_CATALOG,
    ) -> Sequence[Partition]:
        """Those whose values match the given ones; "" or a missing one matches all."""

    def get_partitions_by_filter(
        self,
        database: str,
        table: str,
        filter_text: str,
        max_parts: int = -1,
        catalog: str = DEFAULT_CATALOG,
    ) -> Sequence[Partition]:
        """Those that a filter like ``ds = "2024-01-02" and n > 3`` selects.

        Raises MetaError for a filter that cannot be parsed, NoSuchObjectError.
        """

    def alter_partitions(
        self,
        database: str,
        table: str,
        partitions: Sequence[Partition],
        *,
        environment: Mapping[str, str] | None = None,
        catalog: str = DEFAULT_CATALOG,
        is_event_each: bool = False,
        valid_write_ids: str | None = None,
    ) -> None:
        """Replace those with their values, all or none; ``is_event_each``: an event for each,
        not one for all. Raises NoSuchObjectError."""

    def drop_partitions(
        self,
        database: str,
        table: str,
        names: Sequence[str],
        *,
        catalog: str = DEFAULT_CATALOG,
        is_data_deleted: bool = True,
        is_purge: bool = False,
        is_if_exists: bool = False,
    ) -> None:
        """Remove them, all or none; files as in drop_table. Raises NoSuchObjectError."""


class TransactionStore(Protocol):
    """Transactions and write ids."""

    def open_txns(self, request: OpenTxnsRequest) -> tuple[TxnId, ...]:
        """Ascending ids. Replayed source transactions that are already mapped keep their ids."""

    def get_open_txns(
        self, excluded_types: frozenset[TxnType] = frozenset({TxnType.READ_ONLY})
    ) -> OpenTxns:
        """Open and aborted transactions, with gaps of young ids counted as open."""

    def get_open_txns_info(self) -> tuple[TxnInfo, ...]:
        """What SHOW TRANSACTIONS lists: every transaction that is open or aborted."""

    def commit_txn(self, request: CommitTxnRequest) -> None:
        """Idempotent. Raises NoSuchTxnError; TxnAbortedError, also when the commit lost a
        write-write conflict (the transaction is then aborted)."""

    def commit_replays(self, requests: Sequence[CommitTxnRequest]) -> None:
        """Commit transactions that replay a source's, in their order, as commit_txn does each; in
        one step where the metastore can. Those before one that is refused are committed."""

    def abort_txn(self, request: AbortTxnRequest) -> None:
        """Idempotent. Raises NoSuchTxnError (unknown, or committed)."""

    def abort_txns(self, ids: Sequence[TxnId], reason: AbortReason = AbortReason.QUERY) -> None:
        """Abort those that are open; no error for the others."""

    def heartbeat(self, txn_id: TxnId, lock_id: LockId) -> None:
        """0 means none. Raises NoSuchTxnError, TxnAbortedError, NoSuchLockError."""

    def get_txn_timeout_ms(self) -> int:
        """After how long without a heartbeat it ends a transaction or lock: hive.txn.timeout."""

    def heeds_fences(self) -> bool:
        """Whether it gives no write ids of a source that is handed over to its replica: one of ours
        does not, a Hive's does."""

    def heartbeat_txn_range(self, first: TxnId, last: TxnId) -> HeartbeatRangeResult:
        """Keep a range alive; never raises for one of them."""

    def get_replayed_txns(self, repl_policy: str) -> Mapping[TxnId, TxnId]:
        """The source's transactions that are replayed here under a policy and have not ended, and
        ours for each."""

    def get_latest_txn_in_conflict(self, txn_id: TxnId) -> TxnId | None:
        """The newest committed transaction that updated or deleted where this one holds locks to
        do so; None if there is none. A writer asks after waiting for its locks: if its snapshot
        does not see that transaction, it must take a new one."""

    def allocate_table_write_ids(
        self, request: AllocateWriteIdsRequest
    ) -> tuple[TxnToWriteId, ...]:
        """Ascending in both ids; the same again for transactions that have one."""

    def get_valid_write_ids(
        self,
        full_table_names: Sequence[str],
        valid_txns: ValidTxnList | None = None,
        write_id: WriteId | None = None,
    ) -> tuple[ValidWriteIdList, ...]:
        """One list a table, in the order asked, under the given transaction snapshot."""

    def get_max_allocated_write_id(self, database: str, table: str) -> WriteId:
        """0 if there is none."""

    def seed_write_id(self, database: str, table: str, seed: WriteId) -> None:
        """The next write id becomes ``seed + 1``. Raises MetaError if there are write ids."""

    def seed_txn_id(self, seed: TxnId) -> None:
        """The next transaction id becomes ``seed`` itself. Raises MetaError if it is passed."""

    def add_dynamic_partitions(self, partitions: DynamicPartitions) -> None:
        """Raises NoSuchTxnError, TxnAbortedError."""

    def add_write_ids_to_min_history(self, txn_id: TxnId, write_ids: Mapping[str, WriteId]) -> None:
        """Until the transaction ends, keep Hive's Cleaner from what a compaction replaced that
        covers these ids (by ``db.table``) or higher ones. Nothing where the metastore knows no such
        ids. Raises NoSuchTxnError, TxnAbortedError (MetaError over thrift)."""

    def repl_table_write_id_state(self, state: TableWriteIdState) -> None:
        """Give a table the write-id state of its source; nothing if it has one already."""


class LockStore(Protocol):
    """Locks: granted all or none, first come first served."""

    def lock(self, request: LockRequest) -> LockResponse:
        """Raises NoSuchTxnError, TxnAbortedError."""

    def check_lock(self, lock_id: LockId) -> LockResponse:
        """Try again, and keep alive. Raises NoSuchLockError, NoSuchTxnError, TxnAbortedError."""

    def unlock(self, lock_id: LockId) -> None:
        """Idempotent. Raises TxnOpenError for acquired locks of a transaction."""

    def show_locks(self, lock_filter: LockFilter | None = None) -> tuple[LockInfo, ...]:
        """Acquired ones first, then by strength and id."""


class CompactionStore(Protocol):
    """The compaction queue as workers and users see it."""

    def compact(self, request: CompactionRequest) -> CompactionResponse:
        """Queue a compaction; refused if the same target is queued already. Writes the event
        REQUEST_COMPACTION. Raises NoSuchObjectError for an unknown table or partition."""

    def show_compactions(
        self, request: ShowCompactionsRequest | None = None
    ) -> tuple[Compaction, ...]:
        """The queue and its history, newest first."""

    def find_next_compaction(
        self,
        worker_id: str,
        worker_version: str | None,
        pool_name: str | None = None,
        *,
        is_selective: bool = False,
    ) -> Compaction | None:
        """Claim the oldest initiated entry of the pool. No two workers get the same (I9).

        ``is_selective``: only what the worker of hms-bridge does (``DONE_HERE``, and no insert-only
        table), as nobody can give a claimed entry back. Thrift has no field for that wish: over
        thrift the default pool is left alone, and ``OWN_POOL`` is asked in its place.
        """

    def update_compactor_state(self, compaction: Compaction, txn_id: TxnId) -> None:
        """Record run_as, highest_write_id and the worker's transaction.

        Raises NoSuchCompactionError if the entry is not this worker's any more (I9).
        """

    def set_hadoop_job_id(self, job_id: str, compaction_id: CompactionId) -> None:
        """Record which job does the work."""

    def mark_compacted(self, compaction: Compaction) -> None:
        """Ready for cleaning. Raises NoSuchCompactionError if this worker lost the entry."""

    def mark_failed(self, compaction: Compaction) -> None:
        """Into the history with its error_message; writes the event FAIL_COMPACTION."""

    def mark_refused(self, compaction: Compaction) -> None:
        """Into the history as refused, with error_message."""

    def mark_cleaned(self, compaction: Compaction) -> None:
        """Into the history as succeeded; forgets transaction components up to highest_write_id:
        none for 0, all that the queue's entry covers for None."""

    def abort_compactions(self, ids: Sequence[CompactionId]) -> Mapping[CompactionId, AbortOutcome]:
        """Abort entries that nobody works on yet; what came of it for each id."""


class Metastore(
    CatalogStore,
    TransactionStore,
    LockStore,
    CompactionStore,
    NotificationStore,
    StatisticsStore,
    FunctionStore,
    ConstraintStore,
    MaterializedViewStore,
    PlaceStore,
    Protocol,
):
    """All that a remote metastore offers."""

    def close(self) -> None:
        """Give back connections."""


class LocalMetastore(Metastore, CleaningStore, FigureStore, Protocol):
    """A metastore over its own database."""
