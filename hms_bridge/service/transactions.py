"""Verbs of transactions and write ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hms_bridge.catalog.parameters import mark_incompatible, set_commit_key, set_repl_last_id
from hms_bridge.clock import steady_ms
from hms_bridge.errors import MetaError, TxnAbortedError
from hms_bridge.model.ids import LockId, TxnId, WriteId
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
from hms_bridge.notification import events, write_log
from hms_bridge.service.foundation import Foundation, VerbFamily
from hms_bridge.service.replica_gate import is_replicated, require_replicated, write_refusal
from hms_bridge.service.unit_of_work import UnitOfWork
from hms_bridge.txn import (
    abort,
    commit,
    components,
    heartbeat,
    min_history,
    open_txns,
    valid_write_ids,
    write_id_state,
    write_ids,
)
from hms_bridge.txn.abort import AbortOutcome
from hms_bridge.txn.open_txns import OpenedTxns, OpenTxnLimit
from hms_bridge.txn.write_ids import WrittenTable

OPEN_ATTEMPTS_MAX = 3


class TransactionVerbs(VerbFamily):
    """The TransactionStore."""

    def __init__(self, foundation: Foundation) -> None:
        super().__init__(foundation)
        self._limit = OpenTxnLimit(foundation.settings.txn, foundation.clock)

    def open_txns(self, request: OpenTxnsRequest) -> tuple[TxnId, ...]:
        """Ascending ids. Replayed source transactions that are already mapped keep their ids."""
        for _ in range(OPEN_ATTEMPTS_MAX):
            opened = self._transactions.write(lambda unit: self._open(unit, request))
            if opened.deadline_ms is None or steady_ms(self._clock) < opened.deadline_ms:
                return opened.ids
            # Others may have counted these ids as dead while they were being committed.
            self.abort_txns(opened.ids, AbortReason.NONE)
        raise MetaError(
            f"opening a transaction took longer than {self._settings.txn.open_timeout_ms} ms "
            f"{OPEN_ATTEMPTS_MAX} times; the database is too slow: try again later, or raise "
            "hive.txn.opentxn.timeout on all servers"
        )

    def _open(self, unit: UnitOfWork, request: OpenTxnsRequest) -> OpenedTxns:
        self._limit.check(unit.connection)
        opened = open_txns.open_txns(unit.connection, request, self._settings.txn, self._clock)
        if opened.is_event_due:
            unit.events.append(events.txns_opened(opened.ids, unit.now_seconds))
        return opened

    def get_open_txns(
        self, excluded_types: frozenset[TxnType] = frozenset({TxnType.READ_ONLY})
    ) -> OpenTxns:
        """Open and aborted transactions, with gaps of young ids counted as open."""
        return self._transactions.read(
            lambda c: open_txns.get_open_txns(c, self._settings.txn, self._clock, excluded_types)
        )

    def get_open_txns_info(self) -> tuple[TxnInfo, ...]:
        """What SHOW TRANSACTIONS lists: every transaction that is open or aborted."""
        return self._transactions.read(
            lambda c: open_txns.get_open_txns_info(c, self._settings.txn, self._clock)
        )

    def commit_txn(self, request: CommitTxnRequest) -> None:
        """Idempotent. Raises NoSuchTxnError; TxnAbortedError, also when the commit lost a
        write-write conflict (the transaction is then aborted)."""
        self._transactions.write(lambda unit: self._commit(unit, request))

    def _commit(self, unit: UnitOfWork, request: CommitTxnRequest) -> None:
        outcome = commit.commit_txn(unit.connection, request, self._clock)
        if outcome.refusal is not None:
            self._log_abort(unit, outcome.abort)
            # Raised only after the abort is committed, else it would be rolled back.
            unit.failure = TxnAbortedError(outcome.refusal)
            return
        if request.repl_last_id is not None:
            name = request.repl_last_id.database_name
            require_replicated(unit.connection, name, "no position of a replication")
            set_repl_last_id(unit.connection, request.repl_last_id)
        if request.key_value is not None:
            set_commit_key(unit.connection, request.key_value)
        if outcome.txn_id is None:
            return
        if request.type is TxnType.REPL_CREATED and request.write_events:
            write_log.add_events(
                unit.connection, outcome.txn_id, request.write_events, unit.now_seconds
            )
        if outcome.is_event_due:
            unit.events.append(
                events.txn_committed(outcome.txn_id, _places(outcome.written), unit.now_seconds)
            )
            unit.events += [
                events.compaction_committed(compaction, unit.now_seconds)
                for compaction in outcome.compactions
            ]

    def abort_txn(self, request: AbortTxnRequest) -> None:
        """Idempotent. Raises NoSuchTxnError (unknown, or committed)."""
        self._transactions.write(
            lambda unit: self._log_abort(unit, abort.abort_txn(unit.connection, request))
        )

    def abort_txns(self, ids: Sequence[TxnId], reason: AbortReason = AbortReason.QUERY) -> None:
        """Abort those that are open; no error for the others."""
        self._transactions.write(
            lambda unit: self._log_abort(unit, abort.abort_txns(unit.connection, ids, reason))
        )

    def _log_abort(self, unit: UnitOfWork, outcome: AbortOutcome | None) -> None:
        """Events of what was aborted, and a mark on databases whose replay it broke off."""
        if outcome is None:
            return
        named = sorted({policy.partition(".")[0] for policy in outcome.broken_policies})
        broken = [name for name in named if is_replicated(unit.connection, name)]
        if broken:
            mark_incompatible(unit.connection, broken)
        for txn in outcome.logged:
            unit.events.append(events.txn_aborted(txn.id, _places(txn.written), unit.now_seconds))

    def heartbeat(self, txn_id: TxnId, lock_id: LockId) -> None:
        """0 means none. Raises NoSuchTxnError, TxnAbortedError, NoSuchLockError."""
        self._transactions.write(
            lambda unit: heartbeat.heartbeat(unit.connection, txn_id, lock_id, self._clock)
        )

    def get_txn_timeout_ms(self) -> int:
        """After how long without a heartbeat it ends a transaction or lock."""
        return self._settings.txn.timeout_ms

    def heartbeat_txn_range(self, first: TxnId, last: TxnId) -> HeartbeatRangeResult:
        """Keep a range alive; never raises for one of them."""
        return self._transactions.write(
            lambda unit: heartbeat.heartbeat_txn_range(unit.connection, first, last, self._clock)
        )

    def get_latest_txn_in_conflict(self, txn_id: TxnId) -> TxnId | None:
        """The newest committed transaction that changed what this one is about to change."""
        return self._transactions.read(lambda c: commit.latest_txn_in_conflict(c, txn_id))

    def allocate_table_write_ids(
        self, request: AllocateWriteIdsRequest
    ) -> tuple[TxnToWriteId, ...]:
        """Ascending in both ids; the same again for transactions that have one. Raises MetaError,
        also for a table of a replica where the transaction replays none of the source's, and for a
        replayed one where the database is no replica."""

        def work(unit: UnitOfWork) -> tuple[TxnToWriteId, ...]:
            if request.repl_policy is None:
                refusal = write_refusal(unit.connection, request.database_name)
                if refusal is not None:
                    raise MetaError(f"no write id of {request.table_name}: {refusal}")
            else:
                what = f"no replayed write id of {request.table_name}"
                require_replicated(unit.connection, request.database_name, what)
            given = write_ids.allocate_table_write_ids(unit.connection, request)
            if given.new:
                unit.events.append(
                    events.write_ids_allocated(
                        request.database_name.lower(),
                        request.table_name.lower(),
                        given.new,
                        unit.now_seconds,
                    )
                )
            return given.pairs

        return self._transactions.write(work)

    def get_valid_write_ids(
        self,
        full_table_names: Sequence[str],
        valid_txns: ValidTxnList | None = None,
        write_id: WriteId | None = None,
    ) -> tuple[ValidWriteIdList, ...]:
        """One list a table, in the order asked, under the given transaction snapshot."""
        return self._transactions.read(
            lambda c: valid_write_ids.get_valid_write_ids(
                c,
                full_table_names,
                self._settings.txn,
                self._clock,
                valid_txns=valid_txns,
                write_id=write_id,
            )
        )

    def get_max_allocated_write_id(self, database: str, table: str) -> WriteId:
        """0 if there is none."""
        return self._transactions.read(
            lambda c: write_ids.get_max_allocated_write_id(c, database.lower(), table.lower())
        )

    def seed_write_id(self, database: str, table: str, seed: WriteId) -> None:
        """The next write id becomes ``seed + 1``. Raises MetaError if there are write ids."""
        self._transactions.write(
            lambda unit: write_ids.seed_write_id(
                unit.connection, database.lower(), table.lower(), seed
            )
        )

    def seed_txn_id(self, seed: TxnId) -> None:
        """Transactions go on from ``seed``. Raises MetaError if it is passed."""
        self._transactions.write(lambda unit: write_ids.seed_txn_id(unit.connection, seed))

    def add_dynamic_partitions(self, partitions: DynamicPartitions) -> None:
        """Raises NoSuchTxnError, TxnAbortedError."""
        self._transactions.write(
            lambda unit: components.add_dynamic_partitions(unit.connection, partitions)
        )

    def add_write_ids_to_min_history(self, txn_id: TxnId, write_ids: Mapping[str, WriteId]) -> None:
        """Raises NoSuchTxnError, TxnAbortedError; MetaError for a malformed name."""
        self._transactions.write(
            lambda unit: min_history.add_write_ids(unit.connection, txn_id, write_ids)
        )

    def repl_table_write_id_state(self, state: TableWriteIdState) -> None:
        """Give a table the write-id state of its source; nothing if it has one already.

        Unlike Hive, which logs only OPEN_TXN, the aborts are logged too: a consumer of the log
        would else wait for these transactions for ever.
        """

        def work(unit: UnitOfWork) -> None:
            applied = write_id_state.repl_table_write_id_state(
                unit.connection, state, self._settings.txn, self._clock
            )
            if applied.opened:
                unit.events.append(events.txns_opened(applied.opened, unit.now_seconds))
            self._log_abort(unit, AbortOutcome(aborted=applied.aborted))

        self._transactions.write(work)


def _places(written: Sequence[WrittenTable]) -> list[tuple[str, WriteId]]:
    return [(one.database_name, one.write_id) for one in written]
