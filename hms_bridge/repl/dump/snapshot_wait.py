"""The snapshot of a bootstrap dump: no transaction that wrote to the database may be open in it.

Rows of a write id that is open in a bootstrap belong to no dump that a replica could load: its
files are not in the bootstrap, and the id is taken there. Real Hive looks at locks only, and
loses what a transaction without locks wrote (docs/hive/replication.md §13); here write ids decide,
and locks too, because a lock announces a write.

The snapshot is that of the first look, which comes after the event from which the next dump goes
on. A dump waits until every writer of that look has ended, as Hive waits for transactions older
than its own (ReplDumpTask.getValidTxnListForReplDump), and for no later one: a write id that the
first look does not have was allocated after that event, so the next dump has its allocation, its
files and its end. For example, the first look has write ids up to 6 of a table, 5 open; 7 and 8 are
allocated while the dump waits, and 5 aborts. The snapshot is ``db.t:6:…::5``, and 7 comes with its
events, whatever became of it by then. What the snapshot reads stays: the dump's own transaction is
older than any compaction that ends after the first look.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil

from changemanager.clock import span_text
from hms_bridge.clock import Clock, steady_ms
from hms_bridge.errors import ReplError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Table
from hms_bridge.model.ids import MAX_ID, TxnId, WriteId
from hms_bridge.model.lock import LockFilter
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import AbortReason, TxnInfo, TxnState, TxnType
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

    def as_ended(self, later: DatabaseSnapshot) -> DatabaseSnapshot:
        """The same, where what was open in it has ended as a later one says."""
        still_open = set(later.txns.open_ids)
        return DatabaseSnapshot(
            txns=self.txns,
            write_ids={
                name: _as_ended(write_ids, later.write_ids[name])
                for name, write_ids in self.write_ids.items()
            },
            idle_txn_ids=tuple(txn_id for txn_id in self.idle_txn_ids if txn_id in still_open),
        )


def _as_ended(write_ids: ValidWriteIdList, later: ValidWriteIdList) -> ValidWriteIdList:
    aborted = [write_id for write_id in write_ids.open_ids if later.is_aborted(write_id)]
    return replace(
        write_ids,
        min_open=WriteId(MAX_ID),
        open_ids=(),
        aborted_ids=(*write_ids.aborted_ids, *aborted),
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenWriters:
    """Why a snapshot cannot be taken now. ``txn_ids`` hold locks on the database, on what is
    ``locked`` there, in their order; ``tables`` have open write ids, whose transactions are among
    ``open_txns``."""

    txn_ids: tuple[TxnId, ...]
    locked: Mapping[TxnId, tuple[str, ...]]
    tables: Mapping[str, tuple[WriteId, ...]]
    open_txns: tuple[TxnInfo, ...] = field(compare=False)

    def of(self, first: OpenWriters) -> OpenWriters | None:
        """Those that are of an earlier look, too; None if all of that one have ended."""
        txn_ids = tuple(txn_id for txn_id in self.txn_ids if txn_id in first.txn_ids)
        tables = {
            name: still_open
            for name, write_ids in first.tables.items()
            if (still_open := _both(write_ids, self.tables.get(name, ())))
        }
        if not txn_ids and not tables:
            return None
        known = {txn.id for txn in first.open_txns}
        return OpenWriters(
            txn_ids=txn_ids,
            locked={txn_id: self.locked[txn_id] for txn_id in txn_ids},
            tables=tables,
            open_txns=tuple(txn for txn in self.open_txns if txn.id in known),
        )

    @property
    def waited_for(self) -> tuple[tuple[TxnId, ...], Mapping[str, tuple[WriteId, ...]]]:
        """What differs when one of them has ended."""
        return self.txn_ids, self.tables

    @property
    def text(self) -> str:
        """``transactions 4 hold locks on d.t; write ids 2 of d.t are open``; empty for none."""
        parts = []
        if self.txn_ids:
            locked = _names(sorted({name for names in self.locked.values() for name in names}))
            parts.append(f"transactions {_ids(self.txn_ids)} hold locks on {locked}")
        parts += [f"write ids {_ids(ids)} of {name} are open" for name, ids in self.tables.items()]
        return "; ".join(parts)

    def people_text(self, now_ms: int) -> str:
        """``4 (bob@reports07, 24 s), 7 (…)``: the open transactions, the oldest first."""
        oldest = sorted(self.open_txns, key=lambda txn: txn.id)
        return _names([txn.text(now_ms) for txn in oldest])


def _both(write_ids: Sequence[WriteId], others: Collection[WriteId]) -> tuple[WriteId, ...]:
    wanted = set(others)
    return tuple(write_id for write_id in write_ids if write_id in wanted)


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
    locked: dict[TxnId, set[str]] = {}
    for lock in shown:
        if lock.txn_id in writers:
            locked.setdefault(lock.txn_id, set()).add(_locked_name(lock.scope))
    lockers = tuple(sorted(locked))
    snapshot = DatabaseSnapshot(
        txns=txns,
        write_ids=dict(zip(tables, lists, strict=True)),
        idle_txn_ids=tuple(sorted(writers - set(lockers))),
    )
    if not open_tables and not lockers:
        return snapshot, None
    return snapshot, OpenWriters(
        txn_ids=lockers,
        locked={txn_id: tuple(sorted(locked[txn_id])) for txn_id in lockers},
        tables=open_tables,
        # Of a former replica, what a load began may have them, and no lock shows it.
        open_txns=tuple(
            txn
            for txn in source.get_open_txns_info()
            if txn.state is TxnState.OPEN and txn.type is not TxnType.READ_ONLY
        ),
    )


def _locked_name(scope: Scope) -> str:
    return ".".join(name for name in (scope.database, scope.table) if name)


def waiting_text(database: str, writers: OpenWriters, rules: WaitRules, now_ms: int) -> str:
    """Whom somebody waits for, and how long at most, for people."""
    span = span_text(int(1000 * rules.timeout_seconds))
    aborts = rules.is_abort_allowed and writers.txn_ids
    return (
        f"waiting for open writers of database {database}, for {span} at most: {writers.text} "
        f"(open transactions: {writers.people_text(now_ms)}; 'txns' shows them). "
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
    """The snapshot of now, once nobody is open any more who writes in it; ``keep_alive`` is called
    between two looks, ``on_waiting`` is given whom it waits for, and again when they are fewer.

    The caller has opened a transaction already, and read the event before it from which the next
    dump goes on. Raises ReplError if the writers do not end in time.
    """
    # Whoever waits keeps other dumps out: not for longer because somebody sets a clock back.
    deadline_ms = steady_ms(clock) + rules.timeout_seconds * 1000
    first, first_writers = try_snapshot(source, database, tables)
    if first_writers is None:
        return first
    writers = first_writers
    waited_for: object = None
    has_aborted = False
    while True:
        left_seconds = (deadline_ms - steady_ms(clock)) / 1000
        if left_seconds > 0:
            if writers.waited_for != waited_for:
                left = rules
                if waited_for is not None:
                    left = replace(rules, timeout_seconds=ceil(left_seconds))
                on_waiting(waiting_text(database, writers, left, clock.now_ms()))
                waited_for = writers.waited_for
            clock.sleep_seconds(min(rules.poll_seconds, left_seconds))
            keep_alive()
        elif rules.is_abort_allowed and writers.txn_ids and not has_aborted:
            source.abort_txns(writers.txn_ids, AbortReason.REPL_DEFAULT)
            has_aborted = True
        else:
            raise _never_ended(database, writers, clock.now_ms())
        later, now_open = try_snapshot(source, database, tables)
        still_open = None if now_open is None else now_open.of(first_writers)
        if still_open is None:
            return first.as_ended(later)
        writers = still_open


def _never_ended(database: str, writers: OpenWriters, now_ms: int) -> ReplError:
    return ReplError(
        f"database {database} cannot be dumped while it is written to: {writers.text} (open "
        f"transactions: {writers.people_text(now_ms)}). Commit them or wait longer, or end them "
        "('txns abort ID …' any of them, --abort-writers those with locks), then dump again"
    )
