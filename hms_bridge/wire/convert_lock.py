"""Locks: thrift structs to records and back."""

from __future__ import annotations

from hms_bridge.model.lock import (
    LockComponent,
    LockFilter,
    LockInfo,
    LockLevel,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
)
from hms_bridge.model.target import Scope
from hms_bridge.wire.convert_txn import agent, operation
from hms_bridge.wire.fields import (
    both_ways,
    each,
    member,
    name,
    name_or_none,
    or_else,
    or_none,
    spread,
    truth,
)

_TYPES = {kind.number: kind for kind in LockType}
_LEVELS = {int(level): level for level in LockLevel}
_STATES = {state.number: state for state in LockState}

lock_component_to_struct, lock_component_from_struct = both_ways(
    LockComponent,
    "LockComponent",
    type=member("type", _TYPES, "lock type"),
    level=member("level", _LEVELS, "lock level"),
    scope=spread(
        Scope,
        database=name("dbname"),
        table=name_or_none("tablename"),
        partition=or_none("partitionname"),
    ),
    operation=operation("operationType"),
    is_transactional="isTransactional",
    is_dynamic_partition_write=truth("isDynamicPartitionWrite"),
)
lock_request_to_struct, lock_request_from_struct = both_ways(
    LockRequest,
    "LockRequest",
    components=each(
        "component", (lock_component_to_struct, lock_component_from_struct), is_sent_empty=True
    ),
    txn_id=or_else("txnid", 0, lambda txn_id: txn_id or None),
    user=or_else("user", ""),
    host=or_else("hostname", ""),
    agent=agent("agentInfo"),
    is_zero_wait_read=truth("zeroWaitReadEnabled"),
    is_exclusive_ctas=truth("exclusiveCTAS"),
)
lock_response_to_struct, lock_response_from_struct = both_ways(
    LockResponse,
    "LockResponse",
    lock_id="lockid",
    state=member("state", _STATES, "lock state"),
    error_message="errorMessage",
)
lock_filter_to_struct, lock_filter_from_struct = both_ways(
    LockFilter,
    "ShowLocksRequest",
    scope=spread(
        Scope,
        database=name_or_none("dbname"),
        table=name_or_none("tablename"),
        partition=or_none("partname"),
    ),
    txn_id=or_none("txnid"),
    always={"isExtended": False},
)
lock_info_to_struct, lock_info_from_struct = both_ways(
    LockInfo,
    "ShowLocksResponseElement",
    lock_id="lockid",
    internal_id=or_else("lockIdInternal", 0),
    scope=spread(Scope, database="dbname", table="tablename", partition="partname"),
    state=member("state", _STATES, "lock state"),
    type=member("type", _TYPES, "lock type"),
    txn_id=or_else("txnid", 0),
    last_heartbeat_ms="lastheartbeat",
    acquired_at_ms="acquiredat",
    user="user",
    host="hostname",
    agent="agentInfo",
    blocked_by_lock_id="blockedByExtId",
    blocked_by_internal_id="blockedByIntId",
)
