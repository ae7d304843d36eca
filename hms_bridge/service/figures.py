"""What a monitor asks."""

from __future__ import annotations

import threading

from hms_bridge.backend.work import sql
from hms_bridge.model.event_block import EventBlock
from hms_bridge.notification import event_log
from hms_bridge.notification.event_sizes import EventSizes
from hms_bridge.service.foundation import Foundation, VerbFamily
from hms_bridge.service.unit_of_work import reads
from hms_bridge.txn import figures


class FigureVerbs(VerbFamily):
    """The FigureStore."""

    def __init__(self, foundation: Foundation) -> None:
        super().__init__(foundation)
        self._event_sizes = EventSizes()
        self._sizes_lock = threading.Lock()

    txn_figures = reads(figures.txn_figures)
    lock_figures = reads(sql(figures.lock_figures))
    compaction_figures = reads(figures.compaction_figures)
    first_event_seconds = reads(sql(event_log.first_time_since))

    def event_blocks(self) -> tuple[EventBlock, ...]:
        with self._sizes_lock:
            return self._transactions.read(self._event_sizes.blocks)
