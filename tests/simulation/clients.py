"""Those who write and read the source's tables: with Hive's locks, and without."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from hms_bridge.errors import HmsBridgeError
from hms_bridge.model.event import WriteNotification
from hms_bridge.model.ids import TxnId, WriteId
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
)
from hms_bridge.model.txn import (
    AbortTxnRequest,
    AllocateWriteIdsRequest,
    CommitTxnRequest,
    DynamicPartitions,
    OpenTxnsRequest,
    TxnType,
)
from hms_bridge.orc.hive_types import parse_hive_type
from hms_bridge.orc.types import struct_type
from hms_bridge.rows.listing import list_acid_directory
from hms_bridge.rows.min_history import register_reader
from hms_bridge.rows.reader import ROW_ID_COLUMN, Projection, read_plan
from hms_bridge.rows.transaction import current_snapshot
from hms_bridge.rows.writer import DeltaTarget, write_delete_delta, write_insert_delta
from hms_bridge.snapshot.plan import plan_read
from tests.simulation.cluster import Cluster, OpenReader, ViolationError
from tests.simulation.model import Effect, Tables, write_effect
from tests.simulation.plain_reader import Row, RowId, Rows

ROW_TYPE = struct_type(["id", "v"], [parse_hive_type("int"), parse_hive_type("string")])
ROW_ID = pa.struct([("writeid", pa.int64()), ("bucketid", pa.int32()), ("rowid", pa.int64())])
PARTITIONS = ("p=1", "p=2", "p=3")
_WAITS_MAX = 6
_PAUSES = 8
"""Points at which a statement or a reader stands still: its other tasks are at work."""
_BUCKET_VERSION = 1 << 29


class NotTodayError(Exception):
    """The statement finds nothing to do, or does not get its locks."""


def bucket_property(statement: int) -> int:
    """Of bucket 0 (BucketCodec V1)."""
    return _BUCKET_VERSION + statement


class Statement:
    """One transaction of a client of Hive's kind."""

    def __init__(self, cluster: Cluster, dice: random.Random, table: str) -> None:
        self.cluster = cluster
        self.dice = dice
        self.store = cluster.source.metastore
        self.table = table
        (self.id,) = self.store.open_txns(OpenTxnsRequest(user="u", host="h"))
        self.inserts: dict[str, Rows] = {}
        self.deletes: dict[str, set[RowId]] = {}
        self.overwritten: set[str] = set()
        self.write_id = WriteId(0)
        self._written: list[tuple[str, tuple[str, ...]]] = []

    def lock(self, kind: LockType, operation: DataOperation, partitions: Sequence[str]) -> None:
        components = tuple(
            LockComponent(
                type=kind,
                level=LockLevel.PARTITION if partition else LockLevel.TABLE,
                database_name="src",
                table_name=self.table,
                partition_name=partition or None,
                operation=operation,
                is_transactional=True,
                is_dynamic_partition_write=not partition and len(partitions) == 1,
            )
            for partition in partitions
        )
        answer = self.store.lock(
            LockRequest(components=components, txn_id=self.id, user="u", host="h")
        )
        for _ in range(_WAITS_MAX):
            if answer.state is LockState.ACQUIRED:
                return
            self.cluster.scheduler.point("waits for a lock")
            answer = self.store.check_lock(answer.lock_id)
        if answer.state is not LockState.ACQUIRED:
            raise NotTodayError("locked")

    def allocate(self) -> None:
        (given,) = self.store.allocate_table_write_ids(
            AllocateWriteIdsRequest(database_name="src", table_name=self.table, txn_ids=(self.id,))
        )
        self.write_id = given.write_id

    def seen(self, partition: str) -> Rows:
        """Committed rows, as this statement's snapshot has them: it holds its locks."""
        table = self.cluster.model.tables.get(self.table)
        return dict(table.partitions.get(partition, {})) if table else {}

    def insert(self, path: str, partition: str, rows: Sequence[Row], statement: int) -> None:
        target = self._target(path, statement)
        written = write_insert_delta(self.cluster.fs, target, [(0, _batch(rows))])
        assert written is not None
        ids = ((self.write_id, bucket_property(statement), at) for at in range(len(rows)))
        self.inserts.setdefault(partition, {}).update(zip(ids, rows, strict=True))
        self._note(partition, [bucket.path for bucket in written.buckets])

    def delete(self, path: str, partition: str, victims: Sequence[RowId], statement: int) -> None:
        names = ("writeid", "bucketid", "rowid")
        keys = [dict(zip(names, victim, strict=True)) for victim in victims]
        target = self._target(path, statement)
        written = write_delete_delta(self.cluster.fs, target, [pa.array(keys, ROW_ID)])
        assert written is not None
        self.deletes.setdefault(partition, set()).update(victims)
        self._note(partition, [bucket.path for bucket in written.buckets])

    def overwrite(self, path: str, partition: str, rows: Sequence[Row]) -> None:
        """A base of the write id, empty for no rows: as Hive's direct insert does it."""
        name = f"base_{self.write_id:07d}"
        volume = self.cluster.fs.own_volume
        self.overwritten.add(partition)
        if not rows:
            self.cluster.fs.makedirs(f"{path}/{name}", exist_ok=True)
            self.cluster.fs.pipe_file(f"{path}/{name}/_orc_acid_version", b"2")
            self.cluster.disk.settle(f"{path}/{name}")
            self._note(partition, [])
            return
        hidden = f"{path}/.hive-staging_{self.id}"
        written = write_insert_delta(self.cluster.fs, self._target(hidden, 0), [(0, _batch(rows))])
        assert written is not None
        volume.rename(written.path, f"{path}/{name}")
        self.cluster.fs.rm(hidden, recursive=True)
        self.cluster.disk.settle(f"{path}/{name}")
        ids = ((self.write_id, bucket_property(0), at) for at in range(len(rows)))
        self.inserts.setdefault(partition, {}).update(zip(ids, rows, strict=True))
        self._note(partition, [f"{path}/{name}/bucket_00000"])

    def commit(self, operation: DataOperation, *, is_dynamic: bool = False) -> None:
        for _ in range(_PAUSES):
            self.cluster.scheduler.point("other tasks go on", changes=False)
        notifications = [self._notification(*one) for one in self._written]
        self.store.add_write_notifications(notifications)
        names = tuple(sorted({*self.inserts, *self.deletes, *self.overwritten} - {""}))
        if names and is_dynamic:
            self.store.add_dynamic_partitions(
                DynamicPartitions(
                    txn_id=self.id,
                    write_id=self.write_id,
                    database_name="src",
                    table_name=self.table,
                    partition_names=names,
                    operation=operation,
                )
            )
        with self.cluster.meaning(self.effect()):
            self.store.commit_txn(CommitTxnRequest(txn_id=self.id))

    def effect(self) -> Effect:
        return write_effect(
            self.cluster.source.ledger,
            self.id,
            self.table,
            self.inserts,
            self.deletes,
            self.overwritten,
        )

    def abort(self) -> None:
        self.store.abort_txn(AbortTxnRequest(txn_id=self.id))

    def _target(self, path: str, statement: int) -> DeltaTarget:
        return DeltaTarget(
            root=path,
            table=ROW_TYPE,
            write_id=self.write_id,
            statement_id=statement,
            token=f"write_v{self.id:07d}",
        )

    def _note(self, partition: str, paths: Sequence[str]) -> None:
        self._written.append((partition, tuple(paths)))

    def _notification(self, partition: str, paths: tuple[str, ...]) -> WriteNotification:
        files = [self.cluster.resolve(path) for path in paths]
        return WriteNotification(
            txn_id=self.id,
            write_id=self.write_id,
            database_name="src",
            table_name=self.table,
            partition_values=(partition.partition("=")[2],) if partition else (),
            files=tuple(file.uri for file in files),
            checksums=tuple(file.checksum() for file in files),
            subdirectories=tuple(file.parent.name for file in files),
        )


def _batch(rows: Sequence[Row]) -> pa.RecordBatch:
    ids = pa.array([one for one, _ in rows], pa.int32())
    texts = pa.array([one for _, one in rows], pa.string())
    return pa.RecordBatch.from_arrays([ids, texts], names=["id", "v"])


class Clients:
    """What clients do, each a method that an actor runs to its end."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._row = 0

    def _rows(self, dice: random.Random) -> list[Row]:
        rows = []
        for _ in range(dice.randint(1, 3)):
            self._row += 1
            rows.append((self._row, f"v{self._row}"))
        return rows

    def _some_table(self, dice: random.Random) -> str:
        tables = sorted(self.cluster.model.tables)
        if not tables:
            raise NotTodayError("no table")
        return self.cluster.pick(dice, tables)

    def _path(self, table: str, partition: str) -> str:
        """Where a statement's plan says that it writes."""
        location = self.cluster.source.table_location(table).removeprefix("file:")
        if not partition:
            return location
        return self.cluster.source.places(table).get(partition, f"{location}/{partition}")

    # -- writers

    def insert(self, dice: random.Random) -> None:
        """One table or static partition, sometimes two statements of one transaction."""
        table = self._some_table(dice)
        known = self.cluster.model.tables[table]
        if known.is_partitioned and (not known.partitions or dice.random() < 0.4):
            self._dynamic_insert(dice, table)
        else:
            self.insert_into(table, dice)

    def insert_into(self, table: str, dice: random.Random) -> None:
        """A partition that is there, or the table without any."""
        partition = self.cluster.pick(dice, sorted(self.cluster.model.tables[table].partitions))
        statement = Statement(self.cluster, dice, table)
        try:
            statement.lock(LockType.SHARED_WRITE, DataOperation.INSERT, [partition])
            statement.allocate()
            path = self._path(table, partition)
            statement.insert(path, partition, self._rows(dice), 0)
            if dice.random() < 0.2:
                statement.insert(path, partition, self._rows(dice), 1)
            self._end(statement, dice, DataOperation.INSERT)
        except (HmsBridgeError, OSError, NotTodayError):
            self._give_up(statement)

    def _dynamic_insert(self, dice: random.Random, table: str) -> None:
        """Files first, partitions then, as Hive and Trino do."""
        statement = Statement(self.cluster, dice, table)
        try:
            statement.lock(LockType.SHARED_WRITE, DataOperation.INSERT, [""])
            statement.allocate()
            first = self.cluster.pick(dice, PARTITIONS)
            names = list(dict.fromkeys((first, dice.choice(PARTITIONS))))
            for name in names:
                statement.insert(self._path(table, name), name, self._rows(dice), 0)
            new = [one for one in names if one not in self.cluster.source.places(table)]
            if new:
                self.add_partitions(table, new)
            self._end(statement, dice, DataOperation.INSERT, is_dynamic=True)
        except (HmsBridgeError, OSError, NotTodayError):
            self._give_up(statement)

    def add_partitions(self, table: str, names: Sequence[str]) -> None:
        def apply(tables: Tables) -> None:
            for name in names:
                if name in self.cluster.source.places(table):
                    tables[table].partitions.setdefault(name, {})

        effect = Effect(
            lambda: any(name in self.cluster.source.places(table) for name in names), apply
        )
        with self.cluster.meaning(effect):
            self.cluster.source.metastore.add_partitions(
                "src",
                table,
                [self.cluster.partition(table, name) for name in names],
                is_if_not_exists=True,
            )

    def change(self, dice: random.Random) -> None:
        """UPDATE or DELETE of some rows."""
        table = self._some_table(dice)
        names = sorted(self.cluster.model.tables[table].partitions)
        if not names:
            raise NotTodayError("no partition")
        partition = self.cluster.pick(dice, names)
        is_update = dice.random() < 0.6
        operation = DataOperation.UPDATE if is_update else DataOperation.DELETE
        statement = Statement(self.cluster, dice, table)
        try:
            statement.lock(LockType.EXCL_WRITE, operation, [partition])
            statement.allocate()
            seen = statement.seen(partition)
            if not seen:
                raise NotTodayError("no rows")
            victims = dice.sample(sorted(seen), min(len(seen), dice.randint(1, 2)))
            path = self._path(table, partition)
            statement.delete(path, partition, victims, 0)
            if is_update:
                statement.insert(path, partition, [seen[one] for one in victims], 1)
            self._end(statement, dice, operation)
        except (HmsBridgeError, OSError, NotTodayError):
            self._give_up(statement)

    def overwrite(self, dice: random.Random) -> None:
        """INSERT OVERWRITE, perhaps with no rows."""
        table = self._some_table(dice)
        names = sorted(self.cluster.model.tables[table].partitions)
        if not names:
            raise NotTodayError("no partition")
        partition = self.cluster.pick(dice, names)
        statement = Statement(self.cluster, dice, table)
        try:
            statement.lock(LockType.EXCL_WRITE, DataOperation.UPDATE, [partition])
            statement.allocate()
            is_empty = dice.random() < 0.5
            rows = [] if is_empty else self._rows(dice)
            statement.overwrite(self._path(table, partition), partition, rows)
            self._end(statement, dice, DataOperation.UPDATE)
        except (HmsBridgeError, OSError, NotTodayError):
            self._give_up(statement)

    def _end(
        self,
        statement: Statement,
        dice: random.Random,
        operation: DataOperation,
        *,
        is_dynamic: bool = False,
    ) -> None:
        if dice.random() < 0.15:
            statement.abort()
        else:
            statement.commit(operation, is_dynamic=is_dynamic)

    def _give_up(self, statement: Statement) -> None:
        try:
            statement.abort()
        except (HmsBridgeError, OSError):
            return

    # -- readers

    def read(self, dice: random.Random) -> None:
        """A reader that reads its plan's files one by one, and then all of it again."""
        self.read_table(self._some_table(dice), dice)

    def read_table(self, table: str, dice: random.Random) -> None:
        """The same of a given table."""
        store = self.cluster.source.metastore
        (txn_id,) = store.open_txns(OpenTxnsRequest(user="r", host="h", type=TxnType.READ_ONLY))
        try:
            self._lock_for_reading(txn_id, table)
            if dice.random() < 0.7:
                register_reader(store, txn_id, [f"src.{table}"])
            reader, write_ids, txns = self._snapshot(txn_id, table)
            for _ in range(2):
                for partition in sorted(reader.places):
                    self._read_partition(reader, partition, txns, write_ids)
                for _ in range(_PAUSES):
                    self.cluster.scheduler.point("reader pauses", changes=False)
            store.commit_txn(CommitTxnRequest(txn_id=txn_id))
        except (NotTodayError, HmsBridgeError, OSError):
            reader = self.cluster.readers.get(txn_id)
            if reader and not reader.is_unsettled and self.cluster.is_open(txn_id):
                raise
            return
        finally:
            self.cluster.readers.pop(txn_id, None)

    def _lock_for_reading(self, txn_id: TxnId, table: str) -> None:
        component = LockComponent(
            type=LockType.SHARED_READ,
            level=LockLevel.TABLE,
            database_name="src",
            table_name=table,
            operation=DataOperation.SELECT,
            is_transactional=True,
        )
        answer = self.cluster.source.metastore.lock(
            LockRequest(components=(component,), txn_id=txn_id, user="r", host="h")
        )
        if answer.state is not LockState.ACQUIRED:
            raise NotTodayError("locked")

    def _snapshot(self, txn_id: TxnId, table: str) -> tuple[OpenReader, Any, Any]:
        """The lists that a client takes, and what they must show for as long as it reads."""
        store = self.cluster.source.metastore
        with self.cluster.scheduler.atomic():
            txns = current_snapshot(store, txn_id)
            known = self.cluster.model.tables.get(table)
            if known is None:
                raise NotTodayError("dropped")
            places = self.cluster.source.places(table)
            sure = [name for name in places if name not in known.unsure]
            reader = OpenReader(
                txn_id=txn_id,
                table=table,
                view=self.cluster.source.view(table),
                rows={name: dict(known.partitions[name]) for name in sure},
                places={name: places[name] for name in sure},
            )
            (write_ids,) = store.get_valid_write_ids([f"src.{table}"], txns)
            self.cluster.readers[txn_id] = reader
        return reader, write_ids, txns

    def _read_partition(
        self, reader: OpenReader, partition: str, txns: Any, write_ids: Any
    ) -> None:
        """By the product's own path, against what the model had when the snapshot was taken."""
        path = reader.places.get(partition)
        if path is None:
            return
        fs = self.cluster.fs
        listing = list_acid_directory(fs, path)
        plan = plan_read(listing, txns=txns, write_ids=write_ids, is_bucketed=False)
        found: Rows = {}
        for batch in read_plan(fs, plan, Projection(table=ROW_TYPE, has_row_id=True)):
            for row in batch.to_pylist():
                key = row[ROW_ID_COLUMN]
                found[key["writeid"], key["bucketid"], key["rowid"]] = row["id"], row["v"]
        is_promised = partition in reader.places and self.cluster.is_open(reader.txn_id)
        if is_promised and found != reader.rows[partition]:
            raise ViolationError(
                "I2", f"reader {reader.txn_id} read {found}, not {reader.rows[partition]}"
            )

    def read_all(self, dice: random.Random) -> None:
        """Readers that come now, of every table of the source, by the product's own path."""
        for table in sorted(self.cluster.model.tables):
            self.read_table(table, dice)

    # -- statements without a lock, as Spark and Trino make them

    def _partition_there(self, dice: random.Random) -> tuple[str, str]:
        tables = self.cluster.model.tables
        names = [name for name in sorted(tables) if any(tables[name].partitions)]
        if not names:
            raise NotTodayError("no partition")
        table = self.cluster.pick(dice, names)
        return table, self.cluster.pick(dice, sorted(tables[table].partitions))

    def add_partition(self, dice: random.Random) -> None:
        tables = self.cluster.model.tables
        names = [name for name in sorted(tables) if tables[name].is_partitioned]
        if not names:
            raise NotTodayError("no table")
        self.add_partitions(dice.choice(names), [self.cluster.pick(dice, PARTITIONS)])

    def drop_partition(self, dice: random.Random) -> None:
        table, partition = self._partition_there(dice)

        def apply(tables: Tables) -> None:
            tables[table].partitions.pop(partition, None)
            self.cluster.taken_away(table, [partition])

        effect = Effect(lambda: not self._is_there(table, partition), apply)
        with self.cluster.meaning(effect):
            self.cluster.source.metastore.drop_partitions("src", table, [partition])

    def _is_there(self, table: str, partition: str) -> bool:
        side = self.cluster.source
        return table in side.table_ids() and partition in side.places(table)

    def drop_table(self, dice: random.Random) -> None:
        table = self._some_table(dice)

        def apply(tables: Tables) -> None:
            self.cluster.taken_away(table, sorted(tables[table].partitions))
            del tables[table]

        effect = Effect(lambda: table not in self.cluster.source.table_ids(), apply)
        with self.cluster.meaning(effect):
            self.cluster.source.metastore.drop_table("src", table)

    def create(self, dice: random.Random) -> None:
        """A table that was dropped comes again under its name, or a new one."""
        names = [one for one in ("t", "q", "n") if one not in self.cluster.model.tables]
        if not names:
            raise NotTodayError("all are there")
        self.cluster.create_table(dice.choice(names), is_partitioned=dice.random() < 0.5)

    def rename_table(self, dice: random.Random) -> None:
        table, new = self._some_table(dice), dice.choice("tqnm")
        if new in self.cluster.model.tables:
            raise NotTodayError("taken")
        store = self.cluster.source.metastore
        before = store.get_table("src", table)

        def apply(tables: Tables) -> None:
            self.cluster.taken_away(table, sorted(tables[table].partitions))
            tables[new] = tables.pop(table)
            ids = self.cluster.source.ledger.write_ids
            ids["src", new] = ids.pop(("src", table), {})

        def has_happened() -> bool:
            there = self.cluster.source.table_ids()
            return new in there and table not in there

        with self.cluster.meaning(Effect(has_happened, apply)):
            store.alter_table("src", table, replace(before, name=new))
