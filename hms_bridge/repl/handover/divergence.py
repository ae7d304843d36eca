"""What a former source has that never reached the replica which took its place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from hms_bridge.errors import EventGapError
from hms_bridge.metastore import Metastore
from hms_bridge.model.event import EventType, NotificationEvent
from hms_bridge.model.ids import TxnId
from hms_bridge.repl.dump.backlog import WITHOUT_A_CHANGE
from hms_bridge.repl.dump.event_source import EventRange, concerns, function_of, is_of, read_events
from hms_bridge.repl.dump.plain_tables import PlainPlaces
from hms_bridge.repl.dump.tables_anew import names_of_event
from hms_bridge.repl.dump.unreported_writes import earlier_allocations
from hms_bridge.repl.format.event_payload import (
    AllocWriteIdPayload,
    CommitTxnPayload,
    OpenTxnPayload,
)
from hms_bridge.repl.format.noted_statistics import notes_statistics_alone
from hms_bridge.repl.format.stored_message import is_harmless_compaction


@dataclass(frozen=True, kw_only=True, slots=True)
class Divergence:
    """``lost``: by table, how many commits and changes nobody else has. ``used``: tables that are
    not as the new source takes them to be, though nothing of theirs is lost (write ids without a
    commit, a rebalance, statistics). ``others``: kinds of events that are of no table. ``unknown``:
    why nobody knows what is lost; then it may be anything."""

    lost: Mapping[str, int] = field(default_factory=dict)
    used: frozenset[str] = frozenset()
    others: tuple[str, ...] = ()
    unknown: str = ""

    @property
    def tables(self) -> frozenset[str]:
        """Tables that the new source has to bring whole, as far as they are known."""
        return self.used | self.lost.keys()


class _Finder:
    def __init__(self, store: Metastore, database: str) -> None:
        self._store = store
        self._database = database
        self._opened: set[TxnId] = set()
        self._taken: dict[TxnId, set[str]] = {}
        self.lost: Counter[str] = Counter()
        self.used: set[str] = set()
        self.others: list[str] = []

    def note(self, event: NotificationEvent) -> None:
        if event.type == EventType.OPEN_TXN.value:
            self._opened.update(OpenTxnPayload.of(event).txn_ids)
        elif event.type == EventType.COMMIT_TXN.value:
            self.lost.update(self._committed(event))
        elif not is_of(event, self._database) or event.type == EventType.ALTER_DATABASE.value:
            # How the new source defines the database counts; and the handover leaves marks there.
            return
        elif event.type == EventType.ALLOC_WRITE_ID.value:
            self._take(AllocWriteIdPayload.of(event))
        elif event.type == EventType.COMMIT_COMPACTION.value:
            if not is_harmless_compaction(event.message):
                self.used |= names_of_event(event, self._database)
        elif notes_statistics_alone(event):
            # A Hive answers from them, and they are of what this side had.
            self.used |= names_of_event(event, self._database)
        elif event.type not in WITHOUT_A_CHANGE:
            names = names_of_event(event, self._database)
            self.lost.update(names)
            if not names:
                self.others.append(event.type)

    def _take(self, payload: AllocWriteIdPayload) -> None:
        self.used.add(payload.table_name)
        for pair in payload.allocated:
            self._taken.setdefault(pair.txn_id, set()).add(payload.table_name)

    def _committed(self, event: NotificationEvent) -> set[str]:
        """Tables of the database that a transaction wrote to, whenever it was opened."""
        txn_id = CommitTxnPayload.of(event).txn_id
        tables = {
            write.target.table for write in self._store.get_write_events(txn_id, self._database)
        }
        tables |= self._taken.pop(txn_id, set())
        if txn_id in self._opened:
            return tables
        for _, payload in earlier_allocations(self._store, self._database, txn_id, event.id):
            if any(pair.txn_id == txn_id for pair in payload.allocated):
                tables.add(payload.table_name)
        return tables


def find_divergence(store: Metastore, wanted: EventRange, database: str) -> Divergence:
    """What a range of events of a former source did to its database. Aborts count for nothing."""
    finder = _Finder(store, database)
    unknown = ""
    try:
        for event in read_events(store, wanted):
            if concerns(event, database):
                finder.note(event)
    except EventGapError as error:
        unknown = f"its log does not go back to event {wanted.after}: {error}"
    return Divergence(
        lost=dict(finder.lost),
        used=frozenset(finder.used),
        others=tuple(dict.fromkeys(finder.others)),
        unknown=unknown,
    )


def functions_apart(
    old: Metastore, new: Metastore, names: tuple[str, str], later: EventRange
) -> tuple[str, ...]:
    """Functions that one of two databases has and the other has not, or otherwise.

    ``names``: of the databases, the former source's first. What the new source did in ``later``
    does not count: its events bring it. Where files are and what they hold is each side's own.
    Raises EventGapError.
    """
    one, other = (
        {function.name: function.class_name for function in store.get_functions(name)}
        for store, name in zip((old, new), names, strict=True)
    )
    apart = {name for name in one | other if one.get(name) != other.get(name)}
    if apart:
        for event in read_events(new, later):
            if is_of(event, names[1]):
                apart.discard(function_of(event) or "")
    return tuple(sorted(apart))


def changed_places(before: PlainPlaces, now: PlainPlaces) -> frozenset[str]:
    """Managed tables without transactions whose files are not those that the last dump noted."""
    return frozenset(
        name.partition("/")[0]
        for name in before.keys() | now.keys()
        if before.get(name) != now.get(name)
    )
