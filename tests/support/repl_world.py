"""Two metastores of ours on disk, a source that writes, compacts and cleans, and its replica."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from changemanager.archive import ChangeManager, RecycleKind
from changemanager.config import ChangeManagerConfig
from changemanager.filesystem.volume import Volume
from changemanager.location import FsspecResolver, Location
from changemanager.manifest import ArchiveCause, ArchiveContext
from changemanager.purge import Purge
from hms_bridge.compaction.kernel import BucketKernel, LocalExecutor
from hms_bridge.compaction.worker import Worker, WorkerIdentity
from hms_bridge.config.settings import ArchiveSettings, Settings, TxnSettings
from hms_bridge.model.catalog import (
    ORC_INPUT_FORMAT,
    ORC_OUTPUT_FORMAT,
    ORC_SERDE,
    Column,
    Database,
    Partition,
    SerDe,
    Storage,
    Table,
)
from hms_bridge.model.compaction import CompactionRequest, CompactionType
from hms_bridge.model.event import WriteNotification
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.lock import DataOperation, LockComponent, LockLevel, LockRequest, LockType
from hms_bridge.model.partition_name import parse_partition_name
from hms_bridge.model.target import Scope, Target
from hms_bridge.model.txn import (
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    DynamicPartitions,
    OpenTxnsRequest,
    TxnState,
    TxnType,
)
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.types import struct_type
from hms_bridge.repl.dump.plan import DumpReport, DumpRequest
from hms_bridge.repl.dump.repl_dump import ReplDump
from hms_bridge.repl.dump.snapshot_wait import WaitRules
from hms_bridge.repl.dump.table_files import acid_state
from hms_bridge.repl.lease import LeaseRules
from hms_bridge.repl.load.repl_load import LoadReport, LoadRequest, ReplLoad
from hms_bridge.rows.transaction import current_snapshot
from hms_bridge.rows.writer import DeltaTarget, WrittenDelta, write_delete_delta, write_insert_delta
from hms_bridge.service.metastore_service import MetastoreService
from hms_bridge.service.open import open_local_metastore
from tests.support.table_rows import acid_rows

DAY_MS = 86_400_000
LEASE = LeaseRules(dead_after_seconds=30, heartbeat_seconds=10)
COLUMNS = (Column(name="id", type="int"), Column(name="v", type="string"))
ROW_TYPE = struct_type(["id", "v"], [parse_hive_type("int"), parse_hive_type("string")])
ROW_ID = pa.struct([("writeid", pa.int64()), ("bucketid", pa.int32()), ("rowid", pa.int64())])


class TestClock:
    """Stands still but for sleeping; `on_sleep` is called then."""

    __test__ = False

    def __init__(self) -> None:
        # Files get the time of the machine, and the purge looks at both.
        self.time_ms = time.time_ns() // 1_000_000
        self.on_sleep = lambda: None

    def now_ms(self) -> int:
        return self.time_ms

    def sleep_seconds(self, seconds: float) -> None:
        self.time_ms += int(seconds * 1000)
        self.on_sleep()


class OpenWrite:
    """A transaction of the source that is not ended yet."""

    def __init__(self, world: ReplWorld) -> None:
        self._world = world
        self.is_reporting = True
        (self.id,) = world.source.open_txns(OpenTxnsRequest(user="u", host="h"))

    def lock(self, table: str) -> None:
        component = LockComponent(
            type=LockType.SHARED_WRITE,
            level=LockLevel.TABLE,
            scope=Scope("src", table),
            operation=DataOperation.INSERT,
            is_transactional=True,
        )
        self._world.source.lock(
            LockRequest(components=(component,), txn_id=self.id, user="u", host="h")
        )

    def write_id(self, table: str) -> WriteId:
        (given,) = self._world.source.allocate_table_write_ids(
            AllocateWriteIdsRequest(database_name="src", table_name=table, txn_ids=(self.id,))
        )
        return given.write_id

    def insert(
        self, table: str, rows: Sequence[tuple[int, str]], partition: str = "", statement: int = 0
    ) -> None:
        target = self._target(table, partition, statement)
        ids = pa.array([one for one, _ in rows], pa.int32())
        texts = pa.array([one for _, one in rows], pa.string())
        batch = pa.RecordBatch.from_arrays([ids, texts], names=["id", "v"])
        written = write_insert_delta(self._world.volume, target, [(0, batch)])
        self._notify(table, partition, target, written, DataOperation.INSERT)

    def delete(
        self, table: str, ids: Sequence[int], partition: str = "", statement: int = 0
    ) -> None:
        rows = [
            dict(zip(("writeid", "bucketid", "rowid"), row["row__id"], strict=True))
            for row in self._world.rows("src", table)
            if row["id"] in ids and (not partition or f"p={row['p']}" == partition)
        ]
        target = self._target(table, partition, statement)
        written = write_delete_delta(self._world.volume, target, [pa.array(rows, ROW_ID)])
        self._notify(table, partition, target, written, DataOperation.DELETE)

    def commit(self) -> None:
        self._world.source.commit_txn(CommitTxnRequest(txn_id=self.id))

    def abort(self) -> None:
        self._world.source.abort_txn(AbortTxnRequest(txn_id=self.id))

    def _target(self, table: str, partition: str, statement: int) -> DeltaTarget:
        return DeltaTarget(
            root=self._world.root(table, partition).path,
            table=ROW_TYPE,
            write_id=self.write_id(table),
            statement_id=statement,
            token=self._world.token(),
        )

    def _notify(
        self,
        table: str,
        partition: str,
        target: DeltaTarget,
        written: WrittenDelta | None,
        operation: DataOperation,
    ) -> None:
        assert written is not None
        resolve = self._world.resolve
        files = [resolve(bucket.path) for bucket in written.buckets]
        values = tuple(v for _, v in parse_partition_name(partition)) if partition else ()
        if not self.is_reporting:
            return
        self._world.source.add_write_notifications(
            [
                WriteNotification(
                    txn_id=self.id,
                    write_id=target.write_id,
                    database_name="src",
                    table_name=table,
                    partition_values=values,
                    files=tuple(file.uri for file in files),
                    checksums=tuple(file.checksum() for file in files),
                    subdirectories=tuple(file.parent.name for file in files),
                )
            ]
        )
        if partition:
            self._world.source.add_dynamic_partitions(
                DynamicPartitions(
                    txn_id=self.id,
                    write_id=target.write_id,
                    database_name="src",
                    table_name=table,
                    partition_names=(partition,),
                    operation=operation,
                )
            )


class ReplWorld:
    """Database `src` in one metastore, its replica `dst` in another, one archive, one dump root."""

    def __init__(self, folder: Path, *, clock: Any = None, txn: TxnSettings | None = None) -> None:
        self.folder = folder
        self.clock = clock or TestClock()
        self._txn = txn or TxnSettings()
        self.resolve = FsspecResolver()
        self.cmroot = folder / "cmroot"
        self.repl_root = folder / "repl"
        self.source = self._open("source")
        self.target = self._open("target")
        self.source.create_database(Database(name="src"))
        self._tokens = 0
        self.archive = ChangeManager(
            ChangeManagerConfig(cmroot=f"file:{self.cmroot}", retain_ms=10 * DAY_MS),
            self.resolve,
            self.source.manifest,
            self.clock,
            self.token,
        )

    def _open(self, name: str) -> MetastoreService:
        settings = Settings(
            warehouse=str(self.folder / name),
            archive=ArchiveSettings(root=str(self.cmroot)),
            txn=self._txn,
        )
        url = f"sqlite:///{self.folder}/{name}.db3"
        return open_local_metastore(url, settings=settings, clock=self.clock)

    def close(self) -> None:
        self.source.close()
        self.target.close()

    @property
    def volume(self) -> Volume:
        return self.resolve(str(self.folder)).volume

    def token(self) -> str:
        self._tokens += 1
        return f"token{self._tokens:05d}"

    def root(self, table: str, partition: str = "") -> Location:
        location = str(self.source.get_table("src", table).storage.location)
        return self.resolve(location).child(partition)

    def create_table(self, name: str, *, is_partitioned: bool = False, **parameters: str) -> None:
        self.source.create_table(
            Table(
                name=name,
                database_name="src",
                storage=Storage(
                    columns=COLUMNS,
                    input_format=ORC_INPUT_FORMAT,
                    output_format=ORC_OUTPUT_FORMAT,
                    serde=SerDe(library=ORC_SERDE),
                ),
                partition_columns=(Column(name="p", type="string"),) if is_partitioned else (),
                parameters={"transactional": "true", **parameters},
            )
        )

    def add_partition(self, table: str, value: str) -> None:
        self.source.add_partitions(
            "src", table, [Partition(values=(value,), database_name="src", table_name=table)]
        )

    @contextmanager
    def write(self) -> Iterator[OpenWrite]:
        """A transaction that commits at the end of the block."""
        opened = OpenWrite(self)
        yield opened
        opened.commit()

    def insert(self, table: str, *rows: tuple[int, str], partition: str = "") -> None:
        with self.write() as txn:
            txn.insert(table, rows, partition)

    def update(self, table: str, row: tuple[int, str], partition: str = "") -> None:
        with self.write() as txn:
            txn.delete(table, [row[0]], partition)
            txn.insert(table, [row], partition, statement=1)

    def compact(self, table: str, kind: CompactionType, partition: str | None = None) -> None:
        self.source.compact(CompactionRequest(target=Target("src", table, partition), type=kind))
        worker = Worker(
            self.source,
            LocalExecutor(kernel=BucketKernel(resolver=self.resolve)),
            self.resolve,
            WorkerIdentity(worker_id="w", version="1", user="u", host="h"),
        )
        outcome = worker.run_once()
        assert outcome is not None and outcome.state == "compacted", outcome

    def rebalance(self, table: str, highest: WriteId) -> None:
        """A rebalance compaction of another program, as far as the metastore hears of it."""
        self.source.compact(
            CompactionRequest(target=Target("src", table), type=CompactionType.REBALANCE)
        )
        entry = self.source.find_next_compaction("w", "1")
        assert entry is not None
        (txn_id,) = self.source.open_txns(
            OpenTxnsRequest(user="u", host="h", type=TxnType.REBALANCE_COMPACTION)
        )
        self.source.update_compactor_state(replace(entry, highest_write_id=highest), txn_id)
        self.source.mark_compacted(entry)
        self.source.commit_txn(CommitTxnRequest(txn_id=txn_id))

    def clean(self) -> int:
        """Archive and remove what compactions replaced; how many files were archived."""
        count = 0
        self.clock.time_ms += 10_000
        for entry in self.source.find_ready_to_clean():
            root = self.root(entry.target.table, entry.target.partition or "")
            txns = current_snapshot(self.source)
            (write_ids,) = self.source.get_valid_write_ids([f"src.{entry.target.table}"], txns)
            state = acid_state(root, txns, write_ids, is_insert_only=False)
            for one in state.obsolete:
                place = root.child(one.path)
                context = ArchiveContext(
                    cause=ArchiveCause.OBSOLETE, database="src", table=entry.target.table
                )
                report = self.archive.recycle(
                    place.uri, RecycleKind.MOVE, is_purge=True, root=root.uri, context=context
                )
                shutil.rmtree(place.path)
                count += report.archived_count
            self.source.mark_cleaned(entry)
        return count

    def purge(self, overridden: Sequence[str] = ()) -> int:
        """Purge the archive now; how many files went."""
        job = Purge(self.archive, self.source.manifest, self.clock)
        report = job.run(job.plan(overridden=overridden))
        return len(report.deleted)

    def dump_request(self, **changes: Any) -> DumpRequest:
        return DumpRequest(
            **{
                "root": str(self.repl_root),
                "database": "src",
                "cm_root": f"file:{self.cmroot}",
                "wait": WaitRules(timeout_seconds=10, poll_seconds=1),
                "lease": LEASE,
                **changes,
            }
        )

    def dumper(self, source: Any = None) -> ReplDump:
        return ReplDump(
            source or self.source, self.resolve, self.clock, self.token, self.source.manifest
        )

    def dump(self, source: Any = None, **changes: Any) -> DumpReport:
        self.clock.time_ms += 1000
        dumper = self.dumper(source)
        return dumper.run(dumper.plan(self.dump_request(**changes)))

    def loader(self, target: Any = None, **options: Any) -> ReplLoad:
        return ReplLoad(target or self.target, self.resolve, clock=self.clock, **options)

    @property
    def load_request(self) -> LoadRequest:
        return LoadRequest(
            root=str(self.repl_root), source_database="src", target_database="dst", lease=LEASE
        )

    def load(self) -> LoadReport:
        loader = self.loader()
        return loader.run(loader.plan(self.load_request))

    def replicate(self) -> tuple[DumpReport, LoadReport]:
        return self.dump(), self.load()

    def rows(self, database: str, table: str) -> list[dict[str, Any]]:
        store = self.source if database == "src" else self.target
        return acid_rows(store, self.resolve, database, table)

    def tables(self, database: str) -> tuple[str, ...]:
        store = self.source if database == "src" else self.target
        return store.get_tables(database)

    def assert_same(self) -> None:
        """I1: both sides have the same tables, rows, row ids and write ids."""
        assert self.tables("dst") == self.tables("src")
        for name in self.tables("src"):
            assert self.rows("dst", name) == self.rows("src", name), name
            highest = self.source.get_max_allocated_write_id("src", name)
            assert self.target.get_max_allocated_write_id("dst", name) == highest, name

    def last_event(self) -> str:
        return self.target.get_database("dst").parameters["repl.last.id"]

    def open_txn_ids(self) -> list[TxnId]:
        return [one.id for one in self.source.get_open_txns_info() if one.state is TxnState.OPEN]
