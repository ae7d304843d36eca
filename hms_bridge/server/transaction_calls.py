"""Transactions, write ids and locks."""

from __future__ import annotations

from hms_bridge.errors import MetaError, NoSuchTxnError, TxnAbortedError
from hms_bridge.model.ids import LockId, TxnId, WriteId
from hms_bridge.model.txn import AbortReason
from hms_bridge.model.valid_ids import ValidTxnList
from hms_bridge.server.answers import Calls, answers
from hms_bridge.server.served_metastore import ServedLocks, ServedTransactions
from hms_bridge.wire import convert_lock, convert_txn
from hms_bridge.wire.lock_bytes import locks_to_bytes
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive


class TransactionCalls(Calls[ServedTransactions]):
    """Transactions and write ids."""

    @answers("open_txns", of="rqst", is_gathered=True)
    def open_txns(self, request: Struct) -> Struct:
        return hive.OpenTxnsResponse(
            txn_ids=list(self._store.open_txns(convert_txn.open_request_from_struct(request)))
        )

    @answers("get_open_txns")
    def get_open_txns(self, _: Struct) -> Struct:
        """Open and aborted ones, without those that only read."""
        return convert_txn.open_txn_rows_to_struct(self._store.get_open_txn_rows())

    @answers("get_open_txns_req")
    def get_open_txns_req(self, args: Struct) -> Struct:
        """Open and aborted ones, without those of some types."""
        types = args.getOpenTxnsRequest.excludeTxnTypes if args.getOpenTxnsRequest else None
        read = (convert_txn.txn_type_from_number(number) for number in types or ())
        excluded = frozenset(kind for kind in read if kind is not None)
        return convert_txn.open_txn_rows_to_struct(self._store.get_open_txn_rows(excluded))

    @answers("get_open_txns_info")
    def get_open_txns_info(self, _: Struct) -> Struct:
        # The watermark first: what is opened between the two reads would else count as ended,
        # being below the watermark and not in the list.
        highest = self._store.get_open_txn_rows().high_watermark
        infos = [info for info in self._store.get_open_txns_info() if info.id <= highest]
        return hive.GetOpenTxnsInfoResponse(
            txn_high_water_mark=highest,
            open_txns=[convert_txn.txn_info_to_struct(info) for info in infos],
        )

    @answers("commit_txn", of="rqst", is_gathered=True)
    def commit_txn(self, request: Struct) -> None:
        self._store.commit_txn(convert_txn.commit_request_from_struct(request))

    @answers("abort_txn", of="rqst", is_gathered=True)
    def abort_txn(self, request: Struct) -> None:
        self._store.abort_txn(convert_txn.abort_request_from_struct(request))

    @answers("abort_txns", of="rqst", is_gathered=True)
    def abort_txns(self, request: Struct) -> None:
        """Abort those of several that are open."""
        ids = [TxnId(number) for number in given(request.txn_ids, "txn_ids")]
        self._store.abort_txns(ids, convert_txn.abort_reason(request.errorCode, AbortReason.QUERY))

    @answers("heartbeat", of="ids", is_gathered=True)
    def heartbeat(self, ids: Struct) -> None:
        self._store.heartbeat(TxnId(ids.txnid or 0), LockId(ids.lockid or 0))

    @answers("heartbeat_txn_range", of="txns")
    def heartbeat_txn_range(self, txns: Struct) -> Struct:
        first, last = given(txns.min, "min"), given(txns.max, "max")
        result = self._store.heartbeat_txn_range(TxnId(first), TxnId(last))
        return convert_txn.heartbeat_range_to_struct(result)

    @answers("get_latest_txnid_in_conflict", of="txnId")
    def get_latest_txn_in_conflict(self, txn_id: int) -> int:
        """The newest transaction that changed what this one is about to change; 0 for none."""
        return self._store.get_latest_txn_in_conflict(TxnId(txn_id)) or 0

    @answers("allocate_table_write_ids", of="rqst", is_gathered=True)
    def allocate_table_write_ids(self, request: Struct) -> Struct:
        pairs = self._store.allocate_table_write_ids(
            convert_txn.allocate_request_from_struct(request)
        )
        structs = [convert_txn.pair_to_struct(pair) for pair in pairs]
        return hive.AllocateTableWriteIdsResponse(txnToWriteIds=structs)

    @answers("get_valid_write_ids", of="rqst")
    def get_valid_write_ids(self, request: Struct) -> Struct:
        names = [name.lower() for name in given(request.fullTableNames, "fullTableNames")]
        txns = ValidTxnList.parse(request.validTxnList) if request.validTxnList else None
        write_id = WriteId(request.writeId) if request.writeId else None
        lists = self._store.get_valid_write_ids(names, txns, write_id)
        return hive.GetValidWriteIdsResponse(
            tblValidWriteIds=[
                convert_txn.valid_write_ids_to_struct(write_ids) for write_ids in lists
            ]
        )

    @answers("get_max_allocated_table_write_id", of="rqst")
    def get_max_allocated_write_id(self, request: Struct) -> Struct:
        newest = self._store.get_max_allocated_write_id(
            given_name(request.dbName, "dbName"), given_name(request.tableName, "tableName")
        )
        return hive.MaxAllocatedTableWriteIdResponse(maxWriteId=newest)

    @answers("seed_write_id", of="rqst")
    def seed_write_id(self, request: Struct) -> None:
        self._store.seed_write_id(
            given_name(request.dbName, "dbName"),
            given_name(request.tableName, "tableName"),
            WriteId(given(request.seedWriteId, "seedWriteId")),
        )

    @answers("seed_txn_id", of="rqst")
    def seed_txn_id(self, request: Struct) -> None:
        self._store.seed_txn_id(TxnId(given(request.seedTxnId, "seedTxnId")))

    @answers("add_dynamic_partitions", of="rqst")
    def add_dynamic_partitions(self, request: Struct) -> None:
        self._store.add_dynamic_partitions(convert_txn.dynamic_partitions_from_struct(request))

    @answers("repl_tbl_writeid_state", of="rqst")
    def repl_table_write_id_state(self, request: Struct) -> None:
        self._store.repl_table_write_id_state(convert_txn.write_id_state_from_struct(request))

    @answers("get_replayed_txns_for_policy", of="policyName")
    def get_replayed_txns(self, policy: str) -> Struct:
        """Of a replication policy; ids are texts here."""
        pairs = self._store.get_replayed_txns(policy)
        return hive.ReplayedTxnsForPolicyResult(
            replTxnMapEntry={str(source): str(target) for source, target in pairs.items()}
        )

    @answers("add_write_ids_to_min_history")
    def add_write_ids_to_min_history(self, args: Struct) -> None:
        """What a reader may still need: kept for Hive's Cleaner, which trusts nothing else."""
        named = given(args.writeIds, "writeIds")
        write_ids = {name: WriteId(number) for name, number in named.items()}
        try:
            self._store.add_write_ids_to_min_history(TxnId(given(args.txnId, "txnId")), write_ids)
        except (NoSuchTxnError, TxnAbortedError) as error:
            raise MetaError(str(error)) from error  # the only one that the method declares


class LockCalls(Calls[ServedLocks]):
    """Locks."""

    @answers("lock", of="rqst", is_gathered=True)
    def lock(self, request: Struct) -> Struct:
        return convert_lock.lock_response_to_struct(
            self._store.lock(convert_lock.lock_request_from_struct(request))
        )

    @answers("check_lock", of="rqst")
    def check_lock(self, request: Struct) -> Struct:
        lock_id = LockId(given(request.lockid, "lockid"))
        return convert_lock.lock_response_to_struct(self._store.check_lock(lock_id))

    @answers("unlock", of="rqst")
    def unlock(self, request: Struct) -> None:
        self._store.unlock(LockId(given(request.lockid, "lockid")))

    @answers("show_locks", of="rqst")
    def show_locks(self, request: Struct) -> Struct:
        wanted = convert_lock.lock_filter_from_struct(request)
        locks = locks_to_bytes(self._store.show_lock_rows(wanted))
        return hive.ShowLocksResponse(locks=locks)
