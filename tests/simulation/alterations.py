"""Those who empty tables, and who change their columns."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from hms_bridge.errors import HmsBridgeError
from hms_bridge.model.catalog import Column
from hms_bridge.model.lock import DataOperation, LockType
from tests.simulation.clients import PARTITIONS, Clients
from tests.simulation.model import Effect, Tables
from tests.simulation.some_values import ADDED_TYPES
from tests.simulation.statements import NotTodayError, Statement

_COLUMNS_MAX = 5


class Alterations(Clients):
    """What clients do to a table as a whole, each a method that an actor runs to its end."""

    # -- with Hive's lock (TruncateTableAnalyzer: DDL_EXCL_WRITE, with a base instead of a deletion)

    def truncate(self, dice: random.Random) -> None:
        """TRUNCATE of a table, or of some of its partitions."""
        table = self._some_table(dice)
        names = sorted(self.cluster.model.tables[table].partitions)
        is_partitioned = self.cluster.model.tables[table].is_partitioned
        chosen: Sequence[str] | None = None
        if is_partitioned and names and dice.random() < 0.6:
            chosen = dice.sample(names, dice.randint(1, len(names)))
        statement = Statement(self.cluster, dice, table)
        try:
            kind, locked = LockType.EXCL_WRITE, chosen or [""]
            statement.lock(kind, DataOperation.NO_TXN, locked, is_dynamic=False)
            statement.allocate()
            statement.overwritten.update(names if chosen is None else chosen)
            self.cluster.source.metastore.truncate_table(
                self.cluster.database, table, chosen, write_id=statement.write_id
            )
            if chosen is None:
                statement.overwritten.update(self._emptied(table, statement.write_id))
            self._end(statement, dice, DataOperation.NO_TXN)
        except (HmsBridgeError, OSError, NotTodayError):
            self._give_up(statement)

    def _emptied(self, table: str, write_id: int) -> list[str]:
        """Partitions that came while the statement waited are among all of them."""
        disk, base = self.cluster.disk, f"base_{write_id:07d}"
        places = self.cluster.source.places(table)
        return [name for name, path in places.items() if disk.find(f"{path}/{base}") is not None]

    # -- without a lock

    def rename_partition(self, dice: random.Random) -> None:
        """ALTER TABLE … PARTITION … RENAME TO PARTITION: its directory moves."""
        table, old = self._partition_there(dice)
        there = self.cluster.model.tables[table].partitions
        new = dice.choice([name for name in (*PARTITIONS, "p=4") if name not in there] or [old])
        if new == old:
            raise NotTodayError("all are taken")
        store, side = self.cluster.source.metastore, self.cluster.source
        before = store.get_partition(self.cluster.database, table, [old.partition("=")[2]])
        path = side.places(table)[old]

        def apply(tables: Tables) -> None:
            self.cluster.taken_away(table, [old])
            tables[table].partitions[new] = tables[table].partitions.pop(old)
            for follow in self.cluster.on_moved:
                follow(table, old, new)

        begins = Effect(
            lambda: side.is_moving(path), lambda _: self.cluster.taken_away(table, [old])
        )
        ends = Effect(lambda: self._is_there(table, new) and not self._is_there(table, old), apply)
        with self.cluster.meaning(begins), self.cluster.meaning(ends):
            store.rename_partition(
                self.cluster.database,
                table,
                before.values,
                replace(
                    before,
                    values=(new.partition("=")[2],),
                    storage=replace(before.storage, location=None),
                ),
            )

    def add_column(self, dice: random.Random) -> None:
        """Old rows have no value for it. Sometimes with CASCADE to the partitions.

        Not where files have values of a column that went: they would show again, and not be read
        if the type is another one, as in Hive."""
        table = self._some_table(dice)
        columns = self.cluster.source.columns(table)
        if len(columns) >= _COLUMNS_MAX:
            raise NotTodayError("wide enough")
        if self.cluster.model.tables[table].has_cut_rows:
            raise NotTodayError("values of another column are in the files")
        added = f"c{len(columns)}", dice.choice(ADDED_TYPES)
        self._alter_columns(dice, table, (*columns, added))

    def change_column(self, dice: random.Random) -> None:
        """Another name, or a wider type."""
        table = self._some_table(dice)
        columns = list(self.cluster.source.columns(table))
        at = dice.randrange(len(columns))
        name, kind = columns[at]
        if kind == "int" and dice.random() < 0.5:
            columns[at] = name, "bigint"
        else:
            columns[at] = name.partition("_")[0] + dice.choice(("", "_a", "_b")), kind
        self._alter_columns(dice, table, tuple(columns))

    def _alter_columns(
        self, dice: random.Random, table: str, columns: Sequence[tuple[str, str]]
    ) -> None:
        store = self.cluster.source.metastore
        before = store.get_table(self.cluster.database, table)
        wanted = tuple(Column(name=name, type=kind) for name, kind in columns)
        storage = replace(before.storage, columns=wanted)

        def apply(tables: Tables) -> None:
            self._set_columns(tables, table, columns)

        def has_happened() -> bool:
            side = self.cluster.source
            return table in side.table_ids() and side.columns(table) == tuple(columns)

        environment = {"CASCADE": "true"} if dice.random() < 0.5 else {}
        with self.cluster.meaning(Effect(has_happened, apply)):
            store.alter_table(
                self.cluster.database,
                table,
                replace(before, storage=storage),
                environment=environment,
            )
