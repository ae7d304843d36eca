"""Which verbs share the transactions of others, and where they stand in them.

Small ones that are called all the time, and that lock nothing but a transaction of their own and
what :class:`~hms_bridge.service.shared_writes.Rank` names. What takes long would hold up the
others; what replays a source's transactions locks databases besides.
"""

from __future__ import annotations

from collections.abc import Sequence

from hms_bridge.model.ids import LockId, TxnId
from hms_bridge.model.lock import LockRequest
from hms_bridge.model.txn import (
    AbortReason,
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    OpenTxnsRequest,
    TxnType,
)
from hms_bridge.service.shared_writes import Place, Rank

COUNT_MAX = 16
"""How many transactions, or components of a lock, one call names at most that shares a turn."""


def of_open(request: OpenTxnsRequest) -> Place | None:
    """Where openers stand; equal ones side by side."""
    is_shared = request.count <= COUNT_MAX and request.repl_policy is None
    equal = f"{request.type} {request.count} {request.user} {request.host} {request.agent}"
    return Place(Rank.OPEN, equal) if is_shared else None


def is_single(request: OpenTxnsRequest) -> bool:
    """Whether several of it are as one that asks for more."""
    return request.count == 1 and request.repl_policy is None


def of_commit(request: CommitTxnRequest) -> Place | None:
    """Where commits stand."""
    is_replay = request.type is TxnType.REPL_CREATED or request.repl_last_id is not None
    is_shared = not (is_replay or request.key_value is not None or request.write_events)
    return Place(Rank.END, f"commit {request.txn_id}") if is_shared else None


def is_bare(request: CommitTxnRequest) -> bool:
    """Whether it says no more than which transaction."""
    return request.type in (None, TxnType.DEFAULT) and request.repl_policy is None


def of_abort(request: AbortTxnRequest) -> Place | None:
    """Where aborts stand."""
    is_replay = request.type is TxnType.REPL_CREATED
    return None if is_replay else Place(Rank.END, f"abort {request.txn_id}")


def of_aborts(
    ids: Sequence[TxnId],
    reason: AbortReason = AbortReason.QUERY,  # noqa: ARG001 as the verb is called
) -> Place | None:
    """Where aborts of several stand."""
    return Place(Rank.END, f"abort {min(ids)}") if 0 < len(ids) <= COUNT_MAX else None


def of_heartbeat(txn_id: TxnId, lock_id: LockId) -> Place | None:
    """Where signs of life stand."""
    return Place(Rank.SIGN_OF_LIFE, f"{txn_id}/{lock_id}")


def of_write_ids(request: AllocateWriteIdsRequest) -> Place | None:
    """Where write ids stand; those of one table side by side."""
    is_shared = len(request.txn_ids) <= COUNT_MAX and request.repl_policy is None
    table = f"{request.database_name}.{request.table_name}".lower()
    return Place(Rank.WRITE_ID, table) if is_shared else None


def is_new_write(request: AllocateWriteIdsRequest) -> bool:
    """Whether several of one table are as one of all their transactions: each of one transaction,
    as those of several would be given ids between those of others."""
    is_plain = request.repl_policy is None and not request.is_reallocation
    return is_plain and len(request.txn_ids) == 1


def of_lock(request: LockRequest) -> Place | None:
    """Where requests for locks stand: in the order in which they came."""
    return Place(Rank.LOCK) if len(request.components) <= COUNT_MAX else None
