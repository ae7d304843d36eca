"""The compaction queue: thrift structs to records and back."""

from __future__ import annotations

from dataclasses import replace

from hms_bridge.model.compaction import (
    Compaction,
    CompactionRequest,
    CompactionResponse,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.property_text import format_properties, parse_properties
from hms_bridge.model.target import Scope, Target
from hms_bridge.wire.fields import (
    Entry,
    Values,
    both_ways,
    member,
    name,
    name_or_none,
    or_else,
    or_none,
    required,
    spread,
    truth,
    zero,
)
from hms_bridge.wire.structs import Struct

_TYPES = {kind.number: kind for kind in CompactionType}
_STATES_BY_WORD = {state.word: state for state in CompactionState}
_STATES_BY_CHARACTER = {state.stored: state for state in CompactionState}
_REFUSED_ID = -1
_NO_JOB = "None"
"""What a client of Hive's reads where no job was sent: the default of that field, which no sender
can take away. A HiveServer2 with the metastore inside shows blanks there."""
DEFAULT_POOL = "default"
"""Hive's word for no pool, in answers."""


def _positive(number: int | None) -> int | None:
    return number if number is not None and number > 0 else None


def _known_state(text: str) -> CompactionState | None:
    return _STATES_BY_WORD.get(text.lower()) or _STATES_BY_CHARACTER.get(text.lower())


def _state_of(text: str) -> CompactionState:
    state = _known_state(text)
    if state is None:
        known = ", ".join(_STATES_BY_WORD)
        raise ValueError(f"is {text!r}, which is no state of a compaction; give one of {known}")
    return state


def _without_refused_id(values: Values) -> None:
    if not values["is_accepted"]:
        values["id"] = None


_TARGET = spread(
    Target,
    database=name("dbname"),
    table=name("tablename"),
    partition=or_none("partitionname"),
)

compaction_request_to_struct, compaction_request_from_struct = both_ways(
    CompactionRequest,
    "CompactionRequest",
    target=_TARGET,
    type=member("type", _TYPES, "compaction type"),
    run_as="runas",
    properties=Entry(
        "properties",
        lambda properties: properties or {},
        lambda properties: dict(properties) or None,
    ),
    initiator_id="initiatorId",
    initiator_version="initiatorVersion",
    pool_name=or_none("poolName"),
    bucket_count=or_none("numberOfBuckets"),
    order_by=or_none("orderByClause"),
)
compaction_response_to_struct, compaction_response_from_struct = both_ways(
    CompactionResponse,
    "CompactionResponse",
    id=Entry("id", write=lambda value: _REFUSED_ID if value is None else value),
    is_accepted="accepted",
    state="state",
    error_message="errormessage",
    finish=_without_refused_id,
)
# What a worker is handed and gives back. Hive's own workers send a NUL for the state.
compaction_info_to_struct, compaction_info_from_struct = both_ways(
    Compaction,
    "CompactionInfoStruct",
    id=required("id"),
    target=_TARGET,
    type=member("type", _TYPES, "compaction type"),
    state=Entry(
        "state",
        lambda character: _STATES_BY_CHARACTER.get(character, CompactionState.WORKING),
        lambda state: state.stored,
    ),
    properties=Entry(
        "properties",
        parse_properties,
        lambda properties: format_properties(properties) if properties else None,
    ),
    worker_id="workerId",
    enqueued_ms=zero("enqueueTime"),
    started_ms=zero("start"),
    run_as="runas",
    highest_write_id=zero("highestWriteId"),
    error_message="errorMessage",
    retry_retention_ms=or_else("retryRetention", 0),
    pool_name=or_none("poolname"),
    bucket_count=zero("numberOfBuckets"),
    order_by=or_none("orderByClause"),
    has_too_many_aborts=truth("toomanyaborts"),
    has_old_abort=truth("hasoldabort"),
)
# Without the wish for an ``order``, which Hive splices into SQL (docs/hive/metastore.md §11).
show_request_to_struct, show_request_from_struct = both_ways(
    ShowCompactionsRequest,
    "ShowCompactRequest",
    id=or_none("id"),
    scope=spread(
        Scope,
        database=name_or_none("dbName"),
        table=name_or_none("tbName"),
        partition=or_none("partName"),
    ),
    pool_name=or_none("poolName"),
    type=member("type", {None: None, **_TYPES}, "compaction type"),
    state=Entry(
        "state",
        lambda text: _state_of(text) if text else None,
        lambda state: None if state is None else state.stored,
    ),
    limit=Entry("limit", _positive),
)
# 0 and -1 stand for "none" there.
_element_to_struct, _element_from_struct = both_ways(
    Compaction,
    "ShowCompactResponseElement",
    id=or_else("id", 0),
    target=spread(Target, database="dbname", table="tablename", partition="partitionname"),
    type=member("type", _TYPES, "compaction type"),
    # A metastore may show what a newer one wrote.
    state=Entry(
        "state",
        lambda text: _known_state(text) or CompactionState.UNKNOWN,
        lambda state: state.word,
    ),
    worker_id="workerid",
    worker_version="workerVersion",
    initiator_id="initiatorId",
    initiator_version="initiatorVersion",
    enqueued_ms=Entry("enqueueTime", _positive),
    started_ms=Entry("start", _positive),
    ended_ms=Entry("endTime", _positive),
    committed_ms=Entry("commitTime", _positive, lambda time_ms: time_ms or 0),
    cleaner_started_ms=Entry("cleanerStart", _positive),
    run_as="runAs",
    highest_write_id=or_none("hightestWriteId"),
    txn_id=zero("txnId"),
    next_txn_id=zero("nextTxnId"),
    hadoop_job_id=Entry("hadoopJobId", lambda job: None if job == _NO_JOB else job),
    error_message="errorMessage",
    pool_name=Entry("poolName", write=lambda pool: pool or DEFAULT_POOL),
)


def compaction_to_element(compaction: Compaction) -> Struct:
    """A ShowCompactResponseElement. Hive sends the highest write id in ``hightestTxnId`` too."""
    struct = _element_to_struct(compaction)
    vars(struct)["hightestTxnId"] = compaction.highest_write_id or 0
    return struct


def compaction_from_element(struct: Struct) -> Compaction:
    """From a ShowCompactResponseElement."""
    compaction = _element_from_struct(struct)
    highest = compaction.highest_write_id or struct.hightestTxnId or None
    return replace(compaction, highest_write_id=highest)
