"""The snapshot of a bootstrap dump: no transaction that wrote to the database may be open in it.

Rows of a transaction that is open at a bootstrap belong to no dump that a replica could load: its
files are not in the bootstrap, and its write id is taken there. Real Hive looks at locks only, and
loses what a transaction without locks wrote (docs/hive/replication.md §13); here write ids decide,
and locks too, because a lock announces a write.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

from changemanager.clock import span_text
from hms_bridge.clock import Clock, steady_ms
from hms_bridge.errors import ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import LockFilter
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import AbortReason, TxnState, TxnType
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.repl.dump.table_files import TableSnapshot
from hms_bridge.repl.whole_lists import ids_text, whole_lists

_ids = _names = partial(ids_text, named_max=10)
_HARMLESS = frozenset(
    {
        TxnType.READ_ONLY,
        TxnType.REPL_CREATED,
        TxnType.COMPACTION,
        TxnType.REBALANCE_COMPACTION,
    }
)


@dataclass(frozen=True, kw_only=True, slots=True)
class DatabaseSnapshot:
    """One view of all transactional tables. ``idle_txn_ids``: open, but without a trace here."""

    txns: ValidTxnList
    write_ids: Mapping[str, ValidWriteIdList]
    idle_txn_ids: tuple[TxnId, ...] = ()

    def of_table(self, source: Metastore, table: Table) -> TableSnapshot:
        """What it shows of one table of the source."""
        write_ids = self.write_ids.get(table.full_name)
        return TableSnapshot(metastore=source, table=table, txns=self.txns, write_ids=write_ids)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenWriters:
    """Why a snapshot cannot be taken now. ``txn_ids`` hold locks on the database, on what is
    ``locked`` there; ``tables`` have open write ids, whose transactions are among
    ``open_txn_ids``."""

    txn_ids: tuple[TxnId, ...]
    locked: tuple[str, ...]
    tables: Mapping[str, tuple[int, ...]]
    open_txn_ids: tuple[TxnId, ...]

    @property
    def waited_for(self) -> tuple[tuple[TxnId, ...], Mapping[str, tuple[int, ...]]]:
        """What differs when one of them has ended."""
        return self.txn_ids, self.tables

    @property
    def text(self) -> str:
        """``transactions 4 hold locks on d.t; write ids 2 of d.t are open``; empty for none."""
        parts = []
        if self.txn_ids:
            locked = _names(self.locked)
            parts.append(f"transactions {_ids(self.txn_ids)} hold locks on {locked}")
        parts += [f"write ids {_ids(ids)} of {name} are open" for name, ids in self.tables.items()]
        return "; ".join(parts)


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitRules:
    """How long to wait for open writers. ``is_abort_allowed``: abort those with locks then
    (hive.repl.bootstrap.dump.abort.write.txn.after.timeout; here off unless asked for)."""

    timeout_seconds: float = 3600.0
    poll_seconds: float = 5.0
    is_abort_allowed: bool = False


def try_snapshot(
    source: Metastore, database: str, tables: Sequence[str]
) -> tuple[DatabaseSnapshot, OpenWriters | None]:
    """A snapshot, and who stands in its way. ``tables``: ``db.table`` of transactional tables."""
    opened = source.get_open_txns()
    txns = opened.snapshot()
    lists = whole_lists(source, tables, txns)
    open_tables = {
        name: tuple(write_ids.open_ids)
        for name, write_ids in zip(tables, lists, strict=True)
        if write_ids.open_ids
    }
    writers = {
        txn.id for txn in opened.txns if txn.state is TxnState.OPEN and txn.type not in _HARMLESS
    }
    shown = source.show_locks(LockFilter(scope=Scope(database))) if writers else ()
    locks = [lock for lock in shown if lock.txn_id in writers]
    lockers = tuple(sorted({lock.txn_id for lock in locks}))
    snapshot = DatabaseSnapshot(
        txns=txns,
        write_ids=dict(zip(tables, lists, strict=True)),
        idle_txn_ids=tuple(sorted(writers - set(lockers))),
    )
    if not open_tables and not lockers:
        return snapshot, None
    # Of a former replica, what a load began may have them, and no lock shows it.
    open_ids = {txn.id for txn in opened.txns if txn.state is TxnState.OPEN}
    return snapshot, OpenWriters(
        txn_ids=lockers,
        locked=tuple(sorted({_locked_name(lock.scope) for lock in locks})),
        tables=open_tables,
        open_txn_ids=tuple(sorted(open_ids | writers)),
    )


def _locked_name(scope: Scope) -> str:
    return ".".join(name for name in (scope.database, scope.table) if name)


def waiting_text(database: str, writers: OpenWriters, rules: WaitRules) -> str:
    """Whom somebody waits for, and how long at most, for people."""
    span = span_text(int(1000 * rules.timeout_seconds))
    aborts = rules.is_abort_allowed and writers.txn_ids
    return (
        f"waiting for open writers of database {database}, for {span} at most: {writers.text} "
        f"(open transactions: {_ids(writers.open_txn_ids)}; 'txns' shows them). "
        f"{'Those with locks are aborted then. ' if aborts else ''}Ctrl-C ends the waiting"
    )


def wait_for_snapshot(
    source: Metastore,
    clock: Clock,
    database: str,
    tables: Sequence[str],
    rules: WaitRules,
    *,
    keep_alive: Callable[[], None] = lambda: None,
    on_waiting: Callable[[str], None] = lambda _: None,
) -> DatabaseSnapshot:
    """A snapshot without open writers; ``keep_alive`` is called between two looks, ``on_waiting``
    is given whom it waits for, and again when they are fewer or others.

    Raises ReplError if they do not end in time.
    """
    # Whoever waits keeps other dumps out: not for longer because somebody sets a clock back.
    deadline_ms = steady_ms(clock) + rules.timeout_seconds * 1000
    waited_for: object = None
    while True:
        snapshot, writers = try_snapshot(source, database, tables)
        if writers is None:
            return snapshot
        left_seconds = (deadline_ms - steady_ms(clock)) / 1000
        if left_seconds <= 0:
            break
        if writers.waited_for != waited_for:
            left = (
                rules if waited_for is None else replace(rules, timeout_seconds=ceil(left_seconds))
            )
            on_waiting(waiting_text(database, writers, left))
            waited_for = writers.waited_for
        clock.sleep_seconds(min(rules.poll_seconds, left_seconds))
        keep_alive()
    if rules.is_abort_allowed and writers.txn_ids:
        source.abort_txns(writers.txn_ids, AbortReason.REPL_DEFAULT)
        snapshot, writers = try_snapshot(source, database, tables)
        if writers is None:
            return snapshot
    raise ReplError(
        f"database {database} cannot be dumped while it is written to: {writers.text} (open "
        f"transactions: {_ids(writers.open_txn_ids)}). Commit them or wait longer, or end them "
        "('txns abort ID …' any of them, --abort-writers those with locks), then dump again"
    )
