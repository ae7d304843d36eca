"""A table with writers, readers and compactions made by hand.

Files are no ORC: a cleaner looks at names, lengths and lists only.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hms_bridge.config.settings import ArchiveSettings, CompactorSettings
from hms_bridge.model.compaction import Compaction, CompactionType
from hms_bridge.model.ids import LockId, TxnId, WriteId
from hms_bridge.model.lock import DataOperation, LockType
from hms_bridge.model.txn import TxnType
from tests.conformance import objects
from tests.support.world import World

WORKER = "worker-1"


class CleaningWorld(World):
    """One table `db.t`, and what happens to it."""

    def __init__(
        self,
        folder: Path,
        *,
        is_source: bool = True,
        is_partitioned: bool = False,
        is_archive_on: bool = True,
        parameters: dict[str, str] | None = None,
        abort_retention_ms: int = 0,
    ) -> None:
        """Without a retention an abort is forgotten as soon as it may be: most tests are of that
        moment. What the retention is for: tests/cleaner/test_late_writers.py."""
        super().__init__(
            folder,
            parameters={"repl.source.for": "policy"} if is_source else {},
            archive=ArchiveSettings(is_enabled=is_archive_on, root=str(folder / "cmroot")),
            compactor=CompactorSettings(
                aborted_txn_threshold=0,
                abort_retention_ms=abort_retention_ms,
                has_hive_workers=True,
            ),
        )
        self.create_table(is_partitioned=is_partitioned, **(parameters or {}))

    @property
    def table_path(self) -> Path:
        """Where the table is, without asking the metastore."""
        return self.warehouse / "db.db" / "t"

    @property
    def table(self) -> Path:
        return self.path()

    def open_reader(self, user: str = "reader") -> TxnId:
        return self.open(TxnType.READ_ONLY, user)

    def start_write(
        self, partition: str | None = None, operation: DataOperation = DataOperation.INSERT
    ) -> tuple[TxnId, WriteId]:
        """Open a transaction, lock, take a write id, write a delta."""
        txn_id = self.open()
        component = objects.component("db", "t", LockType.SHARED_READ, operation, partition)
        self.metastore.lock(objects.request(component, txn=txn_id))
        write_id = objects.write_id(self.metastore, txn_id, "db")
        self.write_directory(delta(write_id), partition=partition)
        return txn_id, write_id

    def write(self, partition: str | None = None) -> WriteId:
        """A committed write."""
        txn_id, write_id = self.start_write(partition)
        self.commit(txn_id)
        return write_id

    def write_aborted(self, partition: str | None = None) -> WriteId:
        """A write that was rolled back; its delta stays."""
        txn_id, write_id = self.start_write(partition)
        self.abort(txn_id)
        return write_id

    def write_directory(self, name: str, *, partition: str | None = None) -> Path:
        path = self.path("t", partition or "") / name
        path.mkdir(parents=True)
        (path / "bucket_00000").write_bytes(f"rows of {partition or 't'}/{name}".encode())
        (path / "_orc_acid_version").write_bytes(b"2")
        return path

    def start_compaction(
        self, kind: CompactionType = CompactionType.MAJOR, partition: str | None = None
    ) -> tuple[Compaction, TxnId]:
        """Queue, claim, open its transaction, say how far it will reach."""
        self.request_compaction("t", kind, partition)
        entry = self.metastore.find_next_compaction(WORKER, "1")
        assert entry is not None
        txn_id = self.open(TxnType.COMPACTION, "worker")
        write_ids = self.metastore.get_valid_write_ids(["db.t"])[0].compactor_view()
        claimed = replace(
            entry, highest_write_id=write_ids.high_watermark, txn_id=txn_id, run_as="worker"
        )
        self.metastore.update_compactor_state(claimed, txn_id)
        return claimed, txn_id

    def publish(self, entry: Compaction, txn_id: TxnId, lowest: int = 1) -> Path:
        """The worker's output, still invisible, and the entry ready for cleaning."""
        highest = entry.highest_write_id or 0
        suffix = f"_v{txn_id:07d}"
        name = f"base_{highest:07d}{suffix}"
        if entry.type is CompactionType.MINOR:
            name = f"delta_{lowest:07d}_{highest:07d}{suffix}"
        path = self.write_directory(name, partition=entry.target.partition)
        self.metastore.mark_compacted(entry)
        return path

    def compact(
        self,
        table: str = "t",
        kind: CompactionType = CompactionType.MAJOR,
        partition: str | None = None,
    ) -> Compaction:
        """A whole compaction, committed."""
        assert table == "t"
        entry, txn_id = self.start_compaction(kind, partition)
        self.publish(entry, txn_id)
        self.commit(txn_id, TxnType.COMPACTION)
        self.clock.advance_ms(60_000)
        return entry

    def directories(self, partition: str = "") -> list[str]:
        return sorted(self.names("t", partition))

    def archived_contents(self) -> set[str]:
        return {content.decode() for content in self.archived().values()}


def delta(first: int, last: int | None = None) -> str:
    return f"delta_{first:07d}_{last or first:07d}_0000"


def aborted_ids(world: World) -> tuple[WriteId, ...]:
    txns = world.metastore.get_open_txns().snapshot()
    return world.metastore.get_valid_write_ids(["db.t"], txns)[0].aborted_ids


def keep_alive(world: World, *txns: TxnId) -> None:
    for txn_id in txns:
        world.metastore.heartbeat(txn_id, LockId(0))
