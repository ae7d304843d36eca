"""Replay of transactions: open, write ids, abort. Their commits are in ``commit``.

Ids of transactions differ between source and target, write ids are the same. Every step can be
repeated: an opened source transaction keeps its target transaction, and write ids that the target
has are not allocated again.
"""

from __future__ import annotations

from collections.abc import Iterable

from hms_bridge.errors import ReplError
from hms_bridge.model.ids import WriteId
from hms_bridge.model.txn import TxnToWriteId
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.repl.format.event_payload import (
    AbortTxnPayload,
    AllocWriteIdPayload,
    OpenTxnPayload,
)
from hms_bridge.repl.format.reader import DumpedEvent
from hms_bridge.repl.load.events.context import ObjectChange, ReplayContext
from hms_bridge.repl.load.replica import Replica
from hms_bridge.repl.load.write_id_owner import require_own


def open_txn(context: ReplayContext, event: DumpedEvent) -> None:
    """Open a transaction for each one of the source."""
    txn_ids = event.read(OpenTxnPayload).txn_ids
    if not context.replica.has_opened(txn_ids):
        context.replica.open_together(txn_ids)


def open_ahead(replica: Replica, events: Iterable[DumpedEvent]) -> None:
    """Open what the next events open, in few calls. What was opened before is left to them."""
    replica.open_ahead([event.read(OpenTxnPayload).txn_ids for event in events])


def allocate_write_ids(context: ReplayContext, event: DumpedEvent) -> None:
    """Give the source's write ids to its transactions here.

    Ids up to the target's own maximum must have come with the bootstrap, or with an earlier try.
    CREATE TABLE AS SELECT takes its write id before the table exists. A
    transaction that the dump does not open (it was open at the bootstrap, or the source filters
    transactions) is opened now: its rows must not get lost.
    """
    payload = event.read(AllocWriteIdPayload)
    replica = context.replica
    if payload.database_name != replica.names.source_database:
        return
    target, name = replica.names.target_database, payload.table_name
    if all(replica.has_allocated(name, pair) for pair in payload.allocated):
        return
    is_gone = context.changes.next_change(name, event.id) is ObjectChange.GONE
    # A dump of Hive names ids of a table that a rename brought into its scope, and that is made,
    # whole and with all of them, after the last event (AllocWriteIdHandler).
    comes_whole = name in context.reader.names_anew
    if (is_gone or comes_whole) and replica.find_table(name) is None:
        return
    known = replica.metastore.get_max_allocated_write_id(target, name)
    old = tuple(pair for pair in payload.allocated if pair.write_id <= known)
    require_own(replica, name, old, event.where, is_committed=False)
    new = tuple(pair for pair in payload.allocated if pair.write_id > known)
    if not new:
        return
    # Hive would take the source's number, and forget whose the ids before it were
    # (docs/hive/replication.md §22).
    if new[0].write_id != known + 1 and not _begins_anew(replica, name, known, new[0].write_id):
        # Where the table itself is gone, that is what to say.
        context.table_or_gone(name, event)
        raise ReplError(
            f"{event.where}: begins with write id {new[0].write_id} of {target}.{name}, "
            f"which stands at {known}; what was written between is not in any dump. "
            + replica.bring_anew(name)
        )
    # For a transaction that it does not know Hive allocates nothing, without an error.
    replica.ensure_open(pair.txn_id for pair in new)
    given = replica.allocate_write_ids(name, new)
    if {pair.write_id for pair in given} != {pair.write_id for pair in new}:
        raise ReplError(
            f"{event.where}: the target did not give write ids {new[0].write_id} to "
            f"{new[-1].write_id} of {target}.{name} to the source's transactions; is another load "
            "running? If not: " + replica.bring_anew(name)
        )


def _begins_anew(replica: Replica, name: str, known: WriteId, first: WriteId) -> bool:
    """A name without a table and without write ids takes the source's number: those before are of
    tables that were gone at the bootstrap, or were never made. Nothing of them can be missing."""
    if known or replica.find_table(name) is not None:
        return False
    replica.begin_write_ids(name, ValidWriteIdList(table=None, high_watermark=WriteId(first - 1)))
    return True


def allocate_ahead(context: ReplayContext, events: Iterable[DumpedEvent]) -> None:
    """Give the write ids of the next events, in one call a table. What does not follow on those
    that the target has, or is of a table that may rightly be missing, is left to its event."""
    replica = context.replica
    target = replica.names.target_database
    by_table: dict[str, list[TxnToWriteId]] = {}
    for event in events:
        payload = event.read(AllocWriteIdPayload)
        name = payload.table_name
        is_gone = context.changes.next_change(name, event.id) is ObjectChange.GONE
        is_of_source = payload.database_name == replica.names.source_database
        if is_of_source and not is_gone and name not in context.reader.names_anew:
            by_table.setdefault(name, []).extend(payload.allocated)
    for name, pairs in by_table.items():
        known = replica.metastore.get_max_allocated_write_id(target, name)
        new = [pair for pair in pairs if pair.write_id > known]
        if new and [pair.write_id for pair in new] == list(range(known + 1, known + 1 + len(new))):
            replica.ensure_open(pair.txn_id for pair in new)
            replica.allocate_write_ids(name, new)


def abort_txn(context: ReplayContext, event: DumpedEvent) -> None:
    """Abort the transaction here; nothing if it was never opened or is aborted already."""
    context.replica.abort(event.read(AbortTxnPayload).txn_id)
