"""A transaction from open to end. Nothing else opens one of our own.

A load opens those of the source again; they outlive it, until the source's end comes
(repl/load/replica.py).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from hms_bridge.errors import HmsBridgeError, NoSuchTxnError, TxnAbortedError
from hms_bridge.interrupts import HeldInterrupts
from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import NO_TXN, TxnId
from hms_bridge.model.lock import LockComponent, LockRequest, LockResponse
from hms_bridge.model.txn import (
    AbortReason,
    AbortTxnRequest,
    CommitTxnRequest,
    OpenTxnsRequest,
    TxnType,
)
from hms_bridge.model.valid_ids import ValidTxnList
from hms_bridge.session.heartbeat import Heartbeat, heartbeat_interval_seconds

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Client:
    """Who opens it, and how patiently locks are awaited."""

    user: str
    host: str
    agent: str | None = "hms-bridge"
    lock_wait_seconds: float = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Transaction:
    """An open transaction, kept alive until its block ends."""

    id: TxnId
    metastore: Metastore
    client: Client
    heartbeat: Heartbeat

    def lock(self, components: Sequence[LockComponent]) -> LockResponse:
        """Ask for locks, all or none; the answer may be that others come first."""
        return self.metastore.lock(
            LockRequest(
                components=tuple(components),
                txn_id=self.id,
                user=self.client.user,
                host=self.client.host,
                agent=self.client.agent,
            )
        )


@contextmanager
def open_transaction(
    metastore: Metastore,
    client: Client,
    *,
    kind: TxnType = TxnType.DEFAULT,
    abort_reason: AbortReason = AbortReason.ROLLBACK,
) -> Iterator[Transaction]:
    """Commit at the end of the block; abort if it raises. Raises what the metastore raises."""
    # Asked before there is a transaction: nothing comes between its opening and the block.
    interval_seconds = heartbeat_interval_seconds(metastore)
    request = OpenTxnsRequest(user=client.user, host=client.host, agent=client.agent, type=kind)
    with HeldInterrupts() as held:  # else one could leave a transaction open that nobody knows
        (txn_id,) = metastore.open_txns(request)
        try:
            with Heartbeat(metastore, txn_id, interval_seconds) as heartbeat:
                held.release()
                yield Transaction(
                    id=txn_id, metastore=metastore, client=client, heartbeat=heartbeat
                )
            metastore.commit_txn(CommitTxnRequest(txn_id=txn_id, type=kind))
        except BaseException:
            _abort(metastore, AbortTxnRequest(txn_id=txn_id, type=kind, reason=abort_reason))
            raise


def current_snapshot(metastore: Metastore, txn_id: TxnId = NO_TXN) -> ValidTxnList:
    """What a reader sees that starts now, under a transaction of its own if it has one.

    The list goes on above ``txn_id``: who began later may have committed while the transaction
    waited for its locks. Hive's list ends at the own id (docs/hive/transactions.md §5), and so Hive
    opens a new transaction then.
    """
    return metastore.get_open_txns().without(txn_id).snapshot()


def _abort(metastore: Metastore, request: AbortTxnRequest) -> None:
    """The error that led here matters more than one of the abort: a time-out aborts as well."""
    try:
        metastore.abort_txn(request)
    except (NoSuchTxnError, TxnAbortedError):
        return
    except HmsBridgeError as error:
        _LOG.warning("transaction %d is not aborted before it times out: %s", request.txn_id, error)
