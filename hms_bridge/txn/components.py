"""What open and aborted transactions wrote (TXN_COMPONENTS).

A row must outlive its transaction's abort until the files are gone: a transaction that nobody
remembers counts as committed (docs/hive/transactions.md §11). Which locks make rows:
docs/hive/transactions.md §15.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Insert,
    ScalarSelect,
    Select,
    String,
    and_,
    bindparam,
    delete,
    exists,
    insert,
    literal,
    null,
    or_,
    select,
    update,
)

from hms_bridge.backend.batches import batches, insert_rows
from hms_bridge.backend.dialect import is_postgresql, null_safe_equals
from hms_bridge.backend.fixed_sql import FixedSql, KeyedSql, json_rows
from hms_bridge.backend.schema.metadata import LETTER
from hms_bridge.backend.schema.txn_tables import TXN_COMPONENTS, TXN_TO_WRITE_ID, TXNS
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.lock import CHANGES, DataOperation, LockComponent
from hms_bridge.model.target import Scope, Target
from hms_bridge.model.txn import DynamicPartitions, TxnState
from hms_bridge.txn.named_target import is_named, is_of_table, values_of
from hms_bridge.txn.names import require_fitting
from hms_bridge.txn.txn_state import is_open, lock_open_txn

_T = TXN_COMPONENTS.c
_W = TXN_TO_WRITE_ID.c
_UNTRACKED = frozenset({DataOperation.SELECT, DataOperation.NO_TXN})
_TXN_ID = bindparam("txn_id", type_=BigInteger)
_IN_DATABASE = bindparam("database", type_=String)
_OF_TABLE = bindparam("table", type_=String)
_COMPONENT = (
    "TC_TXNID",
    "TC_DATABASE",
    "TC_TABLE",
    "TC_PARTITION",
    "TC_OPERATION_TYPE",
    "TC_WRITEID",
)
_PLACE = (_T.TC_DATABASE, _T.TC_TABLE, _T.TC_PARTITION)
_IS_OPEN = TXNS.c.TXN_STATE == TxnState.OPEN.value


def _write_id_of(
    txn_id: ColumnElement[int], database: ColumnElement[str], table: ColumnElement[str]
) -> ScalarSelect[Any]:
    return (
        select(_W.T2W_WRITEID)
        # By the transaction's index alone, as a sum is in none: in a plan of an empty table
        # PostgreSQL takes that of tables, and then goes through all write ids of one.
        .where(
            _W.T2W_TXNID == txn_id,
            _W.T2W_DATABASE + "" == database,
            _W.T2W_TABLE + "" == table,
        )
        .scalar_subquery()
    )


def _tracked_of(
    is_wanted: ColumnElement[bool], txn_id: ColumnElement[int] = TXNS.c.TXN_ID
) -> Insert:
    """Only of open ones: that they are, whoever asks may still have to look at."""
    return insert(TXN_COMPONENTS).from_select(
        _COMPONENT,
        select(
            TXNS.c.TXN_ID,
            _IN_DATABASE,
            _OF_TABLE,
            bindparam("partition", type_=String),
            bindparam("operation", type_=LETTER),
            _write_id_of(txn_id, _IN_DATABASE, _OF_TABLE),
        ).where(is_wanted, _IS_OPEN),
    )


_TRACK = FixedSql(_tracked_of(_TXN_ID == TXNS.c.TXN_ID, _TXN_ID))
_TRACK_SEVERAL = KeyedSql(TXNS.c.TXN_ID, _tracked_of)


def _track_all() -> Insert:
    """Of rows in a JSON text."""
    given = json_rows("rows", TXN_COMPONENTS, _COMPONENT[:-1]).c
    write_id = _write_id_of(given.TC_TXNID, given.TC_DATABASE, given.TC_TABLE)
    rows = select(*given, write_id).where(is_open(given.TC_TXNID))
    return insert(TXN_COMPONENTS).from_select(_COMPONENT, rows)


_TRACK_ALL = FixedSql(_track_all())
_WRITE_IDS = FixedSql(
    select(_W.T2W_DATABASE, _W.T2W_TABLE, _W.T2W_WRITEID).where(_W.T2W_TXNID == _TXN_ID)
)
_SILENT_WRITES = select(
    _W.T2W_TXNID,
    _W.T2W_DATABASE,
    _W.T2W_TABLE,
    null(),
    literal(DataOperation.INSERT.stored),
    _W.T2W_WRITEID,
).where(
    ~exists().where(
        _T.TC_TXNID == _W.T2W_TXNID,
        _T.TC_DATABASE == _W.T2W_DATABASE,
        _T.TC_TABLE == _W.T2W_TABLE,
        _T.TC_OPERATION_TYPE != DataOperation.COMPACT.stored,
    )
)
# Who renames their table is waited for, and waits: the rows that are made of these have its name.
_SILENT = KeyedSql(
    _W.T2W_TXNID,
    lambda is_of_txn: _SILENT_WRITES.where(is_of_txn).with_for_update(read=True),
)
_GIVE_WRITE_IDS = KeyedSql(
    _T.TC_TXNID,
    lambda is_of_txn: (
        update(TXN_COMPONENTS)
        .where(
            is_of_txn,
            _T.TC_DATABASE == _IN_DATABASE,
            _T.TC_TABLE == _OF_TABLE,
            _T.TC_OPERATION_TYPE != DataOperation.COMPACT.stored,
        )
        .values(
            TC_WRITEID=select(_W.T2W_WRITEID)
            .where(
                _W.T2W_TXNID == _T.TC_TXNID,
                _W.T2W_DATABASE == _IN_DATABASE,
                _W.T2W_TABLE == _OF_TABLE,
            )
            .scalar_subquery()
        )
    ),
)


_ONE_COMPONENT = {
    name: bindparam(name.removeprefix("TC_").lower(), type_=_T[name].type) for name in _COMPONENT
}
_HIGHEST = bindparam("highest", type_=BigInteger)
_BEFORE_MS = bindparam("before_ms", type_=BigInteger)


@cache
def _compaction_notes(*, has_partition: bool) -> tuple[FixedSql, FixedSql]:
    """What a compaction covers, in its row; the row, if it has none."""
    mine = and_(
        _T.TC_TXNID == _ONE_COMPONENT["TC_TXNID"],
        _T.TC_OPERATION_TYPE == _ONE_COMPONENT["TC_OPERATION_TYPE"],
        is_named(*_PLACE, has_partition=has_partition),
    )
    missing = select(*_ONE_COMPONENT.values()).where(~exists().where(mine))
    return (
        FixedSql(
            update(TXN_COMPONENTS).where(mine).values(TC_WRITEID=_ONE_COMPONENT["TC_WRITEID"])
        ),
        FixedSql(insert(TXN_COMPONENTS).from_select(_COMPONENT, missing)),
    )


def track_locked(
    connection: Connection, txn_id: TxnId, components: Sequence[LockComponent]
) -> None:
    """Remember what the locks of a transaction say that it writes. Names are in lower case."""
    rows = tracked_rows(components)
    if not rows:
        return
    if len(rows) == 1:
        _TRACK.later(connection, txn_id=txn_id, **_tracked(*rows[0]))
        return
    write_ids = _write_ids(connection, txn_id)
    connection.execute(
        insert(TXN_COMPONENTS),
        [
            component_row(txn_id, scope, operation, write_ids.get((scope.database, scope.table)))
            for scope, operation in rows
        ],
    )


def track_each(connection: Connection, locked: Iterable[tuple[TxnId, LockComponent]]) -> None:
    """As :func:`track_locked`, for one component of each of several transactions, of which only
    PostgreSQL takes one twice."""
    rows = [(txn_id, *row) for txn_id, component in locked for row in tracked_rows([component])]
    if is_postgresql(connection):
        if rows:
            given = [component_row(*row, None) for row in rows]
            _TRACK_ALL.later(connection, rows=json.dumps(given))
        return
    txn_ids: dict[tuple[Scope, DataOperation], list[TxnId]] = {}
    for txn_id, scope, operation in rows:
        txn_ids.setdefault((scope, operation), []).append(txn_id)
    for (scope, operation), alike in txn_ids.items():
        _TRACK_SEVERAL.change(connection, alike, **_tracked(scope, operation))


def _tracked(scope: Scope, operation: DataOperation) -> dict[str, Any]:
    return {
        "database": scope.database,
        "table": scope.table,
        "partition": scope.partition,
        "operation": operation.stored,
    }


def note_compaction(
    connection: Connection, txn_id: TxnId, target: Target, highest: WriteId
) -> None:
    """Remember what a compaction covers, so that an aborted one is known until its output is
    gone."""
    known, missing = _compaction_notes(has_partition=target.partition is not None)
    row = component_row(txn_id, target, DataOperation.COMPACT, highest)
    values = {name.removeprefix("TC_").lower(): value for name, value in row.items()}
    known.later(connection, **values)
    missing.later(connection, **values)


def component_row(
    txn_id: TxnId, at: Scope | Target, operation: DataOperation, write_id: WriteId | None
) -> dict[str, Any]:
    """A row of TXN_COMPONENTS."""
    return {
        "TC_TXNID": txn_id,
        "TC_DATABASE": at.database,
        "TC_TABLE": at.table,
        "TC_PARTITION": at.partition,
        "TC_OPERATION_TYPE": operation.stored,
        "TC_WRITEID": write_id,
    }


def tracked_rows(
    components: Iterable[LockComponent],
) -> tuple[tuple[Scope, DataOperation], ...]:
    """What is written, and how, each once.

    An operation that the client did not name counts as an update, the one that conflicts. A
    dynamic-partition write stands once per table, without a partition, until
    :func:`add_dynamic_partitions` names those it wrote.
    """
    fixed: dict[tuple[Scope, DataOperation], None] = {}
    dynamic: dict[Scope, DataOperation] = {}
    for component in components:
        if component.is_transactional is False or component.operation in _UNTRACKED:
            continue
        operation = component.operation
        if operation is None or operation is DataOperation.UNSET:
            operation = DataOperation.UPDATE
        if not component.is_dynamic_partition_write:
            fixed[(component.scope, operation)] = None
            continue
        table = replace(component.scope, partition=None)
        if operation in CHANGES:
            dynamic[table] = DataOperation.UPDATE
        else:
            dynamic.setdefault(table, DataOperation.INSERT)
    return (*fixed, *dynamic.items())


def add_dynamic_partitions(connection: Connection, partitions: DynamicPartitions) -> None:
    """Replace the placeholder of a dynamic-partition write by the partitions it touched.

    Raises NoSuchTxnError, TxnAbortedError, MetaError for names that do not fit.
    """
    lock_open_txn(connection, partitions.txn_id)
    operation = partitions.operation
    if operation is None or operation is DataOperation.UNSET:
        operation = DataOperation.UPDATE
    database, table = partitions.database_name.lower(), partitions.table_name.lower()
    for name in partitions.partition_names:
        require_fitting(Target(database, table, name))
    for names in batches(partitions.partition_names):
        targets = [Target(database, table, name) for name in names]
        connection.execute(
            insert(TXN_COMPONENTS),
            [
                component_row(partitions.txn_id, target, operation, partitions.write_id)
                for target in targets
            ],
        )
    connection.execute(
        delete(TXN_COMPONENTS).where(
            _T.TC_TXNID == partitions.txn_id,
            _T.TC_DATABASE == database,
            _T.TC_TABLE == table,
            _T.TC_PARTITION.is_(None),
        )
    )


def give_write_ids(
    connection: Connection, txn_ids: Sequence[TxnId], database: str, table: str
) -> None:
    """Note in the rows of locks that were taken first the write id that came since.

    Without it a cleaner could not tell up to where they are done with.
    """
    _GIVE_WRITE_IDS.change(connection, txn_ids, database=database, table=table)


def track_unlocked(connection: Connection, txn_ids: Sequence[TxnId]) -> None:
    """Remember, table by table, transactions that took write ids but reported nothing they wrote.

    Called at their abort: files may lie there, and without a row the transaction would soon be
    forgotten, which makes them visible.
    """
    names = [column.name for column in TXN_COMPONENTS.c]
    rows = [dict(zip(names, row, strict=True)) for row in _SILENT.all(connection, txn_ids)]
    insert_rows(connection, TXN_COMPONENTS, rows)


def forget_aborted(
    connection: Connection, target: Target, *, before_ms: int, write_ids: Sequence[WriteId]
) -> None:
    """Drop rows of write ids of transactions that aborted before a time, and whose files are gone.

    Open transactions' rows stay whatever is asked.
    """
    mine = and_(at_target(target), _T.TC_TXNID.in_(_aborted(before_ms)))
    for batch in batches(write_ids):
        connection.execute(delete(TXN_COMPONENTS).where(mine, _T.TC_WRITEID.in_(batch)))


def forget_aborted_without_table(connection: Connection) -> None:
    """Drop rows of transactions that aborted, and by their locks changed whole databases: rows of
    data are of tables, so no cleaner comes for these."""
    aborted = select(TXNS.c.TXN_ID).where(TXNS.c.TXN_STATE == TxnState.ABORTED.value)
    connection.execute(
        delete(TXN_COMPONENTS).where(_T.TC_TABLE.is_(None), _T.TC_TXNID.in_(aborted))
    )


def forget_aborted_up_to(
    connection: Connection,
    target: Target,
    highest: WriteId,
    *,
    before_ms: int,
    is_whole_table: bool = False,
) -> None:
    """As :func:`forget_aborted`, for all write ids up to one; with ``is_whole_table`` also those of
    the partitions of a target that is a table."""
    forget = _forget_up_to(
        has_partition=target.partition is not None, is_whole_table=is_whole_table
    )
    forget.later(connection, highest=highest, before_ms=before_ms, **values_of(target))


@cache
def _forget_up_to(*, has_partition: bool, is_whole_table: bool) -> FixedSql:
    later = exists().where(
        _W.T2W_TXNID == _T.TC_TXNID,
        _W.T2W_DATABASE == _T.TC_DATABASE,
        _W.T2W_TABLE == _T.TC_TABLE,
        _W.T2W_WRITEID > _HIGHEST,
    )
    done = or_(_T.TC_WRITEID <= _HIGHEST, and_(_T.TC_WRITEID.is_(None), ~later))
    here = is_named(*_PLACE, has_partition=has_partition)
    if is_whole_table:
        here = is_of_table(_T.TC_DATABASE, _T.TC_TABLE)
    mine = and_(here, _T.TC_TXNID.in_(_aborted(_BEFORE_MS)))
    return FixedSql(delete(TXN_COMPONENTS).where(mine, done))


def _aborted(before_ms: int | ColumnElement[int]) -> Select[Any]:
    return select(TXNS.c.TXN_ID).where(is_aborted_before(before_ms))


def is_aborted_before(before_ms: int | ColumnElement[int]) -> ColumnElement[bool]:
    """TXNS that aborted before a time. Our aborts leave it as the last sign of life; of one that
    Hive's metastore aborted it is the last heartbeat."""
    is_aborted = TXNS.c.TXN_STATE == TxnState.ABORTED.value
    return and_(is_aborted, TXNS.c.TXN_LAST_HEARTBEAT <= before_ms)


def at_target(target: Target) -> ColumnElement[bool]:
    """TXN_COMPONENTS of exactly one table or partition; None is the table level, no wildcard."""
    return and_(
        _T.TC_DATABASE == target.database,
        _T.TC_TABLE == target.table,
        null_safe_equals(_T.TC_PARTITION, target.partition),
    )


def _write_ids(
    connection: Connection, txn_id: TxnId
) -> dict[tuple[str | None, str | None], WriteId]:
    rows = _WRITE_IDS.all(connection, txn_id=txn_id)
    return {(database, table): WriteId(write_id) for database, table, write_id in rows}
