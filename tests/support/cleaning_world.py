"""A warehouse with a metastore, writers, readers and compactions made by hand.

Files are no ORC: a cleaner looks at names, lengths and lists only.
"""

from __future__ import annotations

import weakref
from dataclasses import replace
from pathlib import Path

from cleaner.daemon import Cleaner, make_cleaner
from hms_bridge.config.settings import ArchiveSettings, CompactorSettings, Settings, TxnSettings
from hms_bridge.connect import LocalStore, install_schema, open_local
from hms_bridge.model.catalog import Column, Database, Partition, Storage, Table
from hms_bridge.model.compaction import (
    Compaction,
    CompactionRequest,
    CompactionState,
    CompactionType,
    ShowCompactionsRequest,
)
from hms_bridge.model.ids import LockId, TxnId, WriteId
from hms_bridge.model.lock import DataOperation, LockComponent, LockLevel, LockRequest, LockType
from hms_bridge.model.target import Scope, Target
from hms_bridge.model.txn import (
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    OpenTxnsRequest,
    TxnType,
)
from tests.support.databases import fresh_url

WORKER = "worker-1"


class MovingClock:
    """A clock that stands still until it is moved."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.time_ms = now_ms

    def now_ms(self) -> int:
        return self.time_ms

    def sleep_seconds(self, seconds: float) -> None:
        self.time_ms += int(seconds * 1000)

    def advance(self, milliseconds: int) -> None:
        self.time_ms += milliseconds


class CleaningWorld:
    """One table `db.t` in a metastore, and what happens to it."""

    def __init__(
        self,
        folder: Path,
        *,
        is_source: bool = True,
        is_partitioned: bool = False,
        is_archive_on: bool = True,
        parameters: dict[str, str] | None = None,
    ) -> None:
        self.folder = folder
        self.clock = MovingClock()
        self.settings = Settings(
            warehouse=str(folder / "warehouse"),
            archive=ArchiveSettings(is_enabled=is_archive_on, root=str(folder / "cmroot")),
            compactor=CompactorSettings(aborted_txn_threshold=0),
            txn=TxnSettings(),
        )
        self.url = fresh_url(folder)
        install_schema(self.url, self.settings)
        self.store: LocalStore = open_local(self.url, self.settings, self.clock)
        self.metastore = self.store.metastore
        # A server's connections must not be left to the garbage collector.
        weakref.finalize(self, self.metastore.close)
        source = {"repl.source.for": "policy"} if is_source else {}
        self.metastore.create_database(Database(name="db", parameters=source))
        self.is_partitioned = is_partitioned
        self.parameters = {"transactional": "true", **(parameters or {})}
        self.create_table()

    def create_table(self) -> None:
        partition_columns = (Column(name="p", type="string"),) if self.is_partitioned else ()
        self.metastore.create_table(
            Table(
                name="t",
                database_name="db",
                storage=Storage(
                    columns=(Column(name="a", type="int"),),
                    input_format="org.apache.hadoop.hive.ql.io.orc.OrcInputFormat",
                    output_format="org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat",
                ),
                partition_columns=partition_columns,
                parameters=self.parameters,
            )
        )

    def cleaner(self) -> Cleaner:
        """A cleaner that knows nothing of earlier ones."""
        return make_cleaner(self.store)

    def add_partition(self, value: str) -> str:
        self.metastore.add_partitions(
            "db",
            "t",
            [
                Partition(
                    values=(value,),
                    database_name="db",
                    table_name="t",
                    storage=Storage(columns=(Column(name="a", type="int"),)),
                )
            ],
        )
        return f"p={value}"

    @property
    def table_path(self) -> Path:
        """Where the table is, without asking the metastore."""
        return self.folder / "warehouse" / "db.db" / "t"

    @property
    def table(self) -> Path:
        location = self.metastore.get_table("db", "t").storage.location or ""
        return Path(location.removeprefix("file:"))

    # -- transactions

    def open(self, kind: TxnType = TxnType.DEFAULT, user: str = "someone") -> TxnId:
        (txn_id,) = self.metastore.open_txns(
            OpenTxnsRequest(user=user, host="some-host", type=kind)
        )
        return txn_id

    def open_reader(self, user: str = "reader") -> TxnId:
        return self.open(TxnType.READ_ONLY, user)

    def commit(self, txn_id: TxnId, kind: TxnType | None = None) -> None:
        self.metastore.commit_txn(CommitTxnRequest(txn_id=txn_id, type=kind))

    def abort(self, txn_id: TxnId) -> None:
        self.metastore.abort_txn(AbortTxnRequest(txn_id=txn_id))

    def start_write(
        self, partition: str | None = None, operation: DataOperation = DataOperation.INSERT
    ) -> tuple[TxnId, WriteId]:
        """Open a transaction, lock, take a write id, write a delta."""
        txn_id = self.open()
        self.metastore.lock(
            LockRequest(
                components=(
                    LockComponent(
                        type=LockType.SHARED_READ,
                        level=LockLevel.PARTITION if partition else LockLevel.TABLE,
                        scope=Scope("db", "t", partition),
                        operation=operation,
                        is_transactional=True,
                    ),
                ),
                txn_id=txn_id,
                user="someone",
                host="some-host",
            )
        )
        (given,) = self.metastore.allocate_table_write_ids(
            AllocateWriteIdsRequest(database_name="db", table_name="t", txn_ids=(txn_id,))
        )
        self.write_directory(
            f"delta_{given.write_id:07d}_{given.write_id:07d}_0000", partition=partition
        )
        return txn_id, given.write_id

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
        path = (self.table / partition if partition else self.table) / name
        path.mkdir(parents=True)
        (path / "bucket_00000").write_bytes(f"rows of {partition or 't'}/{name}".encode())
        (path / "_orc_acid_version").write_bytes(b"2")
        return path

    # -- compactions

    def start_compaction(
        self, kind: CompactionType = CompactionType.MAJOR, partition: str | None = None
    ) -> tuple[Compaction, TxnId]:
        """Queue, claim, open its transaction, say how far it will reach."""
        self.metastore.compact(CompactionRequest(target=Target("db", "t", partition), type=kind))
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
        self, kind: CompactionType = CompactionType.MAJOR, partition: str | None = None
    ) -> Compaction:
        """A whole compaction, committed."""
        entry, txn_id = self.start_compaction(kind, partition)
        self.publish(entry, txn_id)
        self.commit(txn_id, TxnType.COMPACTION)
        self.clock.advance(60_000)
        return entry

    # -- what there is

    def directories(self, partition: str | None = None) -> list[str]:
        path = self.table / partition if partition else self.table
        return sorted(one.name for one in path.iterdir()) if path.is_dir() else []

    def archived(self) -> list[str]:
        path = self.folder / "cmroot"
        return sorted(one.name for one in path.iterdir()) if path.is_dir() else []

    def archived_contents(self) -> set[str]:
        path = self.folder / "cmroot"
        return {one.read_text() for one in path.iterdir()} if path.is_dir() else set()

    def entry(self, wanted: Compaction) -> Compaction:
        """The queue entry or history entry as it is now."""
        found = self.metastore.show_compactions(ShowCompactionsRequest(id=wanted.id))
        return next(one for one in found if one.id == wanted.id)

    def state(self, wanted: Compaction) -> CompactionState:
        return self.entry(wanted).state


def delta(first: int, last: int | None = None) -> str:
    return f"delta_{first:07d}_{last or first:07d}_0000"


def aborted_ids(world: CleaningWorld) -> tuple[WriteId, ...]:
    txns = world.metastore.get_open_txns().snapshot()
    return world.metastore.get_all_write_ids("db.t", txns).aborted_ids


def keep_alive(world: CleaningWorld, *txns: TxnId) -> None:
    for txn_id in txns:
        world.metastore.heartbeat(txn_id, LockId(0))
