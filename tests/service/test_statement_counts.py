"""How many statements each of the most frequent verbs sends, so that none grows unseen.

Each is a round trip to a database server, and most of what a verb costs. A number here is not a
goal: who needs a statement more writes it into the table, with its reason; who saves one, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, event

from hms_bridge.model.compaction import Compaction, CompactionRequest, CompactionType
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.ids import EventId, LockId, TxnId, WriteId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.target import Target
from hms_bridge.model.txn import TxnType
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.open import open_local_metastore
from tests.conformance import objects
from tests.support.databases import SERVER_URL, fresh_url
from tests.support.simulated_clock import SimulatedClock

IS_POSTGRESQL = (SERVER_URL or "").startswith("postgresql")


@dataclass(frozen=True)
class Sent:
    """Statements of one call on SQLite and on PostgreSQL, and what they are; without the BEGIN and
    COMMIT of those that change something."""

    verb: str
    sqlite: int
    postgresql: int
    what: str


# To have a row returned that is changed takes SQLite longer than to read it first.
_EVENT = "an event: both its numbers, each of them moved, itself (PostgreSQL: in one)"
_ONE = "PostgreSQL: in one"
_OPEN = "row, history (PostgreSQL: the openers' lock, then in one)"
_LOCKED = "the row that its end locks"
_LOCKED_WITH_TRACES = f"{_LOCKED}, with traces (PostgreSQL: the row alone)"
TABLE = (
    Sent("open_txns", 6, 3, f"{_OPEN}; {_EVENT}"),
    Sent("open_txns, read only", 2, 2, _OPEN),
    Sent(
        "allocate_table_write_ids", 10, 5,
        "is it a replica, "
        f"{_LOCKED}, held ids, counter, row, locks before it ({_ONE} the last three); {_EVENT}",
    ),
    Sent("lock", 5, 5, f"{_LOCKED}, what it writes, id and time, earlier ones, row"),
    Sent("lock of no transaction", 3, 3, "id and time, earlier ones, row"),
    Sent("check_lock", 2, 2, "rows, sign of life"),
    Sent("check_lock that waits", 4, 4, "rows, sign of life, earlier ones, what is in the way"),
    Sent("check_lock that acquires", 4, 4, "rows, sign of life, earlier ones, state with time"),
    Sent("unlock", 1, 1, "rows"),
    Sent("heartbeat of a transaction", 1, 1, "sign of life"),
    Sent("heartbeat of both", 2, 2, "signs of life of lock and transaction"),
    Sent("heartbeat_txn_range", 1, 1, "sign of life of all"),
    Sent(
        "commit_txn, nothing done", 7, 4,
        f"{_LOCKED_WITH_TRACES}, history, state ({_ONE}; write ids, in case); {_EVENT}",
    ),
    Sent(
        "commit_txn, read only", 3, 3,
        f"{_LOCKED_WITH_TRACES}, history, state ({_ONE}; write ids, in case)",
    ),
    Sent(
        "commit_txn of an insert", 11, 4,
        f"as of nothing, and: write ids; completed components, theirs, locks ({_ONE}); {_EVENT}",
    ),
    Sent(
        "abort_txn", 13, 6,
        f"{_LOCKED}, silent writes, state and four tables of the open ({_ONE}), write ids, "
        f"replay; {_EVENT}",
    ),
    Sent("get_open_txns", 1, 1, "one snapshot"),
    Sent("get_valid_write_ids", 2, 2, "highest, rows"),
    Sent("get_table", 3, 3, "the table with its storage, parameters, lists"),
    Sent("get_partitions", 6, 6, "the table as above, partitions, parameters, lists"),
    Sent(
        "add_partitions", 23, 21,
        "looks first (table, partitions, file tasks); the table again, locked (PostgreSQL), "
        f"partitions, three numbers, six rows, is it a replica; {_EVENT}",
    ),
    Sent("get_next_notification", 1, 1, "rows"),
    Sent("find_next_compaction", 3, 3, "candidates, the claim, the entry"),
    Sent(
        "update_compactor_state", 4, 4,
        f"{_LOCKED}, the entry; what is covered, as a row that is there or a new one",
    ),
    Sent("mark_compacted", 1, 1, "the entry"),
    Sent("target_marks", 1, 1, "the table, with its directory and whether a rename moves it"),
    Sent(
        "cleaning_views", 7, 7,
        "the watermark in two; one snapshot; highest, rows; entries; aborted ones (if there are "
        "any, their write ids)",
    ),
    Sent("mark_cleanings_started", 1, 1, "the entry"),
    Sent(
        "mark_cleaned", 6, 6,
        "clean-ups of aborts; the entry held, kept, gone; completed components, aborted ones",
    ),
)  # fmt: skip
"""On MariaDB what is numbered takes a statement more."""

_OF_COMPACTIONS = frozenset(
    {
        "find_next_compaction", "update_compactor_state", "mark_compacted", "target_marks",
        "cleaning_views", "mark_cleanings_started", "mark_cleaned",
    }
)  # fmt: skip


class Counted:
    """A metastore whose statements are counted."""

    def __init__(self, metastore: MetastoreService) -> None:
        self.metastore = metastore
        self.database = objects.new_database(metastore)
        objects.new_table(metastore, self.database)
        objects.new_table(metastore, self.database, "p", partition_columns=objects.DS)
        self.statements: list[str] = []

    def writing(self) -> tuple[TxnId, LockId]:
        """A transaction with a write id and the lock of an insert."""
        txn = objects.open_txn(self.metastore)
        objects.write_id(self.metastore, txn, self.database)
        return txn, self.locked(txn)

    def locked(self, txn: TxnId) -> LockId:
        kind = LockType.SHARED_WRITE
        component = objects.component(self.database, "t", kind, DataOperation.INSERT)
        return self.metastore.lock(objects.request(component, txn=txn)).lock_id

    def queued(self, verb: str) -> Callable[[], object]:
        """A verb of two locks of which the second waits for the first."""
        component = objects.component(self.database, "t", LockType.EXCLUSIVE)
        first, second = (self.metastore.lock(objects.request(component)).lock_id for _ in range(2))
        if verb == "unlock":
            return lambda: self.metastore.unlock(first)
        if verb == "check_lock that acquires":
            self.metastore.unlock(first)
        return lambda: self.metastore.check_lock(second)

    def add_partition(self, value: str) -> None:
        partition = objects.partition(self.database, "p", value)
        self.metastore.add_partitions(self.database, "p", [partition])

    def compacting(self, verb: str) -> Callable[[], object]:
        """A verb of the worker or the cleaner, for an entry that has come so far."""
        metastore, target = self.metastore, Target(self.database, "t")
        self.writing()
        metastore.compact(CompactionRequest(target=target, type=CompactionType.MAJOR))

        def claim() -> Compaction:
            entry = metastore.find_next_compaction("worker", "1")
            assert entry is not None
            return entry

        if verb == "find_next_compaction":
            return claim
        txn = objects.open_txn(metastore, TxnType.COMPACTION)
        entry = replace(claim(), txn_id=txn, highest_write_id=WriteId(1))
        if verb == "update_compactor_state":
            return lambda: metastore.update_compactor_state(entry, txn)
        metastore.update_compactor_state(entry, txn)
        if verb == "mark_compacted":
            return lambda: metastore.mark_compacted(entry)
        metastore.mark_compacted(entry)
        objects.commit(metastore, txn)
        calls: dict[str, Callable[[], object]] = {
            "target_marks": lambda: metastore.target_marks([target]),
            "cleaning_views": lambda: metastore.cleaning_views([target.name]),
            "mark_cleanings_started": lambda: metastore.mark_cleanings_started([entry.id]),
            "mark_cleaned": lambda: metastore.mark_cleaned(entry),
        }
        return calls[verb]

    def call_of(self, verb: str) -> Callable[[], object]:
        """Prepares a verb; the call itself is what is counted."""
        metastore, name = self.metastore, self.database
        if verb.startswith("commit_txn"):
            kind = TxnType.READ_ONLY if "read only" in verb else TxnType.DEFAULT
            txn = self.writing()[0] if "insert" in verb else objects.open_txn(metastore, kind)
            return lambda: objects.commit(metastore, txn)
        if verb in _OF_COMPACTIONS:
            return self.compacting(verb)
        if verb == "unlock" or verb.startswith("check_lock that"):
            return self.queued(verb)
        txn, lock = self.writing()
        bare = objects.open_txn(metastore)
        calls: dict[str, Callable[[], object]] = {
            "open_txns": lambda: objects.open_txn(metastore),
            "open_txns, read only": lambda: objects.open_txn(metastore, TxnType.READ_ONLY),
            "allocate_table_write_ids": lambda: objects.write_id(metastore, bare, name),
            "lock": lambda: self.locked(bare),
            "lock of no transaction": lambda: metastore.lock(
                objects.request(objects.component(name))
            ),
            "check_lock": lambda: metastore.check_lock(lock),
            "heartbeat of a transaction": lambda: metastore.heartbeat(txn, LockId(0)),
            "heartbeat of both": lambda: metastore.heartbeat(txn, lock),
            "heartbeat_txn_range": lambda: metastore.heartbeat_txn_range(txn, bare),
            "abort_txn": lambda: objects.abort(metastore, txn),
            "get_open_txns": metastore.get_open_txns,
            "get_valid_write_ids": lambda: metastore.get_valid_write_ids(
                [f"{name}.t"], self.snapshot
            ),
            "get_table": lambda: metastore.get_table(name, "t"),
            "get_partitions": lambda: metastore.get_partitions(name, "p"),
            "add_partitions": lambda: self.add_partition("new"),
            "get_next_notification": lambda: metastore.get_next_notification(
                NotificationRequest(last_event_id=EventId(0))
            ),
        }
        self.snapshot = metastore.get_open_txns().snapshot()
        return calls[verb]


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Counted]:
    url = fresh_url(tmp_path / "database")
    metastore = open_local_metastore(
        url, warehouse=f"file:{tmp_path}/warehouse", clock=SimulatedClock()
    )
    counted = Counted(metastore)
    counted.add_partition("first")
    engine = metastore._transactions.database.engine

    @event.listens_for(engine, "before_cursor_execute")
    def hear(_connection: Connection, _cursor: object, statement: str, *_: object) -> None:
        if not statement.startswith("BEGIN"):
            counted.statements.append(statement)

    yield counted
    metastore.close()


@pytest.mark.skipif(bool(SERVER_URL) and not IS_POSTGRESQL, reason="no numbers for this database")
@pytest.mark.parametrize("sent", TABLE, ids=lambda sent: sent.verb)
def test_a_verb_sends_what_the_table_says(counted: Counted, sent: Sent) -> None:
    call = counted.call_of(sent.verb)
    counted.statements.clear()
    call()
    seen = "\n".join(" ".join(statement.split())[:150] for statement in counted.statements)
    wanted = sent.postgresql if IS_POSTGRESQL else sent.sqlite
    assert len(counted.statements) == wanted, seen
