"""Transactions and write ids: thrift structs to records and back."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from hms_bridge.errors import MetaError
from hms_bridge.model.ids import MAX_ID, TxnId, WriteId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.target import Target
from hms_bridge.model.txn import (
    AbortReason,
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitKeyValue,
    CommitTxnRequest,
    DynamicPartitions,
    HeartbeatRangeResult,
    OpenTxn,
    OpenTxns,
    OpenTxnsRequest,
    ReplLastId,
    TableWriteIdState,
    TxnInfo,
    TxnState,
    TxnToWriteId,
    TxnType,
    WriteEvent,
)
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive

_STATE_NUMBERS = {TxnState.COMMITTED: 1, TxnState.ABORTED: 2, TxnState.OPEN: 3}
_STATES = {number: state for state, number in _STATE_NUMBERS.items()}
_REASONS = {reason.code: reason for reason in AbortReason}
_OPERATIONS = {operation.number: operation for operation in DataOperation}
_FILE_SEPARATOR = "]"
_UNKNOWN_AGENT = "Unknown"


def bits_to_binary(bits: Sequence[bool]) -> bytes:
    """A Java BitSet: little-endian bits, no trailing zero bytes, empty for none set."""
    number = sum(1 << index for index, bit in enumerate(bits) if bit)
    return number.to_bytes((number.bit_length() + 7) // 8, "little")


def binary_to_bits(binary: bytes | None, count: int) -> tuple[bool, ...]:
    """The first ``count`` bits of a Java BitSet."""
    number = int.from_bytes(binary or b"", "little")
    return tuple(bool(number >> index & 1) for index in range(count))


def txn_type_from_number(number: int | None) -> TxnType | None:
    """None stays None. Raises MetaError for a type that no Hive has."""
    if number is None:
        return None
    try:
        return TxnType(number)
    except ValueError:
        raise MetaError(f"{number} is no transaction type; send one of 0 to 6") from None


def operation_from_number(number: int | None) -> DataOperation | None:
    """Unset and UNSET are None: the client told nothing. Raises MetaError for other numbers."""
    if number is None or number == DataOperation.UNSET.number:
        return None
    if number not in _OPERATIONS or number == DataOperation.COMPACT.number:
        raise MetaError(f"{number} is no data operation; send one of 1 to 6")
    return _OPERATIONS[number]


def open_request_from_struct(struct: Struct) -> OpenTxnsRequest:
    """From an OpenTxnRequest."""
    return OpenTxnsRequest(
        count=struct.num_txns or 0,
        user=struct.user or "",
        host=struct.hostname or "",
        agent=struct.agentInfo,
        type=txn_type_from_number(struct.txn_type) or TxnType.DEFAULT,
        repl_policy=struct.replPolicy,
        repl_source_txn_ids=tuple(TxnId(i) for i in struct.replSrcTxnIds or ()),
    )


def open_request_to_struct(request: OpenTxnsRequest) -> Struct:
    """An OpenTxnRequest."""
    return hive.OpenTxnRequest(
        num_txns=request.count,
        user=request.user,
        hostname=request.host,
        agentInfo=request.agent or _UNKNOWN_AGENT,
        replPolicy=request.repl_policy,
        replSrcTxnIds=list(request.repl_source_txn_ids) or None,
        txn_type=int(request.type),
    )


def open_txns_to_struct(txns: OpenTxns) -> Struct:
    """A GetOpenTxnsResponse."""
    return hive.GetOpenTxnsResponse(
        txn_high_water_mark=txns.high_watermark,
        open_txns=[txn.id for txn in txns.txns],
        min_open_txn=txns.min_open_txn,
        abortedBits=bits_to_binary([txn.state is TxnState.ABORTED for txn in txns.txns]),
    )


def open_txns_from_struct(struct: Struct) -> OpenTxns:
    """From a GetOpenTxnsResponse, which does not tell types.

    Raises MetaError for the form of Hive 2, a set without states.
    """
    if struct.open_txns is None:
        raise MetaError(
            "the metastore tells open transactions as Hive 2 does, without their states; use a "
            "metastore of Hive 3 or later"
        )
    aborted = binary_to_bits(struct.abortedBits, len(struct.open_txns))
    return OpenTxns(
        high_watermark=TxnId(struct.txn_high_water_mark),
        txns=tuple(
            OpenTxn(id=TxnId(i), state=TxnState.ABORTED if bit else TxnState.OPEN)
            for i, bit in zip(struct.open_txns, aborted, strict=True)
        ),
        min_open_txn=None if struct.min_open_txn is None else TxnId(struct.min_open_txn),
    )


def txn_info_to_struct(info: TxnInfo) -> Struct:
    """A TxnInfo struct."""
    return hive.TxnInfo(
        id=info.id,
        state=_STATE_NUMBERS[info.state],
        user=info.user,
        hostname=info.host,
        agentInfo=info.agent or _UNKNOWN_AGENT,
        metaInfo=info.meta,
        startedTime=info.started_ms,
        lastHeartbeatTime=info.last_heartbeat_ms,
    )


def txn_info_from_struct(struct: Struct) -> TxnInfo:
    """From a TxnInfo struct, which does not tell the type."""
    agent = struct.agentInfo
    return TxnInfo(
        id=TxnId(given(struct.id, "id")),
        state=_STATES[struct.state],
        user=struct.user,
        host=struct.hostname,
        agent=None if agent == _UNKNOWN_AGENT else agent,
        meta=struct.metaInfo,
        started_ms=struct.startedTime or 0,
        last_heartbeat_ms=struct.lastHeartbeatTime or 0,
    )


def commit_request_from_struct(struct: Struct) -> CommitTxnRequest:
    """From a CommitTxnRequest. ``exclWriteEnabled`` counts as true where it is not set."""
    return CommitTxnRequest(
        txn_id=TxnId(given(struct.txnid, "txnid")),
        type=txn_type_from_number(struct.txn_type),
        is_exclusive_write_enabled=struct.exclWriteEnabled is not False,
        repl_policy=struct.replPolicy,
        write_events=tuple(write_event_from_struct(e) for e in struct.writeEventInfos or ()),
        repl_last_id=_repl_last_id_from_struct(struct.replLastIdInfo),
        key_value=_key_value_from_struct(struct.keyValue),
    )


def commit_request_to_struct(request: CommitTxnRequest) -> Struct:
    """A CommitTxnRequest."""
    last, pair = request.repl_last_id, request.key_value
    return hive.CommitTxnRequest(
        txnid=request.txn_id,
        replPolicy=request.repl_policy,
        writeEventInfos=[write_event_to_struct(e) for e in request.write_events] or None,
        replLastIdInfo=last and hive.ReplLastIdInfo(
            database=last.database_name,
            lastReplId=last.last_repl_id,
            table=last.table_name,
            catalog=last.catalog_name,
            partitionList=list(last.partitions) or None,
        ),
        keyValue=pair
        and hive.CommitTxnKeyValue(tableId=pair.table_id, key=pair.key, value=pair.value),
        exclWriteEnabled=request.is_exclusive_write_enabled,
        txn_type=None if request.type is None else int(request.type),
    )  # fmt: skip


def abort_request_from_struct(struct: Struct) -> AbortTxnRequest:
    """From an AbortTxnRequest."""
    return AbortTxnRequest(
        txn_id=TxnId(given(struct.txnid, "txnid")),
        repl_policy=struct.replPolicy,
        type=txn_type_from_number(struct.txn_type),
        reason=abort_reason(struct.errorCode, AbortReason.NONE),
    )


def abort_request_to_struct(request: AbortTxnRequest) -> Struct:
    """An AbortTxnRequest."""
    return hive.AbortTxnRequest(
        txnid=request.txn_id,
        replPolicy=request.repl_policy,
        txn_type=None if request.type is None else int(request.type),
        errorCode=None if request.reason is AbortReason.NONE else request.reason.code,
    )


def abort_reason(code: int | None, default: AbortReason) -> AbortReason:
    """The reason of an error code; the default where none, or an unknown one, was sent."""
    return default if code is None else _REASONS.get(code, default)


def write_event_to_struct(event: WriteEvent) -> Struct:
    """A WriteEventInfo struct; its files are one text."""
    return hive.WriteEventInfo(
        writeId=event.write_id,
        database=event.target.database,
        table=event.target.table,
        files=_FILE_SEPARATOR.join(event.files),
        partition=event.partition,
        tableObj=event.table_object,
        partitionObj=event.partition_object,
    )


def write_event_from_struct(struct: Struct) -> WriteEvent:
    """From a WriteEventInfo struct."""
    files = (part.strip() for part in (struct.files or "").split(_FILE_SEPARATOR))
    return WriteEvent(
        write_id=WriteId(struct.writeId),
        target=Target(struct.database, struct.table, struct.partition or None),
        table_object=struct.tableObj or "",
        partition_object=struct.partitionObj,
        files=tuple(part for part in files if part),
    )


def allocate_request_from_struct(struct: Struct) -> AllocateWriteIdsRequest:
    """From an AllocateTableWriteIdsRequest."""
    return AllocateWriteIdsRequest(
        database_name=given_name(struct.dbName, "dbName"),
        table_name=given_name(struct.tableName, "tableName"),
        txn_ids=tuple(TxnId(i) for i in struct.txnIds or ()),
        is_reallocation=bool(struct.reallocate),
        repl_policy=struct.replPolicy,
        repl_source=pairs_from_structs(struct.srcTxnToWriteIdList or ()),
    )


def allocate_request_to_struct(request: AllocateWriteIdsRequest) -> Struct:
    """An AllocateTableWriteIdsRequest."""
    is_replayed = request.repl_policy is not None
    return hive.AllocateTableWriteIdsRequest(
        dbName=request.database_name,
        tableName=request.table_name,
        txnIds=None if is_replayed else list(request.txn_ids),
        replPolicy=request.repl_policy,
        srcTxnToWriteIdList=pairs_to_structs(request.repl_source) if is_replayed else None,
        reallocate=request.is_reallocation or None,
    )


def pairs_to_structs(pairs: Iterable[TxnToWriteId]) -> list[Struct]:
    """TxnToWriteId structs."""
    return [hive.TxnToWriteId(txnId=pair.txn_id, writeId=pair.write_id) for pair in pairs]


def pairs_from_structs(structs: Iterable[Struct]) -> tuple[TxnToWriteId, ...]:
    """From TxnToWriteId structs."""
    return tuple(
        TxnToWriteId(
            txn_id=TxnId(given(one.txnId, "txnId")), write_id=WriteId(given(one.writeId, "writeId"))
        )
        for one in structs
    )


def valid_write_ids_to_struct(valid: ValidWriteIdList) -> Struct:
    """A TableValidWriteIds struct."""
    aborted = frozenset(valid.aborted_ids)
    invalid = sorted((*valid.open_ids, *valid.aborted_ids))
    return hive.TableValidWriteIds(
        fullTableName=valid.table,
        writeIdHighWaterMark=valid.high_watermark,
        invalidWriteIds=invalid,
        minOpenWriteId=None if valid.min_open == MAX_ID else valid.min_open,
        abortedBits=bits_to_binary([write_id in aborted for write_id in invalid]),
    )


def valid_write_ids_from_struct(struct: Struct) -> ValidWriteIdList:
    """From a TableValidWriteIds struct."""
    ids = [WriteId(i) for i in struct.invalidWriteIds]
    bits = binary_to_bits(struct.abortedBits, len(ids))
    pairs = list(zip(ids, bits, strict=True))
    return ValidWriteIdList(
        table=struct.fullTableName,
        high_watermark=WriteId(struct.writeIdHighWaterMark),
        min_open=WriteId(MAX_ID if struct.minOpenWriteId is None else struct.minOpenWriteId),
        open_ids=tuple(i for i, is_aborted in pairs if not is_aborted),
        aborted_ids=tuple(i for i, is_aborted in pairs if is_aborted),
    )


def dynamic_partitions_from_struct(struct: Struct) -> DynamicPartitions:
    """From an AddDynamicPartitions struct."""
    return DynamicPartitions(
        txn_id=TxnId(given(struct.txnid, "txnid")),
        write_id=WriteId(given(struct.writeid, "writeid")),
        database_name=given_name(struct.dbname, "dbname"),
        table_name=given_name(struct.tablename, "tablename"),
        partition_names=tuple(given(struct.partitionnames, "partitionnames")),
        operation=operation_from_number(struct.operationType),
    )


def dynamic_partitions_to_struct(partitions: DynamicPartitions) -> Struct:
    """An AddDynamicPartitions struct."""
    operation = partitions.operation or DataOperation.UNSET
    return hive.AddDynamicPartitions(
        txnid=partitions.txn_id,
        writeid=partitions.write_id,
        dbname=partitions.database_name,
        tablename=partitions.table_name,
        partitionnames=list(partitions.partition_names),
        operationType=operation.number,
    )


def write_id_state_from_struct(struct: Struct) -> TableWriteIdState:
    """From a ReplTblWriteIdStateRequest."""
    return TableWriteIdState(
        valid_write_ids=struct.validWriteIdlist,
        user=struct.user,
        host=struct.hostName,
        database_name=given_name(struct.dbName, "dbName"),
        table_name=given_name(struct.tableName, "tableName"),
        partition_names=tuple(struct.partNames or ()),
    )


def write_id_state_to_struct(state: TableWriteIdState) -> Struct:
    """A ReplTblWriteIdStateRequest."""
    return hive.ReplTblWriteIdStateRequest(
        validWriteIdlist=state.valid_write_ids,
        user=state.user,
        hostName=state.host,
        dbName=state.database_name,
        tableName=state.table_name,
        partNames=list(state.partition_names) or None,
    )


def heartbeat_range_to_struct(result: HeartbeatRangeResult) -> Struct:
    """A HeartbeatTxnRangeResponse."""
    return hive.HeartbeatTxnRangeResponse(aborted=set(result.aborted), nosuch=set(result.missing))


def heartbeat_range_from_struct(struct: Struct) -> HeartbeatRangeResult:
    """From a HeartbeatTxnRangeResponse."""
    return HeartbeatRangeResult(
        aborted=tuple(sorted(struct.aborted)), missing=tuple(sorted(struct.nosuch))
    )


def _repl_last_id_from_struct(struct: Any) -> ReplLastId | None:
    if struct is None:
        return None
    return ReplLastId(
        database_name=given_name(struct.database, "database"),
        last_repl_id=struct.lastReplId,
        table_name=struct.table.lower() if struct.table else None,
        partitions=tuple(struct.partitionList or ()),
        catalog_name=struct.catalog,
    )


def _key_value_from_struct(struct: Any) -> CommitKeyValue | None:
    if struct is None:
        return None
    return CommitKeyValue(
        table_id=given(struct.tableId, "tableId"),
        key=given(struct.key, "key"),
        value=given(struct.value, "value"),
    )
