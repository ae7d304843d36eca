"""Records of transactions and write ids. Times are milliseconds since the epoch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum, StrEnum
from typing import Any

from changemanager.clock import span_text
from hms_bridge.model.ids import NO_TXN, TxnId, WriteId
from hms_bridge.model.lock import DataOperation
from hms_bridge.model.target import Target
from hms_bridge.model.valid_ids import ValidTxnList


class TxnState(StrEnum):
    """State of a transaction; the character is stored in TXNS.TXN_STATE."""

    OPEN = "o"
    ABORTED = "a"
    COMMITTED = "c"


class TxnType(IntEnum):
    """Kind of a transaction; the number is stored in TXNS.TXN_TYPE and stands on the wire."""

    DEFAULT = 0
    REPL_CREATED = 1
    READ_ONLY = 2
    COMPACTION = 3
    MATER_VIEW_REBUILD = 4
    SOFT_DELETE = 5
    REBALANCE_COMPACTION = 6

    @property
    def is_compaction(self) -> bool:
        """Whether its directories bear its id, and no write id of its own."""
        return self in (TxnType.COMPACTION, TxnType.REBALANCE_COMPACTION)


class AbortReason(Enum):
    """Why a transaction was aborted: Hive's TxnErrorMsg code and the text in TXN_META_INFO."""

    NONE = (50000, "")
    QUERY = (50001, "Abort by query command")
    CONCURRENT = (50002, "concurrent committed transaction")
    WRITE_CONFLICT = (50003, "write conflicts")
    TIMEOUT = (50004, "heartbeat time-out")
    ROLLBACK = (50005, "rollback")
    COMPACTION = (50006, "compaction transaction abort")
    MSCK = (50007, "msck transaction abort")
    MIGRATION = (50008, "managed migration transaction abort")
    REPL_DEFAULT = (51000, "Replication:default replication transaction abort")
    REPL_WRITE_ID = (51001, "Replication:repl write id transaction abort")

    @property
    def code(self) -> int:
        """The number on the wire."""
        return self.value[0]

    @property
    def text(self) -> str:
        """What TXN_META_INFO of an aborted transaction says."""
        return self.value[1]


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenTxnsRequest:
    """Open ``count`` transactions. With ``repl_policy``: one for each source transaction, once."""

    count: int = 1
    user: str
    host: str
    agent: str | None = None
    type: TxnType = TxnType.DEFAULT
    repl_policy: str | None = None
    repl_source_txn_ids: tuple[TxnId, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenTxn:
    """One entry of the open-transactions list: open or aborted."""

    id: TxnId
    state: TxnState
    type: TxnType = TxnType.DEFAULT


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenTxns:
    """What get_open_txns answers. ``min_open_txn`` counts read-only transactions too."""

    high_watermark: TxnId
    txns: tuple[OpenTxn, ...]
    min_open_txn: TxnId | None = None

    def snapshot(self, current_txn: TxnId = NO_TXN) -> ValidTxnList:
        """The transactions that a reader who asks now may see.

        With a current transaction the list ends there: its own id is valid, later ones are not
        (TxnCommonUtils.createValidReadTxnList).
        """
        high_watermark, seen = self.high_watermark, self.txns
        if current_txn > 0:
            high_watermark = min(current_txn, high_watermark)
            seen = tuple(txn for txn in seen if txn.id < current_txn)
        return ValidTxnList(
            high_watermark=high_watermark,
            open_ids=tuple(txn.id for txn in seen if txn.state is not TxnState.ABORTED),
            aborted_ids=tuple(txn.id for txn in seen if txn.state is TxnState.ABORTED),
        )

    def without(self, own: TxnId) -> OpenTxns:
        """The same, as the transaction itself sees it: it sees what it wrote, and the list does
        not end at its id."""
        return replace(self, txns=tuple(txn for txn in self.txns if txn.id != own))


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenTxnRows:
    """What :class:`OpenTxns` is made of, for lists of thousands: ``rows`` begin with a
    transaction's id and the character of its state, and ascend."""

    high_watermark: TxnId
    rows: Sequence[tuple[Any, ...]]
    min_open_txn: TxnId | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TxnInfo:
    """One line of SHOW TRANSACTIONS."""

    id: TxnId
    state: TxnState
    type: TxnType = TxnType.DEFAULT
    user: str
    host: str
    agent: str | None = None
    meta: str | None = None
    started_ms: int
    last_heartbeat_ms: int

    def text(self, now_ms: int) -> str:
        """``4 (bob@reports07, 24 s)``: whose it is, and since when; for people."""
        return f"{self.id} ({self.user}@{self.host}, {self.age_text(now_ms)})"

    def age_text(self, now_ms: int) -> str:
        """How long it has been open; of one that began after a clock was set back, no time."""
        return span_text(max(0, now_ms - self.started_ms))


ANY_TIME_MS = 0
"""Of a write that another metastore aborted: its files are older than the transaction here."""


@dataclass(frozen=True, kw_only=True, slots=True)
class AbortedSince:
    """When the transactions that are aborted now were opened, by the database's clock: all of them
    by their ids, and those that took write ids of one table by these."""

    txns: Mapping[TxnId, int]
    write_ids: Mapping[WriteId, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class TxnToWriteId:
    """A write id of a transaction on one table."""

    txn_id: TxnId
    write_id: WriteId


@dataclass(frozen=True, kw_only=True, slots=True)
class AllocateWriteIdsRequest:
    """Write ids for transactions of ours (``txn_ids``), or replayed ones (``repl_policy``)."""

    database_name: str
    table_name: str
    txn_ids: tuple[TxnId, ...] = ()
    is_reallocation: bool = False
    repl_policy: str | None = None
    repl_source: tuple[TxnToWriteId, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteEvent:
    """What one transaction wrote to one table or partition (TXN_WRITE_NOTIFICATION_LOG).

    ``files`` are encoded file URIs (changemanager/uri.py); ``table_object`` and
    ``partition_object`` are thrift JSON texts.
    """

    write_id: WriteId
    target: Target
    table_object: str = ""
    partition_object: str | None = None
    files: tuple[str, ...] = ()

    @property
    def partition(self) -> str:
        """The partition's name; "" for none, as Hive keeps and answers it."""
        return self.target.partition or ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplLastId:
    """Which objects' ``repl.last.id`` a replayed commit moves forward, in the same transaction."""

    database_name: str
    last_repl_id: int
    table_name: str | None = None
    partitions: tuple[str, ...] = ()
    catalog_name: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitKeyValue:
    """A table parameter that a commit sets atomically; ``key`` starts with ``_meta``."""

    table_id: int
    key: str
    value: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitTxnRequest:
    """Commit a transaction. For REPL_CREATED ``txn_id`` is the source's id."""

    txn_id: TxnId
    type: TxnType | None = None
    is_exclusive_write_enabled: bool = True
    repl_policy: str | None = None
    write_events: tuple[WriteEvent, ...] = ()
    repl_last_id: ReplLastId | None = None
    key_value: CommitKeyValue | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class AbortTxnRequest:
    """Abort a transaction. For REPL_CREATED ``txn_id`` is the source's id."""

    txn_id: TxnId
    repl_policy: str | None = None
    type: TxnType | None = None
    reason: AbortReason = AbortReason.NONE


@dataclass(frozen=True, kw_only=True, slots=True)
class HeartbeatRangeResult:
    """Which transactions of a range could not be kept alive."""

    aborted: tuple[TxnId, ...] = ()
    missing: tuple[TxnId, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class TableWriteIdState:
    """The write-id state that a bootstrap load gives to a table (repl_tbl_writeid_state).

    ``partition_names`` are those whose aborted rows are compacted away; None for a table without
    partition columns."""

    valid_write_ids: str
    user: str
    host: str
    database_name: str
    table_name: str
    partition_names: tuple[str, ...] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class DynamicPartitions:
    """The partitions that a dynamic-partition write turned out to touch."""

    txn_id: TxnId
    write_id: WriteId
    database_name: str
    table_name: str
    partition_names: tuple[str, ...]
    operation: DataOperation | None = None
