"""Records of the compaction queue. Times are milliseconds since the epoch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from hms_bridge.model.ids import CompactionId, TxnId, WriteId
from hms_bridge.model.stored_enum import StoredEnum
from hms_bridge.model.target import EVERYTHING, Scope, Target

NEVER_QUEUED = CompactionId(0)
"""Id of an entry that is in no queue: what the initiator could not queue, and what is to be cleaned
without a compaction."""
LOCATION = "location"
"""Property of an entry that a Hive metastore made for a dropped directory: which one."""


class CompactionType(StoredEnum):
    """Kind of a compaction: the number on the wire and the character in CQ_TYPE."""

    MINOR = (1, "i")
    MAJOR = (2, "a")
    REBALANCE = (3, "r")
    ABORT_TXN_CLEANUP = (4, "c")


DONE_HERE = frozenset({CompactionType.MINOR, CompactionType.MAJOR})
"""Kinds that the worker of hms-bridge does, of full ACID tables only."""
OWN_POOL = "hms-bridge"
"""Pool of the workers of hms-bridge on a metastore that cannot leave out what they do not do."""


class DeltaCount(StoredEnum):
    """What a compaction worker counts: the number on the wire and the word in CMC_METRIC_TYPE."""

    OBSOLETE = (0, "NUM_OBSOLETE_DELTAS")
    ALL = (1, "NUM_DELTAS")
    SMALL = (2, "NUM_SMALL_DELTAS")


class VerifyMode(Enum):
    """What is compared before a compaction is published: inputs as a snapshot sees them, outputs.

    An order-independent sum over all values; over the rows' identifiers; their number alone.
    """

    FULL = "full"
    KEYS = "keys"
    COUNTS = "counts"


class CompactionState(Enum):
    """State of a queue entry: the character in CQ_STATE/CC_STATE and the word that SHOW prints.

    UNKNOWN is never stored: another program wrote a character that has no meaning here.
    """

    INITIATED = ("i", "initiated")
    WORKING = ("w", "working")
    READY_FOR_CLEANING = ("r", "ready for cleaning")
    FAILED = ("f", "failed")
    SUCCEEDED = ("s", "succeeded")
    DID_NOT_INITIATE = ("a", "did not initiate")
    REFUSED = ("c", "refused")
    ABORTED = ("x", "aborted")
    UNKNOWN = ("?", "unknown")

    @property
    def stored(self) -> str:
        """The character in the queue."""
        return self.value[0]

    @property
    def word(self) -> str:
        """What SHOW COMPACTIONS prints."""
        return self.value[1]


@dataclass(frozen=True, kw_only=True, slots=True)
class AbortOutcome:
    """What came of asking that an entry be aborted; the message says why it was not."""

    is_aborted: bool
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class CompactionRequest:
    """A request to compact a table, or one partition of it. ``is_automatic``: no person asks, but
    our own initiator; never so over the wire."""

    target: Target
    type: CompactionType
    run_as: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)
    initiator_id: str | None = None
    initiator_version: str | None = None
    pool_name: str | None = None
    bucket_count: int | None = None
    order_by: str | None = None
    is_automatic: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class CompactionResponse:
    """Whether a request was queued. ``id`` is None when it was refused."""

    id: CompactionId | None
    is_accepted: bool
    state: str
    error_message: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Compaction:
    """One entry of the queue or of its history (SHOW COMPACTIONS), and what a worker is handed.

    ``next_txn_id`` is the highest transaction id that was given when the compaction committed: its
    inputs may go when every open transaction is above it.
    """

    id: CompactionId
    target: Target
    type: CompactionType
    state: CompactionState
    properties: Mapping[str, str] = field(default_factory=dict)
    worker_id: str | None = None
    worker_version: str | None = None
    initiator_id: str | None = None
    initiator_version: str | None = None
    enqueued_ms: int | None = None
    started_ms: int | None = None
    ended_ms: int | None = None
    committed_ms: int | None = None
    cleaner_started_ms: int | None = None
    run_as: str | None = None
    highest_write_id: WriteId | None = None
    txn_id: TxnId | None = None
    next_txn_id: TxnId | None = None
    hadoop_job_id: str | None = None
    error_message: str | None = None
    retry_retention_ms: int = 0
    pool_name: str | None = None
    bucket_count: int | None = None
    order_by: str | None = None
    has_too_many_aborts: bool = False
    has_old_abort: bool = False

    @property
    def is_soft_drop(self) -> bool:
        """Whether a Hive metastore left it for a directory that it dropped. No worker ever began
        such an entry (TxnHandler.submitForCleanup); one that was begun is a compaction, whatever
        its properties say."""
        return LOCATION in self.properties and self.started_ms is None and self.worker_id is None

    @property
    def is_never_created(self) -> bool:
        """Whether it is of the directory of a table that was never made: its CREATE TABLE AS SELECT
        failed (RollbackCTASHook). A drop's transaction commits, and notes down what was open."""
        return self.is_soft_drop and self.next_txn_id is None


@dataclass(frozen=True, kw_only=True, slots=True)
class ShowCompactionsRequest:
    """Which entries SHOW COMPACTIONS lists; None means all."""

    id: CompactionId | None = None
    scope: Scope = EVERYTHING
    pool_name: str | None = None
    type: CompactionType | None = None
    state: CompactionState | None = None
    limit: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PotentialCompaction:
    """A table or partition that the initiator should look at, and its aborted transactions.

    ``write_count`` committed writes since it was compacted, up to ``highest_write_id``: while both
    stay, nothing was written. 0 and None if only aborted writes are known.
    """

    target: Target
    has_too_many_aborts: bool = False
    has_old_abort: bool = False
    write_count: int = 0
    highest_write_id: WriteId | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Readers:
    """Who may read the inputs of entries.

    By database: ``watermarks``, below which every transaction that may read of it has ended, and
    ``elsewhere``, open transactions that surely read nothing of it. ``locks`` without a
    transaction, by the ids of the entries whose inputs are read under them.
    """

    watermarks: Mapping[str, TxnId]
    elsewhere: Mapping[str, frozenset[TxnId]]
    locks: Mapping[int, tuple[int, ...]]
