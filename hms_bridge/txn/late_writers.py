"""Writers that outlive their table: a DROP without a lock, or a rename that moves the directory.

Write ids are counted by name, files lie at a place, and a table that is made there again counts
anew. Transaction 9 has write id 4 of db.t; db.t is dropped and made again; 9 brings delta_4, which
the fourth write of the new table would make visible. So

* a drop aborts the open transactions that have a write id of the table: their commits are refused;
* HMSB_LATE_WRITER keeps what they, and those that aborted within the retention, may still bring:
  place and write id;
* a table that is made at that place has these write ids, aborted, and counts on above them. So
  readers, the cleaner and its retention treat the files as those of any aborted write.

Compactions write without a write id of their own (:mod:`hms_bridge.txn.late_compactions`); what is
remembered of them is up to where they reach.

Hive forgets all of it (AcidEventListener, CleanupRecordsFunction; docs/hive/transactions.md §19).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Select, and_, delete, or_, select, update

from changemanager.location import spellings
from hms_bridge.acid.names import DirectoryName
from hms_bridge.backend.batches import batches
from hms_bridge.backend.connection import Connection
from hms_bridge.backend.dialect import insert_or_update
from hms_bridge.backend.schema.txn_tables import (
    HMSB_LATE_WRITER,
    NEXT_WRITE_ID,
    TXN_TO_WRITE_ID,
    TXNS,
)
from hms_bridge.backend.work import Work
from hms_bridge.errors import MetaError, MetastoreError
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.txn import AbortReason, OpenTxnsRequest, TxnState, TxnToWriteId, TxnType
from hms_bridge.txn.abort import AbortOutcome, abort_txns
from hms_bridge.txn.aborted_writes import aborts_end_ms
from hms_bridge.txn.late_compactions import compactions_of, give_to, is_compaction
from hms_bridge.txn.open_txns import open_txns
from hms_bridge.txn.txn_state import ended_error
from hms_bridge.txn.write_ids import (
    get_max_allocated_write_id,
    has_write_ids,
    of_table,
    put_write_ids,
    start_counter,
)

_L = HMSB_LATE_WRITER.c
_W = TXN_TO_WRITE_ID.c
_N = NEXT_WRITE_ID.c
_LEFT_ALONE = (int(TxnType.REPL_CREATED), int(TxnType.SOFT_DELETE))
"""A replay ends as its source's transaction did; a soft drop is the drop's own transaction."""
_NAMED_MAX = 10


def end_writers(work: Work, table: Table) -> AbortOutcome | None:
    """Abort who writes to a table that is dropped, and write down what may come late.

    The counter of write ids is held from here on, so nobody takes one meanwhile.
    """
    connection, outcome = work.connection, None
    if get_max_allocated_write_id(connection, table.database_name, table.name, is_locked=True):
        outcome = abort_txns(work, _open_writers(connection, table))
    note_writers(work, table)
    return outcome


def note_writers(work: Work, table: Table) -> None:
    """Write down what may come late to the table's place, which another table may get."""
    place = table.storage.location
    if place is None:
        return
    now_ms = work.now_ms
    is_late = or_(
        TXNS.c.TXN_STATE == TxnState.OPEN.value,
        and_(
            TXNS.c.TXN_STATE == TxnState.ABORTED.value,
            TXNS.c.TXN_LAST_HEARTBEAT >= aborts_end_ms(work, now_ms),
        ),
    )
    rows = [
        *work.connection.execute(_written(table).where(is_late)).all(),
        *compactions_of(work.connection, table, is_late),
    ]
    late = [
        {
            "LW_TXN_ID": txn_id,
            "LW_DATABASE": table.database_name,
            "LW_TABLE": table.name,
            "LW_WRITE_ID": write_id,
            "LW_PLACE": place,
            "LW_NOTED_MS": now_ms,
        }
        for txn_id, write_id in rows
    ]
    keys = [_L.LW_TXN_ID, _L.LW_DATABASE, _L.LW_TABLE, _L.LW_WRITE_ID]
    for batch in batches(late):
        insert_or_update(work.connection, HMSB_LATE_WRITER, keys, batch)


def take_over(work: Work, table: Table, *, is_of_load: bool) -> WriteId | None:
    """Give a new table the write ids of what may come late to its place, aborted, and the aborted
    compactions. No event is due: nobody has seen the transactions open. What a load makes has its
    source's write ids. The write id above which the table's own begin; None where that is the
    first.

    Raises MetaError if writes of its own have them already: they were asked for by its name before
    it was made.
    """
    connection = work.connection
    here = (
        select(_L.LW_TXN_ID, _L.LW_WRITE_ID, is_compaction(TXNS.c.TXN_TYPE).label("is_compaction"))
        .outerjoin_from(HMSB_LATE_WRITER, TXNS, TXNS.c.TXN_ID == _L.LW_TXN_ID)
        .where(_L.LW_PLACE.in_(spellings(table.storage.location or "")))
    )
    rows = connection.execute(here).all()
    if not rows:
        return None if is_of_load else _highest_before(connection, table)
    compactions = [(row.LW_TXN_ID, row.LW_WRITE_ID) for row in rows if row.is_compaction]
    give_to(connection, table, compactions)
    if is_of_load:
        return None
    highest = WriteId(max(row.LW_WRITE_ID for row in rows))
    _raise_counter(connection, table, highest)
    write_ids = {WriteId(row.LW_WRITE_ID) for row in rows if not row.is_compaction}
    new = _without_aborted(connection, table, sorted(write_ids))
    for batch in batches(new, work.settings.txn.open_batch_max):
        request = OpenTxnsRequest(count=len(batch), user="hms-bridge", host="late writers")
        ids = open_txns(work, request).ids
        pairs = [
            TxnToWriteId(txn_id=txn_id, write_id=write_id)
            for txn_id, write_id in zip(ids, batch, strict=True)
        ]
        put_write_ids(connection, table.database_name, table.name, pairs)
        abort_txns(work, ids, AbortReason.NONE)
    return _highest_before(connection, table)


def _highest_before(connection: Connection, table: Table) -> WriteId | None:
    """A CREATE TABLE AS SELECT that failed leaves its write id to the name; one that is open has
    the table's first."""
    highest = get_max_allocated_write_id(connection, table.database_name, table.name)
    if highest:
        is_open = TXNS.c.TXN_STATE == TxnState.OPEN.value
        opened = connection.execute(_written(table).where(is_open)).all()
        highest = min([highest, *(WriteId(write_id - 1) for _, write_id in opened)])
    return highest or None


def require_own(connection: Connection, table: Table, there: Sequence[DirectoryName]) -> None:
    """Raises MetaError if a directory at the place of a new table is not of writes or compactions
    that the table has: its rows would be the table's once that has as many writes. The table has
    what CREATE TABLE AS SELECT wrote before it is made, and what :func:`take_over` gave it."""
    if not there:
        return
    compactions = {txn_id for txn_id, _ in compactions_of(connection, table)}
    here = select(_W.T2W_WRITEID).where(of_table(table.database_name, table.name))
    written = set(connection.scalars(here))
    for name in there:
        is_own = (
            name.visibility_txn_id in compactions
            if name.visibility_txn_id
            else name.min_write_id in written and name.max_write_id in written
        )
        if not is_own:
            raise MetaError(
                f"{table.full_name} cannot be made at {table.storage.location}: {name.format()} "
                "lies there, of a table that was there before, and its rows would come back. Move "
                "it away or delete it, make the table at another place, or register what is there "
                "with 'hms-bridge table adopt'"
            )


def ended_writer_error(
    connection: Connection, txn_id: TxnId, state: TxnState | None
) -> MetastoreError:
    """The refusal of a commit of a transaction that is not open; it names the table that went."""
    error = ended_error(txn_id, state)
    if state is not TxnState.ABORTED:
        return error
    row = connection.execute(
        select(_L.LW_DATABASE, _L.LW_TABLE, _L.LW_WRITE_ID).where(_L.LW_TXN_ID == txn_id).limit(1)
    ).first()
    if row is None:
        return error
    return type(error)(
        f"{error}: {row.LW_DATABASE}.{row.LW_TABLE}, of which it has write id {row.LW_WRITE_ID}, "
        "was dropped or renamed meanwhile; nothing of the transaction is visible. Run the "
        "statement again"
    )


def forget_late_writers(work: Work) -> int:
    """Drop what is older than the retention of aborts; how many rows."""
    gone = _L.LW_NOTED_MS < aborts_end_ms(work, work.now_ms)
    return work.connection.execute(delete(HMSB_LATE_WRITER).where(gone)).rowcount


def _open_writers(connection: Connection, table: Table) -> list[TxnId]:
    is_open = TXNS.c.TXN_STATE == TxnState.OPEN.value
    rows = connection.execute(_written(table).where(is_open))
    return [TxnId(txn_id) for txn_id, _ in rows]


def _written(table: Table) -> Select[Any]:
    """Transactions and their write ids of the table; each is open, aborted or forgotten soon."""
    return (
        select(_W.T2W_TXNID, _W.T2W_WRITEID)
        .join_from(TXN_TO_WRITE_ID, TXNS, TXNS.c.TXN_ID == _W.T2W_TXNID)
        .where(
            of_table(table.database_name, table.name),
            or_(TXNS.c.TXN_TYPE.is_(None), TXNS.c.TXN_TYPE.not_in(_LEFT_ALONE)),
        )
    )


def _raise_counter(connection: Connection, table: Table, highest: WriteId) -> None:
    """The next write id is above this one; the counter's row is held."""
    database, name = table.database_name, table.name
    after = highest + 1
    get_max_allocated_write_id(connection, database, name, is_locked=True)
    if not has_write_ids(connection, database, name):
        start_counter(connection, database, name, after)
        return
    is_lower = and_(_N.NWI_DATABASE == database, _N.NWI_TABLE == name, _N.NWI_NEXT < after)
    connection.execute(update(NEXT_WRITE_ID).where(is_lower).values(NWI_NEXT=after))


def _without_aborted(
    connection: Connection, table: Table, write_ids: Sequence[WriteId]
) -> list[WriteId]:
    """Those that the table has not, aborted, already. Raises MetaError where it has one that is
    not: asked for by its name before it was made."""
    states: dict[int, str | None] = {}
    for batch in batches(write_ids):
        rows = connection.execute(
            select(_W.T2W_WRITEID, TXNS.c.TXN_STATE)
            .outerjoin_from(TXN_TO_WRITE_ID, TXNS, TXNS.c.TXN_ID == _W.T2W_TXNID)
            .where(of_table(table.database_name, table.name), _W.T2W_WRITEID.in_(batch))
        )
        states.update((write_id, state) for write_id, state in rows)
    taken = [write_id for write_id, state in states.items() if state != TxnState.ABORTED.value]
    if taken:
        named = ", ".join(map(str, sorted(taken)[:_NAMED_MAX]))
        raise MetaError(
            f"{table.full_name} cannot be made at {table.storage.location}: its write ids {named} "
            "were given before it is made, and writers of a table that was dropped there have the "
            "same ones; make it at another place, or when hms.bridge.cleaner.abort.retention has "
            "passed since the drop"
        )
    return [write_id for write_id in write_ids if write_id not in states]
