"""``hms-bridge compact`` when a compaction of the target is in the queue already."""

from __future__ import annotations

from dataclasses import replace

from hms_bridge.cli.output import say, time_text
from hms_bridge.cli.served_pool import why_not_here
from hms_bridge.errors import CompactionError
from hms_bridge.metastore import Metastore
from hms_bridge.model.compaction import (
    Compaction,
    CompactionRequest,
    CompactionState,
    ShowCompactionsRequest,
)
from hms_bridge.model.ids import CompactionId
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import TxnState

_SCHEDULED = (
    CompactionState.INITIATED,
    CompactionState.WORKING,
    CompactionState.READY_FOR_CLEANING,
)


def queue(
    metastore: Metastore, request: CompactionRequest, *, is_run: bool, is_waited: bool
) -> CompactionId:
    """A new entry of the queue, or the one of the same target that can be run or waited for.

    An entry whose worker is dead (its transaction has ended) is given up first.
    Raises CompactionError with what there is and what to do.
    """
    answer = metastore.compact(request)
    if not answer.is_accepted:
        entry = _scheduled(metastore, request)
        if entry is not None and _is_abandoned(metastore, entry):
            _give_up(metastore, entry)
            answer = metastore.compact(request)
        elif entry is not None and _can_be_taken(entry, is_run=is_run, is_waited=is_waited):
            kind = entry.type.name.lower()
            say(f"compaction {entry.id} ({kind}) of {entry.target} is queued already: taking it")
            return entry.id
        elif entry is not None:
            raise CompactionError(f"{entry.target}: already scheduled: {_advice(metastore, entry)}")
    if not answer.is_accepted or answer.id is None:
        raise CompactionError(f"{request.target.name}: {answer.error_message or answer.state}")
    return answer.id


def _scheduled(metastore: Metastore, request: CompactionRequest) -> Compaction | None:
    """What stands in the way: unfinished before what only waits for the cleaner."""
    of_table = metastore.show_compactions(
        ShowCompactionsRequest(
            scope=Scope(request.target.database.lower(), request.target.table.lower())
        )
    )
    entries = [entry for entry in of_table if entry.target.partition == request.target.partition]
    return next((entry for state in _SCHEDULED for entry in entries if entry.state is state), None)


def _can_be_taken(entry: Compaction, *, is_run: bool, is_waited: bool) -> bool:
    if entry.state is CompactionState.INITIATED:
        return is_run or is_waited
    return entry.state is CompactionState.WORKING and is_waited and not is_run


def _is_abandoned(metastore: Metastore, entry: Compaction) -> bool:
    """Whether a worker had a transaction that is not open any more: it cannot publish."""
    if entry.state is not CompactionState.WORKING or not entry.txn_id:
        return False
    txns = metastore.get_open_txns().txns
    return not any(txn.id == entry.txn_id and txn.state is TxnState.OPEN for txn in txns)


def _give_up(metastore: Metastore, entry: Compaction) -> None:
    reason = f"its worker {entry.worker_id} has gone: transaction {entry.txn_id} has ended"
    metastore.mark_failed(replace(entry, error_message=reason))
    say(f"compaction {entry.id} of {entry.target} is given up: {reason}")


def _advice(metastore: Metastore, entry: Compaction) -> str:
    if entry.state is CompactionState.INITIATED:
        if reason := why_not_here(metastore, entry):
            return (
                f"compaction {entry.id} is in state 'initiated' and waits for a worker of a Hive, "
                f"as hms-bridge does not do it ({reason})"
            )
        return (
            f"compaction {entry.id} is in state 'initiated' and waits for a worker; do it here "
            "with --run, or start one (hms-bridge serve --worker)"
        )
    if entry.state is CompactionState.READY_FOR_CLEANING:
        return (
            f"compaction {entry.id} is 'ready for cleaning' and nothing was written since; the "
            "cleaner has to run first: that of the server (hms-bridge serve --cleaner), Hive's "
            "where the metastore is a Hive's, or, on this metastore's own database, hms-bridge "
            "cleaner run"
        )
    at_once = (
        f", or end its transaction now (hms-bridge txns abort {entry.txn_id}) and compact again"
        if entry.txn_id
        else ""
    )
    dead = (
        "hms-bridge serve gives the entry back once hive.txn.timeout has passed without a sign of "
        f"life (a Hive metastore after hive.compactor.worker.timeout): wait{at_once}"
    )
    return (
        f"compaction {entry.id} is in state 'working', by {entry.worker_id or 'a worker'}"
        f"{f' in transaction {entry.txn_id}' if entry.txn_id else ''} since "
        f"{time_text(entry.started_ms)}; wait for it with --wait. If that worker is dead, {dead}"
    )
