"""Transactions, write ids and locks over thrift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hms_bridge.client.caller import Client, UnknownMethodError
from hms_bridge.config.durations import parse_duration_ms
from hms_bridge.config.settings import TXN_TIMEOUT, TxnSettings
from hms_bridge.errors import ConfigError, MetaError
from hms_bridge.model.ids import LockId, TxnId, WriteId
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
from hms_bridge.wire import convert_lock, convert_txn
from hms_bridge.wire.structs import hive

_READ_ONLY = frozenset({TxnType.READ_ONLY})


_OURS = "hms-bridge"
"""What servers of ours answer to getName."""


class TransactionClient(Client):
    """TransactionStore over thrift."""

    _txn_timeout_ms: int | None = None

    def open_txns(self, request: OpenTxnsRequest) -> tuple[TxnId, ...]:
        answer = self._caller.call(
            "open_txns",
            is_repeatable=request.repl_policy is not None,
            rqst=convert_txn.open_request_to_struct(request),
        )
        return tuple(TxnId(number) for number in answer.txn_ids)

    def get_open_txns(self, excluded_types: frozenset[TxnType] = _READ_ONLY) -> OpenTxns:
        """Open and aborted transactions; thrift does not send their types."""
        if excluded_types == _READ_ONLY:
            answer = self._caller.repeat("get_open_txns")
        else:
            numbers = sorted(int(txn_type) for txn_type in excluded_types)
            request = hive.GetOpenTxnsRequest(excludeTxnTypes=numbers)
            answer = self._caller.repeat("get_open_txns_req", getOpenTxnsRequest=request)
        return convert_txn.open_txns_from_struct(answer)

    def get_open_txns_info(self) -> tuple[TxnInfo, ...]:
        answer = self._caller.repeat("get_open_txns_info")
        return tuple(convert_txn.txn_info_from_struct(info) for info in answer.open_txns)

    def commit_txn(self, request: CommitTxnRequest) -> None:
        self._caller.repeat("commit_txn", rqst=convert_txn.commit_request_to_struct(request))

    def commit_replays(self, requests: Sequence[CommitTxnRequest]) -> None:
        """One by one: thrift has no call for several."""
        for request in requests:
            self.commit_txn(request)

    def abort_txn(self, request: AbortTxnRequest) -> None:
        self._caller.repeat("abort_txn", rqst=convert_txn.abort_request_to_struct(request))

    def abort_txns(self, ids: Sequence[TxnId], reason: AbortReason = AbortReason.QUERY) -> None:
        struct = hive.AbortTxnsRequest(txn_ids=list(ids), errorCode=reason.code)
        self._caller.repeat("abort_txns", rqst=struct)

    def heartbeat(self, txn_id: TxnId, lock_id: LockId) -> None:
        struct = hive.HeartbeatRequest(lockid=lock_id or None, txnid=txn_id or None)
        self._caller.repeat("heartbeat", ids=struct)

    def get_txn_timeout_ms(self) -> int:
        """After how long without a heartbeat the server ends a transaction or lock; asked once.

        Hive answers with the text of its setting; Trino asks in the same way.
        """
        if self._txn_timeout_ms is None:
            default = f"{TxnSettings().timeout_ms}ms"
            try:
                text = self._caller.repeat(
                    "get_config_value", name=TXN_TIMEOUT.aliases[0], defaultValue=default
                )
                self._txn_timeout_ms = parse_duration_ms(text or default, TXN_TIMEOUT.unit)
            except (MetaError, ConfigError):
                self._txn_timeout_ms = TxnSettings().timeout_ms
        return self._txn_timeout_ms

    def heeds_fences(self) -> bool:
        """By the server's name: only ours know what a fence is."""
        return bool(self._caller.repeat("getName") == _OURS)

    def heartbeat_txn_range(self, first: TxnId, last: TxnId) -> HeartbeatRangeResult:
        struct = hive.HeartbeatTxnRangeRequest(min=first, max=last)
        answer = self._caller.repeat("heartbeat_txn_range", txns=struct)
        return convert_txn.heartbeat_range_from_struct(answer)

    def get_latest_txn_in_conflict(self, txn_id: TxnId) -> TxnId | None:
        conflicting = self._caller.repeat("get_latest_txnid_in_conflict", txnId=txn_id)
        return TxnId(conflicting) if conflicting > 0 else None

    def allocate_table_write_ids(
        self, request: AllocateWriteIdsRequest
    ) -> tuple[TxnToWriteId, ...]:
        answer = self._caller.call(
            "allocate_table_write_ids",
            is_repeatable=not request.is_reallocation,
            rqst=convert_txn.allocate_request_to_struct(request),
        )
        return tuple(map(convert_txn.pair_from_struct, answer.txnToWriteIds))

    def get_valid_write_ids(
        self,
        full_table_names: Sequence[str],
        valid_txns: ValidTxnList | None = None,
        write_id: WriteId | None = None,
    ) -> tuple[ValidWriteIdList, ...]:
        struct = hive.GetValidWriteIdsRequest(
            fullTableNames=list(full_table_names),
            validTxnList=None if valid_txns is None else valid_txns.format(),
            writeId=write_id,
        )
        answer = self._caller.repeat("get_valid_write_ids", rqst=struct)
        lists = {
            write_ids.fullTableName: convert_txn.valid_write_ids_from_struct(write_ids)
            for write_ids in answer.tblValidWriteIds
        }
        missing = [name for name in full_table_names if name not in lists]
        if missing:
            raise MetaError(f"the metastore sent no write ids of {', '.join(missing)}")
        return tuple(lists[name] for name in full_table_names)

    def get_max_allocated_write_id(self, database: str, table: str) -> WriteId:
        struct = hive.MaxAllocatedTableWriteIdRequest(dbName=database, tableName=table)
        answer = self._caller.repeat("get_max_allocated_table_write_id", rqst=struct)
        return WriteId(answer.maxWriteId)

    def seed_write_id(self, database: str, table: str, seed: WriteId) -> None:
        struct = hive.SeedTableWriteIdsRequest(dbName=database, tableName=table, seedWriteId=seed)
        self._caller.call("seed_write_id", rqst=struct)

    def seed_txn_id(self, seed: TxnId) -> None:
        self._caller.call("seed_txn_id", rqst=hive.SeedTxnIdRequest(seedTxnId=seed))

    def add_dynamic_partitions(self, partitions: DynamicPartitions) -> None:
        struct = convert_txn.dynamic_partitions_to_struct(partitions)
        self._caller.call("add_dynamic_partitions", rqst=struct)

    def add_write_ids_to_min_history(self, txn_id: TxnId, write_ids: Mapping[str, WriteId]) -> None:
        """Nothing for a metastore before 4.0, whose cleaner waits for every open transaction."""
        try:
            self._caller.repeat(
                "add_write_ids_to_min_history", txnId=txn_id, writeIds=dict(write_ids)
            )
        except UnknownMethodError:
            return

    def get_replayed_txns(self, repl_policy: str) -> Mapping[TxnId, TxnId]:
        """Empty for a metastore that does not know the call."""
        try:
            answer = self._caller.repeat("get_replayed_txns_for_policy", policyName=repl_policy)
        except UnknownMethodError:
            return {}
        pairs = (answer.replTxnMapEntry or {}).items()
        return {TxnId(int(source)): TxnId(int(target)) for source, target in pairs}

    def repl_table_write_id_state(self, state: TableWriteIdState) -> None:
        struct = convert_txn.write_id_state_to_struct(state)
        self._caller.repeat("repl_tbl_writeid_state", rqst=struct)


class LockClient(Client):
    """LockStore over thrift."""

    def lock(self, request: LockRequest) -> LockResponse:
        """Never repeated: the second would wait for the first."""
        struct = convert_lock.lock_request_to_struct(request)
        return convert_lock.lock_response_from_struct(self._caller.call("lock", rqst=struct))

    def check_lock(self, lock_id: LockId) -> LockResponse:
        answer = self._caller.repeat("check_lock", rqst=hive.CheckLockRequest(lockid=lock_id))
        return convert_lock.lock_response_from_struct(answer)

    def unlock(self, lock_id: LockId) -> None:
        self._caller.repeat("unlock", rqst=hive.UnlockRequest(lockid=lock_id))

    def show_locks(self, lock_filter: LockFilter | None = None) -> tuple[LockInfo, ...]:
        struct = convert_lock.lock_filter_to_struct(lock_filter or LockFilter())
        answer = self._caller.repeat("show_locks", rqst=struct)
        return tuple(convert_lock.lock_info_from_struct(info) for info in answer.locks or ())
