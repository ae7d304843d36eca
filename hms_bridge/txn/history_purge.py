"""What the history of compactions need not keep (Hive: PurgeCompactionHistoryFunction;
docs/hive/compaction.md §24).

The history is as long as there are partitions that were ever compacted, so it is not read as a
whole: each call looks at the entries of some targets, and the next one goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

from sqlalchemy import CompoundSelect, and_, delete, select, union_all

from hms_bridge.backend.batches import batches
from hms_bridge.backend.schema.txn_tables import COMPLETED_COMPACTIONS
from hms_bridge.backend.work import Work
from hms_bridge.model.compaction import Compaction, CompactionState, CompactionType
from hms_bridge.model.ids import CompactionId
from hms_bridge.model.target import Target
from hms_bridge.txn.compaction_rows import (
    HISTORY_COLUMNS,
    from_history,
    history_fields,
    is_readable,
)

KEPT = {
    CompactionState.SUCCEEDED: 3,
    CompactionState.FAILED: 3,
    CompactionState.REFUSED: 3,
    CompactionState.DID_NOT_INITIATE: 2,
}
"""How many entries of a state the history keeps for one target."""

OVERTAKEN_AFTER_MS = 7 * 24 * 3_600_000
"""After it an unsuccessful entry goes if a later compaction succeeded in its place."""

ENTRIES_MAX = 1000
"""Of how many entries one call looks at the targets."""

DROPPED_MAX = 10_000
"""How many entries one call drops; what is left has its next turn."""

_H = COMPLETED_COMPACTIONS.c


class HistoryPurge:
    """Where the last call ended is known to this process alone: one that starts begins with the
    oldest entry."""

    def __init__(self) -> None:
        self._after = CompactionId(0)

    def purge(self, work: Work, before_ms: int) -> int:
        """Drop what :func:`overtaken` names of the targets whose turn it is; how many."""
        connection = work.connection
        ids = connection.scalars(
            select(_H.CC_ID).where(_H.CC_ID > self._after).order_by(_H.CC_ID).limit(ENTRIES_MAX)
        ).all()
        if not ids:
            self._after = CompactionId(0)
            return 0
        rows = connection.execute(_of_their_targets(ids[0], ids[-1]))
        fields = filter(partial(is_readable, prefix="CC_"), map(history_fields, rows))
        history = map(from_history, fields)
        dropped = overtaken(history, before_ms)[:DROPPED_MAX]
        for batch in batches(dropped):
            connection.execute(delete(COMPLETED_COMPACTIONS).where(_H.CC_ID.in_(batch)))
        self._after = CompactionId(ids[-1] if len(ids) == ENTRIES_MAX else 0)
        return len(dropped)


def overtaken(history: Iterable[Compaction], before_ms: int) -> tuple[CompactionId, ...]:
    """Entries that the history need not keep: beyond :data:`KEPT`, and unsuccessful ones that are
    from before a time and were made good by a later major, or a minor by a later minor."""
    dropped: list[CompactionId] = []
    counts: dict[tuple[Target, CompactionState], int] = {}
    succeeded: dict[Target, set[CompactionType]] = {}
    # The newest first: so `made_good` holds what came after an entry.
    for entry in sorted(history, key=lambda compaction: compaction.id, reverse=True):
        made_good = succeeded.setdefault(entry.target, set())
        if entry.state is CompactionState.SUCCEEDED:
            made_good.add(entry.type)
        if entry.state not in KEPT:
            continue
        counted = (entry.target, entry.state)
        counts[counted] = counts.get(counted, 0) + 1
        is_old = (entry.enqueued_ms or entry.ended_ms or 0) < before_ms
        is_made_good = CompactionType.MAJOR in made_good or (
            entry.type is CompactionType.MINOR and CompactionType.MINOR in made_good
        )
        is_useless = entry.state is not CompactionState.SUCCEEDED and is_old and is_made_good
        if counts[counted] > KEPT[entry.state] or is_useless:
            dropped.append(entry.id)
    return tuple(dropped)


def _of_their_targets(first: int, last: int) -> CompoundSelect[Any]:
    """All entries of the targets that entries with these ids have; by the index on targets."""
    page = (
        select(_H.CC_DATABASE, _H.CC_TABLE, _H.CC_PARTITION)
        .where(_H.CC_ID.between(first, last))
        .distinct()
        .subquery()
        .c
    )
    entries = select(*HISTORY_COLUMNS)
    same_table = and_(page.CC_DATABASE == _H.CC_DATABASE, page.CC_TABLE == _H.CC_TABLE)
    return union_all(
        entries.where(same_table, page.CC_PARTITION == _H.CC_PARTITION),
        entries.where(same_table, page.CC_PARTITION.is_(None), _H.CC_PARTITION.is_(None)),
    )
