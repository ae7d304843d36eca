"""Verbs of the metastore, each made ready to be called once: what it needs is there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hms_bridge.model.compaction import Compaction, CompactionRequest, CompactionType
from hms_bridge.model.event import NotificationRequest
from hms_bridge.model.ids import EventId, LockId, TxnId, WriteId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.target import Target
from hms_bridge.model.txn import TxnType
from hms_bridge.service.metastore_service import MetastoreService
from tests.conformance import objects

_OF_COMPACTIONS = frozenset(
    {
        "find_next_compaction", "update_compactor_state", "mark_compacted", "target_marks",
        "are_listed", "cleaning_views", "mark_cleanings_started", "mark_cleaned",
    }
)  # fmt: skip


class ReadyVerbs:
    """A database with a table and a partitioned one, and the verbs about them."""

    def __init__(self, metastore: MetastoreService) -> None:
        self.metastore = metastore
        self.database = objects.new_database(metastore)
        objects.new_table(metastore, self.database)
        objects.new_table(metastore, self.database, "p", partition_columns=objects.DS)

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
            "are_listed": lambda: metastore.are_listed([entry]),
            "cleaning_views": lambda: metastore.cleaning_views([target.name]),
            "mark_cleanings_started": lambda: metastore.mark_cleanings_started([entry.id]),
            "mark_cleaned": lambda: metastore.mark_cleaned(entry),
        }
        return calls[verb]

    def call_of(self, verb: str) -> Callable[[], object]:
        """Prepares a verb, or a case of one; the call is left."""
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
