"""Those who write and read the source's tables: with Hive's locks, and without."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hms_bridge.directories.listing import list_acid_directory
from hms_bridge.errors import HmsBridgeError
from hms_bridge.model.ids import TxnId
from hms_bridge.model.lock import (
    DataOperation,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
)
from hms_bridge.model.target import Scope
from hms_bridge.model.txn import (
    CommitTxnRequest,
    OpenTxnsRequest,
    TxnType,
)
from hms_bridge.rows.reader import ROW_ID_COLUMN, Projection
from hms_bridge.session.min_history import register_reader
from hms_bridge.session.transaction import current_snapshot
from hms_bridge.snapshot.plan import plan_read
from tests.simulation.cluster import Cluster
from tests.simulation.definitions import Columns
from tests.simulation.model import Effect, Tables
from tests.simulation.plain_reader import Row, Rows, cut_rows, trimmed
from tests.simulation.some_values import some_value
from tests.simulation.statements import PAUSES, NotTodayError, Statement, row_type
from tests.simulation.story import OpenReader, ViolationError
from tests.support.plan_rows import read_plan

_WITHOUT_LOCK = 0.06
"""So many inserts take none."""
PARTITIONS = ("p=1", "p=2", "p=3")
ELSEWHERE = "/elsewhere"
"""Where copies of tables lie that no metastore knows, and some partitions."""


class Clients:
    """What clients do, each a method that an actor runs to its end."""

    def __init__(self, cluster: Cluster, *, first_row: int = 0) -> None:
        self.cluster = cluster
        self._row = first_row

    def _rows(self, dice: random.Random, table: str) -> list[Row]:
        rows = []
        columns = self.cluster.source.columns(table)
        for _ in range(dice.randint(1, 3)):
            number = self._next_row()
            more = [
                None if dice.random() < 0.3 else some_value(dice, kind, number)
                for _, kind in columns[2:]
            ]
            rows.append(trimmed([number, f"v{number}", *more]))
        return rows

    def _next_row(self) -> int:
        """A number that no row had before."""
        self._row += 1
        return self._row

    def _some_table(self, dice: random.Random) -> str:
        tables = sorted(self.cluster.model.tables)
        if not tables:
            raise NotTodayError("no table")
        return self.cluster.pick(dice, tables)

    def _path(self, table: str, partition: str) -> str:
        """Where a statement's plan says that it writes."""
        if table not in self.cluster.source.table_ids():
            raise NotTodayError("dropped")
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
            is_locked = dice.random() > _WITHOUT_LOCK
            if is_locked:
                statement.lock(LockType.SHARED_WRITE, DataOperation.INSERT, [partition])
            statement.allocate()
            path = self._path(table, partition)
            statement.insert(path, partition, self._rows(dice, table), 0)
            if dice.random() < 0.2:
                statement.insert(path, partition, self._rows(dice, table), 1)
            if not is_locked:
                statement.commit_without_lock(path)
                return
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
                statement.insert(self._path(table, name), name, self._rows(dice, table), 0)
            new = [one for one in names if one not in self.cluster.source.places(table)]
            if new:
                self.add_partitions(table, new)
            self._end(statement, dice, DataOperation.INSERT, is_dynamic=True)
        except (HmsBridgeError, OSError, NotTodayError):
            self._give_up(statement)

    def add_partitions(self, table: str, names: Sequence[str], location: str | None = None) -> None:
        """`location`: of one that lies elsewhere than in its table's directory."""

        def apply(tables: Tables) -> None:
            for name in names:
                if name in self.cluster.source.places(table):
                    rows = self.cluster.left_rows.get(table, {}).pop(name, {})
                    tables[table].partitions.setdefault(name, rows)

        effect = Effect(
            lambda: any(name in self.cluster.source.places(table) for name in names),
            apply,
            is_met_already=True,
        )
        with self.cluster.meaning(effect):
            self.cluster.source.metastore.add_partitions(
                self.cluster.database,
                table,
                [self.cluster.partition(table, name, location) for name in names],
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
            rows = [] if is_empty else self._rows(dice, table)
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
                register_reader(store, txn_id, [f"{self.cluster.database}.{table}"])
            reader, write_ids, txns = self._snapshot(txn_id, table)
            for _ in range(2):
                for partition in sorted(reader.places):
                    self._read_partition(reader, partition, txns, write_ids)
                for _ in range(PAUSES):
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
            scope=Scope(self.cluster.database, table),
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
            txns = current_snapshot(store, txn_id if txn_id > 0 else None)
            known = self.cluster.model.tables.get(table)
            if known is None:
                raise NotTodayError("dropped")
            if not self.cluster.source.story.is_master:
                raise NotTodayError("a replica meanwhile")
            there = self.cluster.source.places(table)
            is_moving = self.cluster.source.is_moving
            places = {name: path for name, path in there.items() if not is_moving(path)}
            reader = OpenReader(
                txn_id=txn_id,
                table=table,
                view=self.cluster.source.view(table),
                rows={name: dict(known.partitions[name]) for name in places},
                places=places,
                columns=known.columns,
            )
            (write_ids,) = store.get_valid_write_ids([f"{self.cluster.database}.{table}"], txns)
            self.cluster.readers[txn_id] = reader
        return reader, write_ids, txns

    def _read_partition(
        self, reader: OpenReader, partition: str, txns: Any, write_ids: Any
    ) -> None:
        """By the product's own path, against what the model had when the snapshot was taken."""
        path = reader.places.get(partition)
        if path is None:
            return
        found = self._rows_of(path, reader.columns, txns, write_ids)
        is_promised = partition in reader.places and self.cluster.is_open(reader.txn_id)
        if is_promised and found != reader.rows[partition]:
            raise ViolationError(
                "I2", f"reader {reader.txn_id} read {found}, not {reader.rows[partition]}"
            )

    def _rows_of(self, path: str, columns: Columns, txns: Any, write_ids: Any) -> Rows:
        volume = self.cluster.volume
        listing = list_acid_directory(volume, path)
        plan = plan_read(listing, txns=txns, write_ids=write_ids, is_bucketed=False)
        found: Rows = {}
        projection = Projection(table=row_type(columns), has_row_id=True)
        for batch in read_plan(volume, plan, projection):
            for row in batch.to_pylist():
                key = row.pop(ROW_ID_COLUMN)
                found[key["writeid"], key["bucketid"], key["rowid"]] = trimmed(row.values())
        return found

    def read_all(self, dice: random.Random) -> None:
        """Readers that come now, of every table of the source, by the product's own path."""
        for table in sorted(self.cluster.model.tables):
            self.read_table(table, dice)

    # -- statements without a lock, as Spark and Trino make them

    def _set_columns(self, tables: Tables, table: str, columns: Sequence[tuple[str, str]]) -> None:
        """Also of rows whose partition nobody has registered yet."""
        tables[table].set_columns(tuple(columns))
        left = self.cluster.left_rows.get(table, {})
        left.update({name: cut_rows(rows, len(columns)) for name, rows in left.items()})

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
        table, name = dice.choice(names), self.cluster.pick(dice, PARTITIONS)
        above = f"{ELSEWHERE}/{table}-{self._next_row()}" if dice.random() < 0.3 else None
        self.add_partitions(table, [name], above)

    def drop_partition(self, dice: random.Random) -> None:
        table, partition = self._partition_there(dice)

        def apply(tables: Tables) -> None:
            tables[table].partitions.pop(partition, None)
            self.cluster.taken_away(table, [partition])

        effect = Effect(lambda: not self._is_there(table, partition), apply)
        with self.cluster.meaning(effect):
            self.cluster.source.metastore.drop_partitions(self.cluster.database, table, [partition])

    def _is_there(self, table: str, partition: str) -> bool:
        side = self.cluster.source
        return table in side.table_ids() and partition in side.places(table)

    def drop_table(self, dice: random.Random) -> None:
        table = self._some_table(dice)
        places = self.cluster.source.places(table)
        elsewhere = [name for name, place in places.items() if place.startswith(ELSEWHERE)]

        def apply(tables: Tables) -> None:
            self.cluster.taken_away(table, sorted(tables[table].partitions))
            known = tables.pop(table)
            for name in elsewhere:  # nobody finds it with the table's directory
                known.partitions.pop(name, None)
            self.cluster.left_rows.pop(table, None)
            written = known.definition.write_id if known.definition else 0
            view = replace(self.cluster.source.view(table), highest=written)
            self.cluster.dropped[table] = known, view

        effect = Effect(lambda: table not in self.cluster.source.table_ids(), apply)
        with self.cluster.meaning(effect):
            self.cluster.source.metastore.drop_table(self.cluster.database, table)

    def create(self, dice: random.Random) -> None:
        """A table that was dropped comes again under its name, or a new one."""
        names = [one for one in ("t", "q", "n") if one not in self.cluster.model.tables]
        if not names:
            raise NotTodayError("all are there")
        self.cluster.create_table(dice.choice(names), is_partitioned=dice.random() < 0.5)

    def rename_table(self, dice: random.Random) -> None:
        table = self._some_table(dice)
        free = [name for name in "tqnm" if name not in self.cluster.model.tables]
        if not free:
            raise NotTodayError("all are taken")
        self.rename_to(table, dice.choice(free))

    def rename_to(self, table: str, new: str) -> None:
        """A table that is there gets a name that is free."""
        store = self.cluster.source.metastore
        before = store.get_table(self.cluster.database, table)

        def apply(tables: Tables) -> None:
            if table not in tables:  # another rename to this name was faster
                return
            self.cluster.taken_away(table, sorted(tables[table].partitions))
            # What the statement read before it changed the name is written with it.
            read = tuple((column.name, column.type) for column in before.storage.columns)
            self._set_columns(tables, table, read)
            tables[new] = tables.pop(table)
            for follow in self.cluster.on_renamed:
                follow(table, new)

        def has_happened() -> bool:
            there = self.cluster.source.table_ids()
            return new in there and table not in there

        def begin(tables: Tables) -> None:
            if table in tables:  # else it was dropped when the rename had looked at it
                self.cluster.taken_away(table, sorted(tables[table].partitions))

        path = self._path(table, "")
        begins = Effect(lambda: self.cluster.source.is_moving(path), begin)
        with self.cluster.meaning(begins), self.cluster.meaning(Effect(has_happened, apply)):
            store.alter_table(self.cluster.database, table, replace(before, name=new))
