"""What a compaction may read of a table or partition: the id lists, then the directory."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from changemanager.location import Resolver
from hms_bridge.acid.directory import AcidState, resolve
from hms_bridge.compaction.target import CompactionTarget
from hms_bridge.directories.known_ids import require_known_ids
from hms_bridge.directories.listing import list_acid_directory
from hms_bridge.metastore import Metastore
from hms_bridge.model.ids import TxnId
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.rows.reader import has_raw_rows


@dataclass(frozen=True, kw_only=True, slots=True)
class CompactorSnapshot:
    """What a compaction may read: nothing from the lowest open write id on
    (docs/hive/compaction.md §5)."""

    txns: ValidTxnList
    write_ids: ValidWriteIdList
    state: AcidState


def take_snapshot(
    metastore: Metastore, resolver: Resolver, target: CompactionTarget, txn_id: TxnId
) -> CompactorSnapshot:
    """Lists first, then the directory: what is listed later is at least as new (T32).

    ``txn_id``, if not 0, counts as open. Raises NotEnoughHistoryError, AcidFormatError, OSError.
    """
    txns = metastore.get_open_txns().snapshot()
    if txn_id:
        txns = txns.with_open(txn_id)
    write_ids = metastore.get_valid_write_ids([target.table.full_name], txns)[0].compactor_view()
    location = resolver(target.location)
    volume = location.volume
    listing = list_acid_directory(
        volume, location.path, has_raw_rows=functools.partial(has_raw_rows, volume)
    )
    require_known_ids(metastore, target.table, listing, txns, write_ids)
    return CompactorSnapshot(
        txns=txns, write_ids=write_ids, state=resolve(listing, txns=txns, write_ids=write_ids)
    )
