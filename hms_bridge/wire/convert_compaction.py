"""The compaction queue: thrift structs to records and back."""

from __future__ import annotations

from collections.abc import Mapping

from hms_bridge.errors import MetaError
from hms_bridge.model.compaction import (
    Compaction,
    CompactionRequest,
    CompactionResponse,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.ids import CompactionId, TxnId, WriteId
from hms_bridge.model.target import Scope, Target
from hms_bridge.wire.required import given, given_name
from hms_bridge.wire.structs import Struct, hive

_TYPES = {kind.number: kind for kind in CompactionType}
_STATES_BY_WORD = {state.word: state for state in CompactionState}
_STATES_BY_CHARACTER = {state.stored: state for state in CompactionState}
_REFUSED_ID = -1
_NO_JOB = "None"
"""What a client of Hive's reads where no job was sent: the default of that field, which no sender
can take away. A HiveServer2 with the metastore inside shows blanks there."""
DEFAULT_POOL = "default"
"""Hive's word for no pool, in answers."""


def compaction_request_from_struct(struct: Struct) -> CompactionRequest:
    """From a CompactionRequest. Raises MetaError for an unknown type."""
    return CompactionRequest(
        target=Target(
            given_name(struct.dbname, "dbname"),
            given_name(struct.tablename, "tablename"),
            struct.partitionname or None,
        ),
        type=_type_of(struct.type),
        run_as=struct.runas,
        properties=struct.properties or {},
        initiator_id=struct.initiatorId,
        initiator_version=struct.initiatorVersion,
        pool_name=struct.poolName or None,
        bucket_count=struct.numberOfBuckets or None,
        order_by=struct.orderByClause or None,
    )


def compaction_request_to_struct(request: CompactionRequest) -> Struct:
    """A CompactionRequest."""
    return hive.CompactionRequest(
        dbname=request.target.database,
        tablename=request.target.table,
        partitionname=request.target.partition,
        type=request.type.number,
        runas=request.run_as,
        properties=dict(request.properties) or None,
        initiatorId=request.initiator_id,
        initiatorVersion=request.initiator_version,
        poolName=request.pool_name,
        numberOfBuckets=request.bucket_count,
        orderByClause=request.order_by,
    )


def compaction_response_to_struct(response: CompactionResponse) -> Struct:
    """A CompactionResponse; a refused request has the id -1."""
    return hive.CompactionResponse(
        id=_REFUSED_ID if response.id is None else response.id,
        state=response.state,
        accepted=response.is_accepted,
        errormessage=response.error_message,
    )


def compaction_response_from_struct(struct: Struct) -> CompactionResponse:
    """From a CompactionResponse."""
    return CompactionResponse(
        id=CompactionId(struct.id) if struct.accepted else None,
        is_accepted=struct.accepted,
        state=struct.state,
        error_message=struct.errormessage,
    )


def compaction_info_to_struct(compaction: Compaction) -> Struct:
    """A CompactionInfoStruct: what a worker is handed and gives back."""
    return hive.CompactionInfoStruct(
        id=compaction.id,
        dbname=compaction.target.database,
        tablename=compaction.target.table,
        partitionname=compaction.target.partition,
        type=compaction.type.number,
        runas=compaction.run_as,
        properties=properties_to_text(compaction.properties) if compaction.properties else None,
        toomanyaborts=compaction.has_too_many_aborts,
        state=compaction.state.stored,
        workerId=compaction.worker_id,
        start=compaction.started_ms or 0,
        highestWriteId=compaction.highest_write_id or 0,
        errorMessage=compaction.error_message,
        hasoldabort=compaction.has_old_abort,
        enqueueTime=compaction.enqueued_ms or 0,
        retryRetention=compaction.retry_retention_ms,
        poolname=compaction.pool_name,
        numberOfBuckets=compaction.bucket_count or 0,
        orderByClause=compaction.order_by,
    )


def compaction_info_from_struct(struct: Struct) -> Compaction:
    """From a CompactionInfoStruct. Hive's own workers send a NUL for the state."""
    return Compaction(
        id=CompactionId(given(struct.id, "id")),
        target=Target(
            given_name(struct.dbname, "dbname"),
            given_name(struct.tablename, "tablename"),
            struct.partitionname or None,
        ),
        type=_type_of(struct.type),
        state=_STATES_BY_CHARACTER.get(struct.state, CompactionState.WORKING),
        properties=properties_from_text(struct.properties),
        worker_id=struct.workerId,
        enqueued_ms=struct.enqueueTime or None,
        started_ms=struct.start or None,
        run_as=struct.runas,
        highest_write_id=WriteId(struct.highestWriteId) if struct.highestWriteId else None,
        error_message=struct.errorMessage,
        retry_retention_ms=struct.retryRetention or 0,
        pool_name=struct.poolname or None,
        bucket_count=struct.numberOfBuckets or None,
        order_by=struct.orderByClause or None,
        has_too_many_aborts=bool(struct.toomanyaborts),
        has_old_abort=bool(struct.hasoldabort),
    )


def show_request_from_struct(struct: Struct) -> ShowCompactionsRequest:
    """From a ShowCompactRequest; its ``order`` is not used, since Hive splices it into SQL
    (docs/hive/metastore.md §11)."""
    return ShowCompactionsRequest(
        id=CompactionId(struct.id) if struct.id else None,
        scope=Scope(
            struct.dbName.lower() if struct.dbName else None,
            struct.tbName.lower() if struct.tbName else None,
            struct.partName or None,
        ),
        pool_name=struct.poolName or None,
        type=None if struct.type is None else _type_of(struct.type),
        state=_state_of(struct.state) if struct.state else None,
        limit=struct.limit if struct.limit and struct.limit > 0 else None,
    )


def show_request_to_struct(request: ShowCompactionsRequest | None) -> Struct:
    """A ShowCompactRequest; Hive takes the state as its character."""
    wanted = request or ShowCompactionsRequest()
    return hive.ShowCompactRequest(
        id=wanted.id,
        poolName=wanted.pool_name,
        dbName=wanted.scope.database,
        tbName=wanted.scope.table,
        partName=wanted.scope.partition,
        type=None if wanted.type is None else wanted.type.number,
        state=None if wanted.state is None else wanted.state.stored,
        limit=wanted.limit,
    )


def compaction_to_element(compaction: Compaction) -> Struct:
    """A ShowCompactResponseElement. Hive tells the highest write id in ``hightestTxnId``."""
    return hive.ShowCompactResponseElement(
        dbname=compaction.target.database,
        tablename=compaction.target.table,
        partitionname=compaction.target.partition,
        type=compaction.type.number,
        state=compaction.state.word,
        workerid=compaction.worker_id,
        start=compaction.started_ms,
        runAs=compaction.run_as,
        hightestTxnId=compaction.highest_write_id or 0,
        endTime=compaction.ended_ms,
        hadoopJobId=compaction.hadoop_job_id,
        id=compaction.id,
        errorMessage=compaction.error_message,
        enqueueTime=compaction.enqueued_ms,
        workerVersion=compaction.worker_version,
        initiatorId=compaction.initiator_id,
        initiatorVersion=compaction.initiator_version,
        cleanerStart=compaction.cleaner_started_ms,
        poolName=compaction.pool_name or DEFAULT_POOL,
        nextTxnId=compaction.next_txn_id or 0,
        txnId=compaction.txn_id or 0,
        commitTime=compaction.committed_ms or 0,
        hightestWriteId=compaction.highest_write_id,
    )


def compaction_from_element(struct: Struct) -> Compaction:
    """From a ShowCompactResponseElement; 0 and -1 stand for "none" there."""
    highest = struct.hightestWriteId or struct.hightestTxnId
    return Compaction(
        id=CompactionId(struct.id or 0),
        target=Target(struct.dbname, struct.tablename, struct.partitionname),
        type=_type_of(struct.type),
        state=_state_of(struct.state),
        worker_id=struct.workerid,
        worker_version=struct.workerVersion,
        initiator_id=struct.initiatorId,
        initiator_version=struct.initiatorVersion,
        enqueued_ms=_positive(struct.enqueueTime),
        started_ms=_positive(struct.start),
        ended_ms=_positive(struct.endTime),
        committed_ms=_positive(struct.commitTime),
        cleaner_started_ms=_positive(struct.cleanerStart),
        run_as=struct.runAs,
        highest_write_id=WriteId(highest) if highest else None,
        txn_id=TxnId(struct.txnId) if struct.txnId else None,
        next_txn_id=TxnId(struct.nextTxnId) if struct.nextTxnId else None,
        hadoop_job_id=None if struct.hadoopJobId == _NO_JOB else struct.hadoopJobId,
        error_message=struct.errorMessage,
        pool_name=struct.poolName,
    )


def properties_to_text(properties: Mapping[str, str]) -> str:
    """Hive's StringableMap: ``count:`` then ``length:text`` of each key and value in turn."""
    parts = [f"{len(properties)}:"]
    for key, value in properties.items():
        parts.append(f"{len(key)}:{key}{len(value)}:{value}")
    return "".join(parts)


def properties_from_text(text: str | None) -> dict[str, str]:
    """The inverse; None and "" are no properties. Raises MetaError for other texts."""
    if not text:
        return {}
    try:
        count, position = _number_at(text, 0)
        properties = {}
        for _ in range(count):
            key, position = _text_at(text, position)
            properties[key], position = _text_at(text, position)
    except ValueError as error:
        raise MetaError(
            f"compaction properties {text!r} are malformed; write them as 1:3:key5:value"
        ) from error
    return properties


def _text_at(text: str, position: int) -> tuple[str, int]:
    length, start = _number_at(text, position)
    if length < 0 or start + length > len(text):
        raise ValueError("text ends early")
    return text[start : start + length], start + length


def _number_at(text: str, position: int) -> tuple[int, int]:
    end = text.index(":", position)
    return int(text[position:end]), end + 1


def _positive(number: int | None) -> int | None:
    return number if number is not None and number > 0 else None


def _type_of(number: int | None) -> CompactionType:
    if number not in _TYPES:
        raise MetaError(f"{number} is no compaction type; send one of 1 to 4")
    return _TYPES[number]


def _state_of(text: str) -> CompactionState:
    state = _STATES_BY_WORD.get(text.lower()) or _STATES_BY_CHARACTER.get(text.lower())
    if state is None:
        known = ", ".join(_STATES_BY_WORD)
        raise MetaError(f"{text!r} is no state of a compaction; give one of {known}")
    return state
