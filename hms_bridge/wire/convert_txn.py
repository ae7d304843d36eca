"""Transactions and write ids: thrift structs to records and back."""

from __future__ import annotations

from collections.abc import Sequence

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
    OpenTxnRows,
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
from hms_bridge.wire.fields import (
    Entry,
    both_ways,
    each,
    inner,
    items,
    items_or_unset,
    member,
    name,
    name_or_none,
    optional_items,
    or_else,
    required,
    sent,
    spread,
)
from hms_bridge.wire.structs import Struct, hive

_STATES = {1: TxnState.COMMITTED, 2: TxnState.ABORTED, 3: TxnState.OPEN}
_TYPES = {int(kind): kind for kind in TxnType}
_REASONS = {reason.code: reason for reason in AbortReason}
_UNSET = DataOperation.UNSET.number
_FILE_SEPARATOR = "]"
_UNKNOWN_AGENT = "Unknown"


def bits_to_binary(bits: Sequence[bool]) -> bytes:
    """A Java BitSet: little-endian bits, no trailing zero bytes, empty for none set."""
    if not any(bits):
        return b""
    number = int("".join(["1" if bit else "0" for bit in reversed(bits)]), 2)
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


def operation(attribute: str, none: DataOperation | None = None) -> Entry:
    """What is done. None for unset and for UNSET: the client said nothing; ``none`` is sent for
    it."""
    known = {kind.number: kind for kind in DataOperation if kind is not DataOperation.COMPACT}
    entry = member(attribute, {**known, _UNSET: None, None: None}, "data operation")
    return Entry(attribute, entry.read, lambda kind: getattr(kind or none, "number", None))


def agent(attribute: str) -> Entry:
    """Which program asks; Hive needs a text."""
    return Entry(attribute, write=lambda value: value or _UNKNOWN_AGENT)


def _files_of(text: str | None) -> tuple[str, ...]:
    files = (part.strip() for part in (text or "").split(_FILE_SEPARATOR))
    return tuple(part for part in files if part)


def abort_reason(code: int | None, default: AbortReason) -> AbortReason:
    """The reason of an error code; the default where none, or an unknown one, was sent."""
    return default if code is None else _REASONS.get(code, default)


_TYPE = member("txn_type", {None: None, **_TYPES}, "transaction type")

open_request_to_struct, open_request_from_struct = both_ways(
    OpenTxnsRequest,
    "OpenTxnRequest",
    count=or_else("num_txns", 0),
    user=or_else("user", ""),
    host=or_else("hostname", ""),
    agent=agent("agentInfo"),
    type=member("txn_type", {None: TxnType.DEFAULT, **_TYPES}, "transaction type"),
    repl_policy="replPolicy",
    repl_source_txn_ids=items_or_unset("replSrcTxnIds"),
)
txn_info_to_struct, txn_info_from_struct = both_ways(
    TxnInfo,
    "TxnInfo",  # which does not have the type
    id=required("id"),
    state=member("state", _STATES, "state of a transaction"),
    user="user",
    host="hostname",
    agent=Entry(
        "agentInfo",
        lambda value: None if value == _UNKNOWN_AGENT else value,
        lambda value: value or _UNKNOWN_AGENT,
    ),
    meta="metaInfo",
    started_ms=or_else("startedTime", 0),
    last_heartbeat_ms=or_else("lastHeartbeatTime", 0),
)
write_event_to_struct, write_event_from_struct = both_ways(
    WriteEvent,
    "WriteEventInfo",
    write_id=required("writeId"),
    target=spread(
        Target,
        database=required("database"),
        table=required("table"),
        partition=Entry("partition", lambda text: text or None, lambda text: text or ""),
    ),
    table_object=or_else("tableObj", ""),
    partition_object="partitionObj",
    files=Entry("files", _files_of, _FILE_SEPARATOR.join),
)
_REPL_LAST_ID = both_ways(
    ReplLastId,
    "ReplLastIdInfo",
    database_name=name("database"),
    last_repl_id=required("lastReplId"),
    table_name=name_or_none("table"),
    partitions=items_or_unset("partitionList"),
    catalog_name="catalog",
)
_KEY_VALUE = both_ways(
    CommitKeyValue,
    "CommitTxnKeyValue",
    table_id=required("tableId"),
    key=required("key"),
    value=required("value"),
)
commit_request_to_struct, commit_request_from_struct = both_ways(
    CommitTxnRequest,
    "CommitTxnRequest",
    txn_id=required("txnid"),
    type=_TYPE,
    # It counts as true where it is not set.
    is_exclusive_write_enabled=Entry("exclWriteEnabled", lambda value: value is not False),
    repl_policy="replPolicy",
    write_events=each("writeEventInfos", (write_event_to_struct, write_event_from_struct)),
    repl_last_id=inner("replLastIdInfo", _REPL_LAST_ID),
    key_value=inner("keyValue", _KEY_VALUE),
)
abort_request_to_struct, abort_request_from_struct = both_ways(
    AbortTxnRequest,
    "AbortTxnRequest",
    txn_id=required("txnid"),
    repl_policy="replPolicy",
    type=_TYPE,
    reason=Entry(
        "errorCode",
        lambda code: abort_reason(code, AbortReason.NONE),
        lambda reason: None if reason is AbortReason.NONE else reason.code,
    ),
)
pair_to_struct, pair_from_struct = both_ways(
    TxnToWriteId, "TxnToWriteId", txn_id=required("txnId"), write_id=required("writeId")
)
_allocate_to_struct, allocate_request_from_struct = both_ways(
    AllocateWriteIdsRequest,
    "AllocateTableWriteIdsRequest",
    database_name=name("dbName"),
    table_name=name("tableName"),
    txn_ids=items("txnIds"),
    is_reallocation=Entry("reallocate", bool, lambda value: value or None),
    repl_policy="replPolicy",
    repl_source=each("srcTxnToWriteIdList", (pair_to_struct, pair_from_struct), is_sent_empty=True),
)
dynamic_partitions_to_struct, dynamic_partitions_from_struct = both_ways(
    DynamicPartitions,
    "AddDynamicPartitions",
    txn_id=required("txnid"),
    write_id=required("writeid"),
    database_name=name("dbname"),
    table_name=name("tablename"),
    partition_names=Entry("partitionnames", lambda names: tuple(sent(names)), list),
    operation=operation("operationType", DataOperation.UNSET),
)
write_id_state_to_struct, write_id_state_from_struct = both_ways(
    TableWriteIdState,
    "ReplTblWriteIdStateRequest",
    valid_write_ids=required("validWriteIdlist"),
    user=required("user"),
    host=required("hostName"),
    database_name=name("dbName"),
    table_name=name("tableName"),
    partition_names=optional_items("partNames"),
)
heartbeat_range_to_struct, heartbeat_range_from_struct = both_ways(
    HeartbeatRangeResult,
    "HeartbeatTxnRangeResponse",
    aborted=Entry("aborted", lambda ids: tuple(sorted(ids)), set),
    missing=Entry("nosuch", lambda ids: tuple(sorted(ids)), set),
)


def allocate_request_to_struct(request: AllocateWriteIdsRequest) -> Struct:
    """An AllocateTableWriteIdsRequest: of transactions of ours, or of replayed ones."""
    struct = _allocate_to_struct(request)
    del vars(struct)["srcTxnToWriteIdList" if request.repl_policy is None else "txnIds"]
    return struct


def open_txn_rows_to_struct(txns: OpenTxnRows) -> Struct:
    """A GetOpenTxnsResponse."""
    aborted = TxnState.ABORTED.value
    return hive.GetOpenTxnsResponse(
        txn_high_water_mark=txns.high_watermark,
        open_txns=[row[0] for row in txns.rows],
        min_open_txn=txns.min_open_txn,
        abortedBits=bits_to_binary([row[1] == aborted for row in txns.rows]),
    )


def open_txns_from_struct(struct: Struct) -> OpenTxns:
    """From a GetOpenTxnsResponse, which does not have types.

    Raises MetaError for the form of Hive 2, a set without states.
    """
    if struct.open_txns is None:
        raise MetaError(
            "the metastore lists open transactions as Hive 2 does, without their states; use a "
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
