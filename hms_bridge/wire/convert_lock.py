"""Locks: thrift structs to records and back."""

from __future__ import annotations

from typing import TypeVar

from hms_bridge.errors import MetaError
from hms_bridge.model.ids import LockId, TxnId
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
from hms_bridge.wire.convert_txn import operation_from_number
from hms_bridge.wire.required import given_name
from hms_bridge.wire.structs import Struct, hive

_TYPES = {kind.number: kind for kind in LockType}
_LEVELS = {int(level): level for level in LockLevel}
_STATES = {state.number: state for state in LockState}
_UNKNOWN_AGENT = "Unknown"

EnumT = TypeVar("EnumT")


def lock_request_from_struct(struct: Struct) -> LockRequest:
    """From a LockRequest. Raises MetaError for numbers that Hive does not have."""
    return LockRequest(
        components=tuple(lock_component_from_struct(c) for c in struct.component or ()),
        txn_id=TxnId(struct.txnid or 0),
        user=struct.user or "",
        host=struct.hostname or "",
        agent=struct.agentInfo,
        is_zero_wait_read=bool(struct.zeroWaitReadEnabled),
        is_exclusive_ctas=bool(struct.exclusiveCTAS),
    )


def lock_request_to_struct(request: LockRequest) -> Struct:
    """A LockRequest."""
    return hive.LockRequest(
        component=[lock_component_to_struct(c) for c in request.components],
        txnid=request.txn_id or None,
        user=request.user,
        hostname=request.host,
        agentInfo=request.agent or _UNKNOWN_AGENT,
        zeroWaitReadEnabled=request.is_zero_wait_read,
        exclusiveCTAS=request.is_exclusive_ctas,
    )


def lock_component_from_struct(struct: Struct) -> LockComponent:
    """From a LockComponent; None for an operation or a "transactional" that was not set."""
    return LockComponent(
        type=_of_number(_TYPES, struct.type, "lock type"),
        level=_of_number(_LEVELS, struct.level, "lock level"),
        scope=Scope(
            given_name(struct.dbname, "dbname"),
            struct.tablename.lower() if struct.tablename else None,
            struct.partitionname or None,
        ),
        operation=operation_from_number(struct.operationType),
        is_transactional=struct.isTransactional,
        is_dynamic_partition_write=bool(struct.isDynamicPartitionWrite),
    )


def lock_component_to_struct(component: LockComponent) -> Struct:
    """A LockComponent; what is None is not sent."""
    operation = component.operation
    return hive.LockComponent(
        type=component.type.number,
        level=int(component.level),
        dbname=component.scope.database,
        tablename=component.scope.table,
        partitionname=component.scope.partition,
        operationType=None if operation is None else operation.number,
        isTransactional=component.is_transactional,
        isDynamicPartitionWrite=component.is_dynamic_partition_write,
    )


def lock_response_to_struct(response: LockResponse) -> Struct:
    """A LockResponse struct."""
    return hive.LockResponse(
        lockid=response.lock_id,
        state=response.state.number,
        errorMessage=response.error_message,
    )


def lock_response_from_struct(struct: Struct) -> LockResponse:
    """From a LockResponse struct."""
    return LockResponse(
        lock_id=LockId(struct.lockid),
        state=_of_number(_STATES, struct.state, "lock state"),
        error_message=struct.errorMessage,
    )


def lock_filter_from_struct(struct: Struct) -> LockFilter:
    """From a ShowLocksRequest."""
    return LockFilter(
        scope=Scope(
            struct.dbname.lower() if struct.dbname else None,
            struct.tablename.lower() if struct.tablename else None,
            struct.partname or None,
        ),
        txn_id=TxnId(struct.txnid) if struct.txnid else None,
    )


def lock_filter_to_struct(lock_filter: LockFilter | None) -> Struct:
    """A ShowLocksRequest."""
    wanted = lock_filter or LockFilter()
    return hive.ShowLocksRequest(
        dbname=wanted.scope.database,
        tablename=wanted.scope.table,
        partname=wanted.scope.partition,
        isExtended=False,
        txnid=wanted.txn_id,
    )


def lock_info_to_struct(info: LockInfo) -> Struct:
    """A ShowLocksResponseElement."""
    return hive.ShowLocksResponseElement(
        lockid=info.lock_id,
        dbname=info.scope.database,
        tablename=info.scope.table,
        partname=info.scope.partition,
        state=info.state.number,
        type=info.type.number,
        txnid=info.txn_id,
        lastheartbeat=info.last_heartbeat_ms,
        acquiredat=info.acquired_at_ms,
        user=info.user,
        hostname=info.host,
        agentInfo=info.agent,
        blockedByExtId=info.blocked_by_lock_id,
        blockedByIntId=info.blocked_by_internal_id,
        lockIdInternal=info.internal_id,
    )


def lock_info_from_struct(struct: Struct) -> LockInfo:
    """From a ShowLocksResponseElement."""
    blocked_by = struct.blockedByExtId
    return LockInfo(
        lock_id=LockId(struct.lockid),
        internal_id=struct.lockIdInternal or 0,
        scope=Scope(struct.dbname, struct.tablename, struct.partname),
        state=_of_number(_STATES, struct.state, "lock state"),
        type=_of_number(_TYPES, struct.type, "lock type"),
        txn_id=TxnId(struct.txnid or 0),
        last_heartbeat_ms=struct.lastheartbeat,
        acquired_at_ms=struct.acquiredat,
        user=struct.user,
        host=struct.hostname,
        agent=struct.agentInfo,
        blocked_by_lock_id=None if blocked_by is None else LockId(blocked_by),
        blocked_by_internal_id=struct.blockedByIntId,
    )


def _of_number(members: dict[int, EnumT], number: int | None, what: str) -> EnumT:
    if number not in members:
        known = ", ".join(str(one) for one in sorted(members))
        raise MetaError(f"{number} is no {what}; send one of {known}")
    return members[number]
