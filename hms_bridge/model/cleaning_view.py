"""What the cleaner looks at before it lists the directories of a table."""

from __future__ import annotations

from dataclasses import dataclass

from hms_bridge.model.compaction import Compaction
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import AbortedSince
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList


@dataclass(frozen=True, kw_only=True, slots=True)
class CleaningView:
    """Below ``watermark`` every transaction that may read of the table's database has ended; all
    transactions that are open or aborted after that was asked; under them the write ids of the
    table; entries of it that are ready for cleaning; and when those were opened that are aborted.
    """

    watermark: TxnId
    txns: ValidTxnList
    write_ids: ValidWriteIdList
    ready: tuple[Compaction, ...]
    since: AbortedSince
