"""What state a transaction is in, and the refusals that follow from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import ColumnElement, Connection, func, literal_column, select

from hms_bridge.backend.fixed_sql import FixedSql, locking
from hms_bridge.backend.schema.txn_tables import COMPLETED_TXN_COMPONENTS, TXNS
from hms_bridge.errors import MetastoreError, NoSuchTxnError, TxnAbortedError
from hms_bridge.model.ids import TxnId
from hms_bridge.model.txn import TxnState, TxnType

IN_ANY_STATE: ColumnElement[bool] = TXNS.c.TXN_STATE.in_(
    [literal_column(f"'{state.value}'") for state in TxnState]
)
"""Of a row that is looked up by its id. Without a state PostgreSQL, where it knows the table as
empty, takes an index by state and id for it as soon as the one by id (Hive's since 4.1, or ours in
an older database), and reads all of that: of ten thousand open transactions, for each."""
_LOCK = locking(
    TXNS.c.TXN_ID,
    select(TXNS.c.TXN_ID, TXNS.c.TXN_STATE, TXNS.c.TXN_TYPE).where(IN_ANY_STATE).where,
)
_HIGHEST = FixedSql(select(func.max(TXNS.c.TXN_ID)))


# Looked up, as thousands may be open: an enumeration takes ten times as long to find its member.
STATES = {state.value: state for state in TxnState}
TYPES = {int(kind): kind for kind in TxnType}


def state_of(letter: str) -> TxnState:
    """What TXN_STATE says. A letter that has no meaning here counts as open: what such a
    transaction writes stays unseen, and what it may read stays."""
    return STATES.get(letter, TxnState.OPEN)


def kind_of(number: int | None) -> TxnType:
    """What TXN_TYPE says; of a newer Hive's kinds, that it may read and write."""
    return TYPES.get(number or 0, TxnType.DEFAULT)


OPEN: ColumnElement[str] = literal_column(f"'{TxnState.OPEN.value}'")
"""Written out: given as a value, it would make a plan for it look cheaper than one that is kept."""


class TxnRow(NamedTuple):
    """State and kind of a transaction whose row is locked."""

    state: TxnState
    type: TxnType

    @classmethod
    def read(cls, state: str, kind: int | None) -> TxnRow:
        """As the row has them."""
        return cls(state_of(state), kind_of(kind))

    @property
    def is_open(self) -> bool:
        """Whether it may go on."""
        return self.state is TxnState.OPEN


def is_open(txn_id: ColumnElement[int]) -> ColumnElement[bool]:
    """Of a row of what is given, whether its transaction is open. Looked up by its id, not joined:
    PostgreSQL, which does not know how few rows are given, would go through all that are open."""
    state = select(TXNS.c.TXN_STATE).where(TXNS.c.TXN_ID == txn_id, IN_ANY_STATE)
    return state.scalar_subquery() == OPEN


def lock_txn(connection: Connection, txn_id: TxnId) -> TxnRow | None:
    """Lock a transaction's row, so that nobody ends it meanwhile; None without a row."""
    return LockedTxns(connection, [txn_id]).rows.get(txn_id)


class LockedTxns:
    """Transactions whose rows are locked, in the order of their ids, so that nobody ends them; on
    PostgreSQL on the way there (see ``later``)."""

    def __init__(self, connection: Connection, txn_ids: Sequence[TxnId]) -> None:
        self._connection, self._answer = connection, _LOCK.later(connection, txn_ids)
        self._rows: Mapping[TxnId, TxnRow] | None = None

    @property
    def rows(self) -> Mapping[TxnId, TxnRow]:
        """Those that have one."""
        if self._rows is None:
            self._rows = {
                TxnId(txn_id): TxnRow.read(state, kind) for txn_id, state, kind in self._answer.rows
            }
        return self._rows

    def require_open(self, txn_id: TxnId) -> TxnType:
        """The kind of one of them. Raises as :func:`lock_open_txn`."""
        row = self.rows.get(txn_id)
        if row is not None and row.is_open:
            return row.type
        raise ended_error(txn_id, row.state if row else purged_state(self._connection, txn_id))


def lock_open_txn(connection: Connection, txn_id: TxnId) -> TxnType:
    """Lock an open transaction's row; its kind.

    Raises TxnAbortedError, or NoSuchTxnError if it is committed or unknown.
    """
    return LockedTxns(connection, [txn_id]).require_open(txn_id)


def purged_state(connection: Connection, txn_id: TxnId) -> TxnState | None:
    """The state of a transaction without a row: committed if it left writes behind, else None."""
    c = COMPLETED_TXN_COMPONENTS.c
    left = connection.execute(select(c.CTC_TXNID).where(c.CTC_TXNID == txn_id).limit(1)).first()
    return None if left is None else TxnState.COMMITTED


def ended_error(txn_id: TxnId, state: TxnState | None) -> MetastoreError:
    """The refusal for a transaction that is not open."""
    if state is TxnState.ABORTED:
        return TxnAbortedError(f"Transaction txnid:{txn_id} already aborted")
    if state is TxnState.COMMITTED:
        return NoSuchTxnError(f"Transaction txnid:{txn_id} is already committed.")
    return NoSuchTxnError(f"No such transaction txnid:{txn_id}")


def high_watermark(connection: Connection) -> TxnId:
    """The highest transaction id that was given; 0 before the first."""
    row = _HIGHEST.first(connection)
    return TxnId(row[0] or 0 if row else 0)
