"""What the initiator asks: which tables and partitions may need a compaction (Hive:
FindPotentialCompactionsFunction; docs/hive/compaction.md §13)."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import func, select

from hms_bridge.backend.schema.txn_tables import COMPLETED_TXN_COMPONENTS
from hms_bridge.backend.work import Work
from hms_bridge.model.compaction import PotentialCompaction
from hms_bridge.model.target import Target
from hms_bridge.txn.aborted_writes import aborted_targets

_D = COMPLETED_TXN_COMPONENTS.c


def find_potential_compactions(
    work: Work, aborted_threshold: int, aborted_time_threshold_ms: int
) -> tuple[PotentialCompaction, ...]:
    """Targets with committed writes since they were compacted last, or with too many or too old
    aborted ones (a negative time: never too old).

    All that were written to: a limit, as Hive has it, would hide the same ones each time.
    """
    connection = work.connection
    written = connection.execute(
        select(
            _D.CTC_DATABASE,
            _D.CTC_TABLE,
            _D.CTC_PARTITION,
            func.count(),
            func.max(_D.CTC_WRITEID),
        )
        .where(_D.CTC_TABLE.is_not(None))
        .group_by(_D.CTC_DATABASE, _D.CTC_TABLE, _D.CTC_PARTITION)
    )
    potential = {
        Target(database, table, partition): PotentialCompaction(
            target=Target(database, table, partition),
            write_count=count,
            highest_write_id=highest,
        )
        for database, table, partition, count, highest in written
    }
    aborted = aborted_targets(work, aborted_threshold, aborted_time_threshold_ms)
    for target, (has_too_many, has_old, _) in aborted.items():
        known = potential.get(target) or PotentialCompaction(target=target)
        potential[target] = replace(known, has_too_many_aborts=has_too_many, has_old_abort=has_old)
    return tuple(potential.values())
