"""What must be true, kept in plain dictionaries beside the cluster.

The ledger reads the transaction tables of a metastore's database itself; the model knows tables,
partitions and rows because the actors say what they meant, and the database whether it happened.
"""

from __future__ import annotations

import copy
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field

from tests.simulation.definitions import Columns, Definition
from tests.simulation.plain_reader import CutRow, RowId, Rows, View, cut_rows


class Ledger:
    """Which transactions of one metastore are open, committed or aborted, and their write ids."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._raw = raw
        self.open: set[int] = set()
        self.aborted: set[int] = set()
        self.locks: set[tuple[int, int]] = set()
        self.highest = 0
        self.write_ids: dict[tuple[str, str], dict[int, int]] = {}
        self.next_write_ids: dict[tuple[str, str], int] = {}
        self._gone: dict[tuple[str, str], dict[int, int]] = {}

    def note(self) -> set[tuple[int, int]]:
        """Look at the database, after each of its transactions: new transactions, and new locks
        without one, as pairs of both ids."""
        raw = self._raw
        before = {(txn, 0) for txn in self.open} | self.locks
        states = dict(raw.execute("SELECT TXN_ID, TXN_STATE FROM TXNS WHERE TXN_ID > 0"))
        self.open = {txn for txn, state in states.items() if state == "o"}
        self.aborted |= {txn for txn, state in states.items() if state == "a"}
        self.highest = max([self.highest, *states])
        for database, table, write_id, txn in raw.execute(
            "SELECT T2W_DATABASE, T2W_TABLE, T2W_WRITEID, T2W_TXNID FROM TXN_TO_WRITE_ID"
        ):
            self.write_ids.setdefault((database, table), {})[write_id] = txn
        self.next_write_ids = {
            (database, table): following
            for database, table, following in raw.execute(
                "SELECT NWI_DATABASE, NWI_TABLE, NWI_NEXT FROM NEXT_WRITE_ID"
            )
        }
        # Dropped, or renamed: another table of that name counts anew.
        for table in self.write_ids.keys() - self.next_write_ids.keys():
            self._gone[table] = self.write_ids.pop(table)
        for table in self._gone.keys() & self.next_write_ids.keys():
            del self._gone[table]
        self.locks = {
            (0, lock)
            for (lock,) in raw.execute("SELECT HL_LOCK_EXT_ID FROM HIVE_LOCKS WHERE HL_TXNID = 0")
        }
        return ({(txn, 0) for txn in self.open} | self.locks) - before

    def is_committed(self, txn_id: int) -> bool:
        return txn_id <= self.highest and txn_id not in self.open and txn_id not in self.aborted

    def view(self, database: str, table: str) -> View:
        """What a reader that comes now sees, or came before the table was dropped. A write id of
        which no transaction is known was committed long ago, or on the source of a replica."""
        ids = self.write_ids.get((database, table)) or self._gone.get((database, table), {})
        return View(
            open=frozenset(one for one, txn in ids.items() if txn in self.open),
            aborted=frozenset(one for one, txn in ids.items() if txn in self.aborted),
            highest=self.next_write_ids.get((database, table), 1) - 1,
            hidden_txns=frozenset(self.open | self.aborted),
            txn_highest=self.highest,
        )


@dataclass
class TableModel:
    """Rows by partition; an unpartitioned table has the one partition ""."""

    is_partitioned: bool
    partitions: dict[str, Rows] = field(default_factory=dict)
    columns: Columns = ()
    """As the statements that came through meant them."""
    definition: Definition | None = None
    """All that the source's catalog says of it."""

    def set_columns(self, columns: Columns) -> None:
        """As a statement writes them. Where it had read them before others were added, those go
        again, as in Hive (HiveAlterHandler compares types of columns that both lists have only):
        rows show no values there from now on."""
        self.columns = columns
        for partition, rows in self.partitions.items():
            self.partitions[partition] = cut_rows(rows, len(columns))

    @property
    def has_cut_rows(self) -> bool:
        """Whether files may have values of a column that is not there any more."""
        rows = (row for partition in self.partitions.values() for row in partition.values())
        return any(isinstance(row, CutRow) for row in rows)


Tables = dict[str, TableModel]


@dataclass
class Effect:
    """What an actor means to change, and how the database tells that it happened."""

    has_happened: Callable[[], bool]
    apply: Callable[[Tables], None]
    has_same_rows: bool = False
    """It may come when the other side has taken over: nothing of it is lost."""
    is_met_already: bool = False
    """Who asks is content if somebody else has done it: it tells nothing of who did."""


class Model:
    """The source's tables now and at each event."""

    def __init__(self) -> None:
        self.tables: Tables = {}
        self.history: list[tuple[int, Tables]] = []

    @property
    def last(self) -> int:
        """The newest event that it knows."""
        return self.history[-1][0] if self.history else 0

    def record(self, event_id: int) -> None:
        """The tables as they are are those of this event."""
        self.history.append((event_id, copy.deepcopy(self.tables)))

    def at(self, event_id: int) -> Tables:
        """The tables at an event."""
        return max(
            (one for one in self.history if one[0] <= event_id),
            key=lambda one: one[0],
            default=(0, {}),
        )[1]

    def whole_after(self, event_id: int) -> int:
        """The event itself, or the last one of the transaction amid whose events it is."""
        return min((event for event, _ in self.history if event >= event_id), default=event_id)

    def between(self, first: int, last: int) -> list[Tables]:
        """Every state from one event to another."""
        return [
            self.at(first),
            *(tables for event, tables in self.history if first < event <= last),
        ]


def write_effect(
    ledger: Ledger,
    txn_id: int,
    table: Callable[[], str],
    inserts: dict[str, Rows],
    deletes: dict[str, set[RowId]],
    overwritten: set[str],
    is_same_table: Callable[[], bool],
) -> Effect:
    """A transaction's rows, which come and go together when it commits. `table`: its name by then.
    What it wrote to a table that was dropped meanwhile is in no other one of that name."""

    def apply(tables: Tables) -> None:
        known = tables.get(table())
        if known is None or not is_same_table():
            return
        for partition in {*inserts, *deletes, *overwritten}:
            if partition not in known.partitions:
                continue
            rows = known.partitions[partition]
            if partition in overwritten:
                rows.clear()
            for victim in deletes.get(partition, ()):
                rows.pop(victim, None)
            rows.update(cut_rows(inserts.get(partition, {}), len(known.columns)))

    return Effect(lambda: ledger.is_committed(txn_id), apply)
