"""Transactions, write ids and locks over thrift."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from hms_bridge.client.caller import Caller, UnknownMethodError
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


class TransactionClient:
    """TransactionStore over thrift."""

    _txn_timeout_ms: int | None = None

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def open_txns(self, request: OpenTxnsRequest) -> tuple[TxnId, ...]:
        found = self._caller.call(
            "open_txns",
            is_repeatable=request.repl_policy is not None,
            rqst=convert_txn.open_request_to_struct(request),
        )
        return tuple(TxnId(number) for number in found.txn_ids)

    def get_open_txns(self, excluded_types: frozenset[TxnType] = _READ_ONLY) -> OpenTxns:
        """Open and aborted transactions; thrift does not tell their types."""
        if excluded_types == _READ_ONLY:
            answer = self._caller.call("get_open_txns", is_repeatable=True)
        else:
            numbers = sorted(int(txn_type) for txn_type in excluded_types)
            request = hive.GetOpenTxnsRequest(excludeTxnTypes=numbers)
            answer = self._caller.call(
                "get_open_txns_req", is_repeatable=True, getOpenTxnsRequest=request
            )
        return convert_txn.open_txns_from_struct(answer)

    def get_open_txns_info(self) -> tuple[TxnInfo, ...]:
        found = self._caller.call("get_open_txns_info", is_repeatable=True)
        return tuple(convert_txn.txn_info_from_struct(info) for info in found.open_txns)

    def commit_txn(self, request: CommitTxnRequest) -> None:
        struct = convert_txn.commit_request_to_struct(request)
        self._caller.call("commit_txn", is_repeatable=True, rqst=struct)

    def abort_txn(self, request: AbortTxnRequest) -> None:
        struct = convert_txn.abort_request_to_struct(request)
        self._caller.call("abort_txn", is_repeatable=True, rqst=struct)

    def abort_txns(self, ids: Sequence[TxnId], reason: AbortReason = AbortReason.QUERY) -> None:
        struct = hive.AbortTxnsRequest(txn_ids=list(ids), errorCode=reason.code)
        self._caller.call("abort_txns", is_repeatable=True, rqst=struct)

    def heartbeat(self, txn_id: TxnId, lock_id: LockId) -> None:
        struct = hive.HeartbeatRequest(lockid=lock_id or None, txnid=txn_id or None)
        self._caller.call("heartbeat", is_repeatable=True, ids=struct)

    def get_txn_timeout_ms(self) -> int:
        """After how long without a heartbeat the server ends a transaction or lock; asked once.

        Hive answers with the text of its setting; Trino asks in the same way.
        """
        if self._txn_timeout_ms is None:
            default = f"{TxnSettings().timeout_ms}ms"
            try:
                text = self._caller.call(
                    "get_config_value",
                    is_repeatable=True,
                    name=TXN_TIMEOUT.aliases[0],
                    defaultValue=default,
                )
                self._txn_timeout_ms = parse_duration_ms(text or default, TXN_TIMEOUT.unit)
            except (MetaError, ConfigError):
                self._txn_timeout_ms = TxnSettings().timeout_ms
        return self._txn_timeout_ms

    def heartbeat_txn_range(self, first: TxnId, last: TxnId) -> HeartbeatRangeResult:
        struct = hive.HeartbeatTxnRangeRequest(min=first, max=last)
        found = self._caller.call("heartbeat_txn_range", is_repeatable=True, txns=struct)
        return convert_txn.heartbeat_range_from_struct(found)

    def get_latest_txn_in_conflict(self, txn_id: TxnId) -> TxnId | None:
        found = self._caller.call("get_latest_txnid_in_conflict", is_repeatable=True, txnId=txn_id)
        return TxnId(found) if found > 0 else None

    def allocate_table_write_ids(
        self, request: AllocateWriteIdsRequest
    ) -> tuple[TxnToWriteId, ...]:
        found = self._caller.call(
            "allocate_table_write_ids",
            is_repeatable=not request.is_reallocation,
            rqst=convert_txn.allocate_request_to_struct(request),
        )
        return tuple(map(convert_txn.pair_from_struct, found.txnToWriteIds))

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
        found = self._caller.call("get_valid_write_ids", is_repeatable=True, rqst=struct)
        lists = {
            write_ids.fullTableName: convert_txn.valid_write_ids_from_struct(write_ids)
            for write_ids in found.tblValidWriteIds
        }
        missing = [name for name in full_table_names if name not in lists]
        if missing:
            raise MetaError(f"the metastore told no write ids of {', '.join(missing)}")
        return tuple(lists[name] for name in full_table_names)

    def get_max_allocated_write_id(self, database: str, table: str) -> WriteId:
        struct = hive.MaxAllocatedTableWriteIdRequest(dbName=database, tableName=table)
        found = self._caller.call(
            "get_max_allocated_table_write_id", is_repeatable=True, rqst=struct
        )
        return WriteId(found.maxWriteId)

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
            self._caller.call(
                "add_write_ids_to_min_history",
                is_repeatable=True,
                txnId=txn_id,
                writeIds=dict(write_ids),
            )
        except UnknownMethodError:
            return

    def get_replayed_txns(self, repl_policy: str) -> Mapping[TxnId, TxnId]:
        """Empty for a metastore that does not know the call."""
        try:
            found = self._caller.call(
                "get_replayed_txns_for_policy", is_repeatable=True, policyName=repl_policy
            )
        except UnknownMethodError:
            return {}
        pairs = (found.replTxnMapEntry or {}).items()
        return {TxnId(int(source)): TxnId(int(target)) for source, target in pairs}

    def repl_table_write_id_state(self, state: TableWriteIdState) -> None:
        struct = convert_txn.write_id_state_to_struct(state)
        self._caller.call("repl_tbl_writeid_state", is_repeatable=True, rqst=struct)


class LockClient:
    """LockStore over thrift."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    def lock(self, request: LockRequest) -> LockResponse:
        """Raises NoSuchTxnError, TxnAbortedError. Never repeated: the second would wait for the
        first."""
        struct = convert_lock.lock_request_to_struct(request)
        return convert_lock.lock_response_from_struct(self._caller.call("lock", rqst=struct))

    def check_lock(self, lock_id: LockId) -> LockResponse:
        struct = hive.CheckLockRequest(lockid=lock_id)
        found = self._caller.call("check_lock", is_repeatable=True, rqst=struct)
        return convert_lock.lock_response_from_struct(found)

    def unlock(self, lock_id: LockId) -> None:
        struct = hive.UnlockRequest(lockid=lock_id)
        self._caller.call("unlock", is_repeatable=True, rqst=struct)

    def show_locks(self, lock_filter: LockFilter | None = None) -> tuple[LockInfo, ...]:
        struct = convert_lock.lock_filter_to_struct(lock_filter or LockFilter())
        found = self._caller.call("show_locks", is_repeatable=True, rqst=struct)
        return tuple(convert_lock.lock_info_from_struct(info) for info in found.locks or ())
