"""Which write ids of a table a transaction snapshot sees (Hive: GetValidWriteIdsForTableFunction;
docs/hive/transactions.md §6).

A write id below the high watermark without a row in TXN_TO_WRITE_ID is committed. So housekeeping
purges rows of a table only from the lowest id on, and those of aborted transactions last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import BigInteger, Connection, bindparam, case, func, select

from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.schema.txn_tables import TXN_TO_WRITE_ID, TXNS
from hms_bridge.backend.work import Work
from hms_bridge.errors import MetaError
from hms_bridge.model.ids import NO_TXN, TxnId, WriteId
from hms_bridge.model.target import TableName
from hms_bridge.model.txn import ANY_TIME_MS, AbortedSince, AbortReason, TxnState
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.txn.asked_write_ids import IS_HERE
from hms_bridge.txn.open_txns import get_open_txns
from hms_bridge.txn.write_ids import get_max_allocated_write_id, of_table

_W = TXN_TO_WRITE_ID.c
_HIGHEST = FixedSql(
    select(func.max(_W.T2W_WRITEID)).where(
        IS_HERE, _W.T2W_TXNID <= bindparam("txn_id", type_=BigInteger)
    )
)
_OWNERS = FixedSql(
    select(_W.T2W_TXNID, _W.T2W_WRITEID)
    .where(IS_HERE, _W.T2W_WRITEID <= bindparam("write_id", type_=BigInteger))
    .order_by(_W.T2W_WRITEID)
)

_SINCE = case(
    (TXNS.c.TXN_META_INFO == AbortReason.REPL_WRITE_ID.text, ANY_TIME_MS), else_=TXNS.c.TXN_STARTED
)
_IS_ABORTED = TXNS.c.TXN_STATE == TxnState.ABORTED.value
_ABORTED_TXNS = FixedSql(select(TXNS.c.TXN_ID, _SINCE).where(_IS_ABORTED))
_ABORTED_WRITES = FixedSql(
    select(_W.T2W_WRITEID, _SINCE)
    .join_from(TXN_TO_WRITE_ID, TXNS, TXNS.c.TXN_ID == _W.T2W_TXNID)
    .where(IS_HERE, _IS_ABORTED)
)


def get_valid_write_ids(
    work: Work,
    full_table_names: Sequence[str],
    valid_txns: ValidTxnList | None = None,
    write_id: WriteId | None = None,
) -> tuple[ValidWriteIdList, ...]:
    """One list a table, in the order asked.

    Under the given snapshot; else under that of the transaction that owns ``write_id`` of the
    first table; else under a new one. Raises MetaError for a name that is not ``database.table``,
    and for a write id that nobody owns.
    """
    connection = work.connection
    tables = [TableName.parse(name.lower()) for name in full_table_names]
    if valid_txns is None:
        current = NO_TXN
        if write_id is not None and tables:
            current = _owner(connection, tables[0], write_id)
        valid_txns = get_open_txns(work).snapshot(current)
    highest = [
        _HIGHEST.read_later(
            connection,
            txn_id=valid_txns.high_watermark,
            database=table.database,
            table=table.table,
        )
        for table in tables
    ]
    reached = [
        _reached(connection, table, answer.rows[0][0])
        for table, answer in zip(tables, highest, strict=True)
    ]
    owners = [
        _OWNERS.read_later(
            connection, write_id=highest_id, database=table.database, table=table.table
        )
        if highest_id
        else None
        for table, highest_id in zip(tables, reached, strict=True)
    ]
    return tuple(
        judge(str(table), WriteId(highest_id), () if rows is None else rows.rows, valid_txns)
        for table, highest_id, rows in zip(tables, reached, owners, strict=True)
    )


def aborted_since(
    connection: Connection, full_table_names: Sequence[str]
) -> tuple[AbortedSince, ...]:
    """When those were opened that are aborted now: for each table. Raises MetaError for a name
    that is not ``database.table``.

    The transactions that took over a replication source's aborted write ids say nothing of files.
    """
    tables = [TableName.parse(name.lower()) for name in full_table_names]
    opened = {TxnId(txn_id): opened_ms for txn_id, opened_ms in _ABORTED_TXNS.all(connection)}
    if not opened:  # nor is any write id aborted: no table need be looked at
        return (AbortedSince(txns={}, write_ids={}),) * len(tables)
    owned = [
        _ABORTED_WRITES.read_later(connection, database=table.database, table=table.table)
        for table in tables
    ]
    return tuple(
        AbortedSince(
            txns=opened,
            write_ids={WriteId(write_id): opened_ms for write_id, opened_ms in writes.rows},
        )
        for writes in owned
    )


def _owner(connection: Connection, table: TableName, write_id: WriteId) -> TxnId:
    owner = connection.execute(
        select(_W.T2W_TXNID).where(
            of_table(table.database, table.table), _W.T2W_WRITEID == write_id
        )
    ).scalar()
    if owner is None:
        raise MetaError(f"invalid write id {write_id} of {table}: no transaction has it")
    return TxnId(owner)


def _reached(connection: Connection, table: TableName, highest: int | None) -> int:
    """Up to where write ids are judged; 0 for a table without any."""
    if highest and highest > 0:
        return highest
    return get_max_allocated_write_id(connection, table.database, table.table)


def judge(
    full_name: str,
    high_watermark: WriteId,
    rows: Iterable[tuple[TxnId, WriteId]],
    valid_txns: ValidTxnList,
) -> ValidWriteIdList:
    """The list of a table, from its (transaction, write id) rows up to the watermark, ascending.

    Hive's ends at the lowest open or aborted one if none of them is valid
    (docs/hive/transactions.md §6). Then nobody can read a partition any more whose compaction
    reaches beyond that.
    """
    highest, (not_ended, were_aborted) = valid_txns.high_watermark, valid_txns.members()
    opened: list[WriteId] = []
    aborted: list[WriteId] = []
    for txn_id, write_id in rows:
        if txn_id in were_aborted and txn_id not in not_ended:
            aborted.append(write_id)
        elif txn_id > highest or txn_id in not_ended:
            opened.append(write_id)
    return ValidWriteIdList(
        table=full_name,
        high_watermark=high_watermark,
        open_ids=tuple(opened),
        aborted_ids=tuple(aborted),
    )
