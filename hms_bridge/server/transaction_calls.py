"""Transactions, write ids and locks."""

from __future__ import annotations

from hms_bridge.errors import MetaError, NoSuchTxnError, TxnAbortedError
from hms_bridge.metastore import LockStore, TransactionStore
from hms_bridge.model.ids import LockId, TxnId, WriteId
from hms_bridge.model.txn import AbortReason
from hms_bridge.model.valid_ids import ValidTxnList
from hms_bridge.server.answers import answers
from hms_bridge.wire import convert_lock, convert_txn
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive


class TransactionCalls:
    """Transactions and write ids."""

    def __init__(self, store: TransactionStore) -> None:
        self._store = store

    @answers("open_txns")
    def open_txns(self, args: Struct) -> Struct:
        request = convert_txn.open_request_from_struct(given(args.rqst, "rqst"))
        return hive.OpenTxnsResponse(txn_ids=list(self._store.open_txns(request)))

    @answers("get_open_txns")
    def get_open_txns(self, _: Struct) -> Struct:
        """Open and aborted ones, without those that only read."""
        return convert_txn.open_txns_to_struct(self._store.get_open_txns())

    @answers("get_open_txns_req")
    def get_open_txns_req(self, args: Struct) -> Struct:
        """Open and aborted ones, without those of some types."""
        types = args.getOpenTxnsRequest.excludeTxnTypes if args.getOpenTxnsRequest else None
        read = (convert_txn.txn_type_from_number(number) for number in types or ())
        excluded = frozenset(kind for kind in read if kind is not None)
        return convert_txn.open_txns_to_struct(self._store.get_open_txns(excluded))

    @answers("get_open_txns_info")
    def get_open_txns_info(self, _: Struct) -> Struct:
        """What SHOW TRANSACTIONS lists."""
        # The watermark first: what is opened between the two reads would else count as ended,
        # being below the watermark and not in the list.
        highest = self._store.get_open_txns().high_watermark
        infos = [info for info in self._store.get_open_txns_info() if info.id <= highest]
        return hive.GetOpenTxnsInfoResponse(
            txn_high_water_mark=highest,
            open_txns=[convert_txn.txn_info_to_struct(info) for info in infos],
        )

    @answers("commit_txn")
    def commit_txn(self, args: Struct) -> None:
        request = convert_txn.commit_request_from_struct(given(args.rqst, "rqst"))
        self._store.commit_txn(request)

    @answers("abort_txn")
    def abort_txn(self, args: Struct) -> None:
        self._store.abort_txn(convert_txn.abort_request_from_struct(given(args.rqst, "rqst")))

    @answers("abort_txns")
    def abort_txns(self, args: Struct) -> None:
        """Abort those of several that are open."""
        request = given(args.rqst, "rqst")
        ids = [TxnId(number) for number in given(request.txn_ids, "txn_ids")]
        reason = convert_txn.abort_reason(request.errorCode, AbortReason.QUERY)
        self._store.abort_txns(ids, reason)

    @answers("heartbeat")
    def heartbeat(self, args: Struct) -> None:
        """Keep a transaction, a lock or both alive."""
        ids = given(args.ids, "ids")
        self._store.heartbeat(TxnId(ids.txnid or 0), LockId(ids.lockid or 0))

    @answers("heartbeat_txn_range")
    def heartbeat_txn_range(self, args: Struct) -> Struct:
        """Keep a range of transactions alive."""
        txns = given(args.txns, "txns")
        first, last = given(txns.min, "min"), given(txns.max, "max")
        result = self._store.heartbeat_txn_range(TxnId(first), TxnId(last))
        return convert_txn.heartbeat_range_to_struct(result)

    @answers("get_latest_txnid_in_conflict")
    def get_latest_txn_in_conflict(self, args: Struct) -> int:
        """The newest transaction that changed what this one is about to change; 0 for none."""
        txn_id = TxnId(given(args.txnId, "txnId"))
        return self._store.get_latest_txn_in_conflict(txn_id) or 0

    @answers("allocate_table_write_ids")
    def allocate_table_write_ids(self, args: Struct) -> Struct:
        """Write ids of transactions on one table."""
        request = convert_txn.allocate_request_from_struct(given(args.rqst, "rqst"))
        pairs = self._store.allocate_table_write_ids(request)
        structs = [convert_txn.pair_to_struct(pair) for pair in pairs]
        return hive.AllocateTableWriteIdsResponse(txnToWriteIds=structs)

    @answers("get_valid_write_ids")
    def get_valid_write_ids(self, args: Struct) -> Struct:
        """What a snapshot sees of some tables."""
        request = given(args.rqst, "rqst")
        names = [name.lower() for name in given(request.fullTableNames, "fullTableNames")]
        txns = ValidTxnList.parse(request.validTxnList) if request.validTxnList else None
        write_id = WriteId(request.writeId) if request.writeId else None
        lists = self._store.get_valid_write_ids(names, txns, write_id)
        return hive.GetValidWriteIdsResponse(
            tblValidWriteIds=[
                convert_txn.valid_write_ids_to_struct(write_ids) for write_ids in lists
            ]
        )

    @answers("get_max_allocated_table_write_id")
    def get_max_allocated_write_id(self, args: Struct) -> Struct:
        """The newest write id of a table."""
        request = given(args.rqst, "rqst")
        newest = self._store.get_max_allocated_write_id(
            given_name(request.dbName, "dbName"), given_name(request.tableName, "tableName")
        )
        return hive.MaxAllocatedTableWriteIdResponse(maxWriteId=newest)

    @answers("seed_write_id")
    def seed_write_id(self, args: Struct) -> None:
        """Where a table's write ids start."""
        request = given(args.rqst, "rqst")
        self._store.seed_write_id(
            given_name(request.dbName, "dbName"),
            given_name(request.tableName, "tableName"),
            WriteId(given(request.seedWriteId, "seedWriteId")),
        )

    @answers("seed_txn_id")
    def seed_txn_id(self, args: Struct) -> None:
        """Where transaction ids go on."""
        request = given(args.rqst, "rqst")
        self._store.seed_txn_id(TxnId(given(request.seedTxnId, "seedTxnId")))

    @answers("add_dynamic_partitions")
    def add_dynamic_partitions(self, args: Struct) -> None:
        """Which partitions a write turned out to touch."""
        partitions = convert_txn.dynamic_partitions_from_struct(given(args.rqst, "rqst"))
        self._store.add_dynamic_partitions(partitions)

    @answers("repl_tbl_writeid_state")
    def repl_table_write_id_state(self, args: Struct) -> None:
        """The write-id state of a table's source."""
        state = convert_txn.write_id_state_from_struct(given(args.rqst, "rqst"))
        self._store.repl_table_write_id_state(state)

    @answers("get_replayed_txns_for_policy")
    def get_replayed_txns(self, args: Struct) -> Struct:
        """Of a replication policy; ids are texts here."""
        found = self._store.get_replayed_txns(given(args.policyName, "policyName"))
        return hive.ReplayedTxnsForPolicyResult(
            replTxnMapEntry={str(source): str(target) for source, target in found.items()}
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


class LockCalls:
    """Locks."""

    def __init__(self, store: LockStore) -> None:
        self._store = store

    @answers("lock")
    def lock(self, args: Struct) -> Struct:
        request = convert_lock.lock_request_from_struct(given(args.rqst, "rqst"))
        return convert_lock.lock_response_to_struct(self._store.lock(request))

    @answers("check_lock")
    def check_lock(self, args: Struct) -> Struct:
        lock_id = LockId(given(given(args.rqst, "rqst").lockid, "lockid"))
        return convert_lock.lock_response_to_struct(self._store.check_lock(lock_id))

    @answers("unlock")
    def unlock(self, args: Struct) -> None:
        self._store.unlock(LockId(given(given(args.rqst, "rqst").lockid, "lockid")))

    @answers("show_locks")
    def show_locks(self, args: Struct) -> Struct:
        """What SHOW LOCKS lists."""
        wanted = convert_lock.lock_filter_from_struct(given(args.rqst, "rqst"))
        locks = [convert_lock.lock_info_to_struct(i) for i in self._store.show_locks(wanted)]
        return hive.ShowLocksResponse(locks=locks)
