"""Every error that this package raises on purpose.

::

    HmsBridgeError
    ├─ ConfigError                      a setting is unknown, malformed or contradicts another
    ├─ MetastoreError                   each leaf has a Hive thrift exception (wire/exceptions.py)
    │  ├─ MetaError                     Hive's MetaException: anything without a class of its own
    │  ├─ NoSuchObjectError             a database, table, partition … that is not there
    │  ├─ AlreadyExistsError
    │  ├─ InvalidObjectError            an object that cannot be stored as it is
    │  │  └─ InvalidInputError          a request that contradicts itself
    │  ├─ InvalidOperationError         an operation that the object does not allow
    │  ├─ NoSuchTxnError
    │  ├─ TxnAbortedError
    │  ├─ TxnOpenError                  unlocking what only the end of a transaction releases
    │  ├─ NoSuchLockError
    │  ├─ NoSuchCompactionError
    │  └─ MetastoreUnavailableError     client side; the call may be tried again
    ├─ BackendError                     the database failed
    │  ├─ CommitUnknownError            while committing: it may have happened
    │  ├─ DatabaseAbsentError           nobody has answered at its address so far
    │  └─ RetryableBackendError         deadlock, serialization failure; see backend/retry.py
    │     ├─ DatabaseGoneError          it answered before, and does not now
    │     │  └─ NoConnectionLeftError   it answers, and gives no connection more
    │     ├─ LockWaitError              somebody else held a lock for too long
    │     └─ RowTakenError              a row with that key is there; tried again twice only
    ├─ AcidFormatError                  files contradict the ACID format; carries the path
    │  ├─ NotOrcError                   a file that is no ORC file
    │  └─ NotEnoughHistoryError         compacted beyond the snapshot; read again with a new one
    ├─ CompactionError
    ├─ DmlError                         a statement that cannot be understood or carried out
    └─ ReplError
       ├─ DumpIncompleteError           a dump directory without its finish marker
       ├─ BusyError                     another dump, load or cycle of the same is at work
       ├─ EventGapError                 notification events were purged before they were dumped
       ├─ IncompatibleError             a replayed transaction was aborted at the replica
       ├─ OriginNotTrustedError         a dump names files outside of the roots that were named
       └─ SourceFileMissingError        a file is neither at its source nor in the ChangeManager

A message says what went wrong, where, and what to do next.
"""

from __future__ import annotations


class HmsBridgeError(Exception):
    """Root of all errors of hms_bridge and cleaner."""


class ConfigError(HmsBridgeError):
    """A setting is unknown, malformed or contradicts another."""


class MetastoreError(HmsBridgeError):
    """The metastore refused a call."""


class MetaError(MetastoreError):
    """Hive's MetaException: a refusal without a class of its own."""


class NoSuchObjectError(MetastoreError):
    """A database, table, partition or other object is not there."""


class AlreadyExistsError(MetastoreError):
    """An object of that name is already there."""


class InvalidObjectError(MetastoreError):
    """An object cannot be stored as it is."""


class InvalidInputError(InvalidObjectError):
    """A request contradicts itself."""


class InvalidOperationError(MetastoreError):
    """The object does not allow the operation."""


class NoSuchTxnError(MetastoreError):
    """A transaction is unknown, or already committed where an open one is due."""


class TxnAbortedError(MetastoreError):
    """A transaction was aborted."""


class TxnOpenError(MetastoreError):
    """A lock belongs to an open transaction, whose end alone releases it."""


class NoSuchLockError(MetastoreError):
    """A lock is unknown, or timed out."""


class NoSuchCompactionError(MetastoreError):
    """A compaction is not in the queue."""


class MetastoreUnavailableError(MetastoreError):
    """The metastore cannot be reached; the call may be tried again."""


class BackendError(HmsBridgeError):
    """The database failed."""


class CommitUnknownError(BackendError):
    """The database failed while it was committing, and did not say how: it may have happened."""


class RetryableBackendError(BackendError):
    """Deadlock, serialization failure, lost connection: the transaction may be tried again."""


class DatabaseAbsentError(BackendError):
    """Nobody has answered at the database's address so far: it may be starting."""


class DatabaseGoneError(RetryableBackendError):
    """The database answered before and does not now: it may be starting again."""


class NoConnectionLeftError(DatabaseGoneError):
    """The database gives no connection more: others have all that there may be."""


class LockWaitError(RetryableBackendError):
    """Somebody else held a lock in the database for longer than one statement waits for it."""


class RowTakenError(RetryableBackendError):
    """A row with that key is there already: somebody was faster, or it never was free."""


class AcidFormatError(HmsBridgeError):
    """Files contradict the ACID format."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message if not path else f"{path}: {message}")
        self.path = path


class NotOrcError(AcidFormatError):
    """A file is no ORC file."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(
            f"this is no ORC file: {message}; restore it from a copy, or move it away if it is "
            "none of the table's",
            path,
        )


class NotEnoughHistoryError(AcidFormatError):
    """A table was compacted beyond the snapshot; the read may be tried again with a new one."""


class CompactionError(HmsBridgeError):
    """A compaction cannot be carried out."""


class DmlError(HmsBridgeError):
    """A statement cannot be understood or carried out."""


class ReplError(HmsBridgeError):
    """A dump or a load cannot be carried out."""


class DumpIncompleteError(ReplError):
    """A dump directory has no finish marker."""


class BusyError(ReplError):
    """Another dump, load or cycle of the same is at work, and lives."""


class OriginNotTrustedError(ReplError):
    """A dump names files outside of the roots that somebody has named for it. ``roots``: those that
    it would take."""

    def __init__(self, message: str, roots: tuple[str, ...]) -> None:
        super().__init__(message)
        self.roots = roots


class EventGapError(ReplError):
    """Notification events were purged before they were dumped."""


class MarkedError(ReplError):
    """A dump has Hive's mark of a failure that no further try ends."""


class IncompatibleError(ReplError):
    """A replayed transaction was aborted at the replica, so later events do not fit."""


class SourceFileMissingError(ReplError):
    """Files of a dump are neither at their source path nor in the ChangeManager."""

    def __init__(self, message: str, missing: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.missing = missing
