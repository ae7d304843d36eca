"""Rebuilds of materialized views: one at a time, and what changed in the tables since the last.

Hive: LockMaterializationRebuildFunction, HeartbeatLockMaterializationRebuild…,
GetMaterializationInvalidationInfoFunction.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, insert, or_, select, update

from hms_bridge.backend.batches import BATCH_MAX
from hms_bridge.backend.schema.txn_tables import (
    COMPACTION_QUEUE,
    COMPLETED_COMPACTIONS,
    COMPLETED_TXN_COMPONENTS,
    MATERIALIZATION_REBUILD_LOCKS,
)
from hms_bridge.backend.work import Work
from hms_bridge.errors import MetaError
from hms_bridge.model.catalog import CreationMetadata
from hms_bridge.model.ids import TxnId
from hms_bridge.model.materialization import MaterializationChanges
from hms_bridge.model.valid_ids import ValidTxnList, ValidTxnWriteIdList, ValidWriteIdList
from hms_bridge.txn import mutex
from hms_bridge.txn.mutex import Mutex
from hms_bridge.txn.names import require_texts_fit
from hms_bridge.txn.valid_write_ids import get_valid_write_ids

_L = MATERIALIZATION_REBUILD_LOCKS.c


@dataclass(frozen=True, kw_only=True, slots=True)
class _Source:
    """A table of a view: its name, and the write ids that the view was made of."""

    database: str
    table: str
    seen: ValidWriteIdList


def lock_rebuild(work: Work, database: str, view: str, txn_id: TxnId) -> bool:
    """Whether this transaction may rebuild the view: nobody else is at it. Raises MetaError for
    names that are too long, and for a second view of one transaction, as Hive's key is its id."""
    database, view = database.lower(), view.lower()
    require_texts_fit(
        ("database name", database, _L.MRL_DB_NAME), ("view name", view, _L.MRL_TBL_NAME)
    )
    connection = work.connection
    mutex.hold(connection, Mutex.MATERIALIZATION_REBUILD)
    held = connection.execute(
        select(_L.MRL_TXN_ID).where(_L.MRL_DB_NAME == database, _L.MRL_TBL_NAME == view)
    ).first()
    if held is not None:
        return False
    other = connection.execute(
        select(_L.MRL_DB_NAME, _L.MRL_TBL_NAME).where(_L.MRL_TXN_ID == txn_id)
    ).first()
    if other is not None:
        raise MetaError(
            f"transaction {txn_id} rebuilds {'.'.join(other)} already; take another for {view}"
        )
    connection.execute(
        insert(MATERIALIZATION_REBUILD_LOCKS).values(
            MRL_TXN_ID=txn_id,
            MRL_DB_NAME=database,
            MRL_TBL_NAME=view,
            MRL_LAST_HEARTBEAT=work.clock.now_ms(),
        )
    )
    return True


def heartbeat_rebuild(work: Work, database: str, view: str, txn_id: TxnId) -> bool:
    """Keep such a lock alive; false if the transaction has none."""
    database, view = database.lower(), view.lower()
    changed = work.connection.execute(
        update(MATERIALIZATION_REBUILD_LOCKS)
        .where(_L.MRL_TXN_ID == txn_id, _L.MRL_DB_NAME == database, _L.MRL_TBL_NAME == view)
        .values(MRL_LAST_HEARTBEAT=work.clock.now_ms())
    )
    return changed.rowcount > 0


def changes_since(
    work: Work, creation: CreationMetadata, valid_txns: ValidTxnList
) -> MaterializationChanges | None:
    """What happened to a view's tables since; None where that is not known, so that only a
    rebuild of everything is right."""
    connection = work.connection
    seen = _seen(creation)
    if seen is None or not creation.table_names:
        return None
    names = sorted(creation.table_names)
    current = get_valid_write_ids(work, names, valid_txns=valid_txns)
    sources: list[_Source] = []
    for name, now in zip(names, current, strict=True):
        then = seen.of(name)
        if then is None or _lowest_open(then) != _lowest_open(now):
            return None
        database, _, table = name.partition(".")
        sources.append(_Source(database=database, table=table, seen=then))
    return MaterializationChanges(
        has_updates_or_deletes=any(
            _is_changed(connection, source, valid_txns) for source in sources
        ),
        has_compactions=any(_is_compacted(connection, source) for source in sources),
    )


def _seen(creation: CreationMetadata) -> ValidTxnWriteIdList | None:
    try:
        stored = json.loads(creation.snapshot or "")
    except (ValueError, RecursionError):  # also what is nested too deep: clients write this
        return ValidTxnWriteIdList.parse(creation.snapshot) if creation.snapshot else None
    if (
        not isinstance(stored, dict)
        or stored.get("tableSnapshots")
        or not stored.get("validTxnList")
    ):
        return None
    return ValidTxnWriteIdList.parse(stored["validTxnList"])


def _lowest_open(ids: ValidWriteIdList) -> int | None:
    return min(ids.open_ids, default=None)


def _is_unseen(column: ColumnElement[int], seen: ValidWriteIdList) -> ColumnElement[bool]:
    invalid = [*seen.open_ids, *seen.aborted_ids]
    # More than a statement takes: too much is asked for, never too little.
    if len(invalid) > BATCH_MAX:
        return column >= min(invalid)
    return or_(column > seen.high_watermark, column.in_(invalid))


def _is_changed(connection: Connection, source: _Source, valid_txns: ValidTxnList) -> bool:
    c = COMPLETED_TXN_COMPONENTS.c
    rows = connection.execute(
        select(c.CTC_TXNID).where(
            c.CTC_UPDATE_DELETE == "Y",
            c.CTC_DATABASE == source.database,
            c.CTC_TABLE == source.table,
            _is_unseen(c.CTC_WRITEID, source.seen),
            c.CTC_TXNID <= valid_txns.high_watermark,
        )
    )
    return any(valid_txns.is_valid(TxnId(txn_id)) for (txn_id,) in rows)


def _is_compacted(connection: Connection, source: _Source) -> bool:
    done, queue = COMPLETED_COMPACTIONS.c, COMPACTION_QUEUE.c
    finished = select(done.CC_ID).where(
        done.CC_DATABASE == source.database,
        done.CC_TABLE == source.table,
        _is_unseen(done.CC_HIGHEST_WRITE_ID, source.seen),
    )
    waiting = select(queue.CQ_ID).where(
        queue.CQ_DATABASE == source.database, queue.CQ_TABLE == source.table
    )
    return any(
        connection.execute(query.limit(1)).first() is not None for query in (finished, waiting)
    )
