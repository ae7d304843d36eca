"""Write-id lists up to the table's last write id, from any metastore.

A reader's list ends at its lowest open or aborted write id where no id with a known transaction is
committed (Hive: TxnHandler.getValidWriteIdsForTable; docs/hive/transactions.md §6): all below was
compacted, all above is unseen anyway. Whoever copies the list would take the ids beyond for never
given, and would not wait for those that are open among them. Such a list is asked for in parts:
under snapshots in which some of the transactions count as committed, it is not cut.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import islice

from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import TxnId
from hms_bridge.model.target import TableName
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList


def whole_lists(
    source: Metastore, tables: Sequence[str], txns: ValidTxnList
) -> tuple[ValidWriteIdList, ...]:
    """One list for each ``db.table``, in the order asked, as a snapshot judges all ids of it."""
    if not tables:
        return ()
    names = [TableName.parse(name) for name in tables]
    given = [source.get_max_allocated_write_id(parsed.database, parsed.table) for parsed in names]
    lists = source.get_valid_write_ids(tables, txns)
    whole = []
    for name, highest, seen in zip(tables, given, lists, strict=True):
        write_ids = _uncut(source, name, txns, seen)
        if write_ids.high_watermark < highest:
            # Hive forgets who committed a write id also above one that it remembers.
            (known,) = source.get_valid_write_ids([name], ValidTxnList.everything())
            if known.high_watermark < highest:
                write_ids = replace(write_ids, high_watermark=highest)
        whole.append(write_ids)
    return tuple(whole)


def _uncut(
    source: Metastore, table: str, txns: ValidTxnList, seen: ValidWriteIdList
) -> ValidWriteIdList:
    if (*seen.open_ids, *seen.aborted_ids) != (seen.high_watermark,):
        return seen
    (end,) = source.get_valid_write_ids([table], replace(txns, open_ids=(), aborted_ids=()))
    if end.high_watermark <= seen.high_watermark:
        return seen
    parts = _parts(source, table, txns, sorted({*txns.open_ids, *txns.aborted_ids}), end)
    return replace(
        end,
        open_ids=tuple(write_id for part in parts for write_id in part.open_ids),
        aborted_ids=tuple(write_id for part in parts for write_id in part.aborted_ids),
    )


def _parts(
    source: Metastore,
    table: str,
    txns: ValidTxnList,
    ids: Sequence[TxnId],
    end: ValidWriteIdList,
) -> list[ValidWriteIdList]:
    """Lists that are not cut; each judges the write ids of some transactions, together of all."""
    chosen = frozenset(ids)
    (seen,) = source.get_valid_write_ids(
        [table],
        replace(
            txns,
            open_ids=tuple(txn_id for txn_id in txns.open_ids if txn_id in chosen),
            aborted_ids=tuple(txn_id for txn_id in txns.aborted_ids if txn_id in chosen),
        ),
    )
    if seen.high_watermark >= end.high_watermark or len(ids) <= 1:
        # One transaction has one write id of a table: its list ends there, and has all of it.
        return [seen]
    half = len(ids) // 2
    return [
        *_parts(source, table, txns, ids[:half], end),
        *_parts(source, table, txns, ids[half:], end),
    ]


def ids_text(ids: Collection[int | str], named_max: int = 20) -> str:
    """The first of them, and how many more."""
    shown = ", ".join(map(str, islice(ids, named_max)))
    return shown if len(ids) <= named_max else f"{shown} and {len(ids) - named_max} more"
