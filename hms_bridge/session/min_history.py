"""Register with the metastore which write ids a reader may still need (MIN_HISTORY_WRITE_ID).

Hive 4.2's Cleaner looks at nothing else by default: it removes what a compaction replaced as soon
as the compaction's highest write id is below every id that readers of the table registered
(ReadyToCleanHandler; docs/hive/compaction.md §15). Hive's own readers register their lowest open
write id, or the one after their last (DbTxnManager.addWriteIdsToMinHistory;
docs/hive/transactions.md §16): too high for a compaction that is not committed when they begin,
whose inputs they need and may lose. Here nothing is lost:

* A compaction that begins after this look covers at least the ids below the lowest open one, so
  that many are registered, one less than Hive's.
* One that is under way may cover fewer; what it says it covers is registered then, and 1 if it
  does not say yet.
* One that was committed is seen by the snapshot, which the reader takes *after* this.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from hms_bridge.metastore import Metastore
from hms_bridge.model.compaction import (
    Compaction,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.ids import CompactionId, TxnId, WriteId
from hms_bridge.model.target import Scope

_LOWEST = WriteId(1)
_UNDER_WAY = (CompactionState.WORKING, CompactionState.READY_FOR_CLEANING)


def register_reader(
    metastore: Metastore,
    txn_id: TxnId,
    full_table_names: Collection[str],
    *,
    own_compaction: CompactionId | None = None,
) -> None:
    """Keep what the open transaction ``txn_id`` may read of these tables, until it ends.

    Call it before the snapshot is taken. ``own_compaction``: the queue entry of a compactor that
    reads; others cannot work on the same target. Nothing is done for a metastore that does not
    know such ids. Raises NoSuchTxnError, TxnAbortedError, MetaError.
    """
    names = sorted(set(full_table_names))
    if not names:
        return
    settled = _settled_write_ids(metastore, names)
    under_way = [entry for entry in _compactions(metastore, names) if entry.id != own_compaction]
    metastore.add_write_ids_to_min_history(
        txn_id, {name: lowest_needed(name, settled[name], under_way) for name in names}
    )


def lowest_needed(name: str, settled: WriteId, under_way: Iterable[Compaction]) -> WriteId:
    """The lowest write id that an uncommitted compaction of a table covers, or may cover.

    ``settled``: the highest id below which nothing was open.
    """
    heights = [
        entry.highest_write_id or _LOWEST
        for entry in under_way
        if entry.type is not CompactionType.ABORT_TXN_CLEANUP
        and str(entry.target.name).lower() == name
        and not _is_committed(entry)
    ]
    return min(settled, *heights) if heights else settled


def _settled_write_ids(metastore: Metastore, names: Sequence[str]) -> dict[str, WriteId]:
    """The own transaction counts as open here, as it does for every compaction."""
    txns = metastore.get_open_txns().snapshot()
    lists = metastore.get_valid_write_ids(names, txns)
    return {
        name: write_ids.compactor_view().high_watermark
        for name, write_ids in zip(names, lists, strict=True)
    }


def _compactions(metastore: Metastore, names: Sequence[str]) -> list[Compaction]:
    database, _, table = names[0].partition(".")
    is_one = len(names) == 1
    return [
        entry
        for state in _UNDER_WAY
        for entry in metastore.show_compactions(
            ShowCompactionsRequest(
                scope=Scope(database if is_one else None, table if is_one else None),
                state=state,
            )
        )
    ]


def _is_committed(entry: Compaction) -> bool:
    """An entry is ready for cleaning before its transaction is committed, which sets this id."""
    return entry.state is CompactionState.READY_FOR_CLEANING and bool(entry.next_txn_id)
