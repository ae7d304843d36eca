"""What a monitor asks."""

from __future__ import annotations

from hms_bridge.backend.work import sql
from hms_bridge.service.foundation import VerbFamily
from hms_bridge.service.unit_of_work import reads
from hms_bridge.txn import figures


class FigureVerbs(VerbFamily):
    """The FigureStore."""

    txn_figures = reads(figures.txn_figures)
    lock_figures = reads(sql(figures.lock_figures))
    compaction_figures = reads(figures.compaction_figures)
