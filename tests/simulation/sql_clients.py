"""Those who type SQL: parsed and planned by the product, with a plain engine in place of Spark.

What a text means is known without the product: each is made for rows that are chosen first. A
clause that is passed over changes other rows than those, and I1 is broken.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.executor import execute

from hms_bridge.dml.names import ROW_ID, ROW_PARTITION
from hms_bridge.dml.parse import parse_statement
from hms_bridge.dml.plan import Write, WritePlan, plan_write
from hms_bridge.dml.statement import Delete, NameAsWritten, Update
from hms_bridge.errors import HmsBridgeError
from tests.simulation.alterations import Alterations
from tests.simulation.plain_reader import Row, RowId, Rows, trimmed
from tests.simulation.statements import NotTodayError, Statement

Place = tuple[str, RowId]
"""A row: its partition, and its key there."""


@dataclass(frozen=True)
class Meant:
    """A text, the first value of the rows that it is to change (None: of one row, whichever), and
    the second value that an UPDATE gives them."""

    text: str
    first_value: object
    new_value: str | None

    def of(self, seen: Mapping[str, Rows]) -> dict[Place, Row]:
        """The rows that it means among those that are there when it has its locks, and what they
        become. Not sooner: a rebalance gives rows other keys."""
        places = sorted((name, key) for name, rows in seen.items() for key in rows)
        if self.first_value is None:
            places = places[:1]
        found = {}
        for name, key in places:
            row = seen[name][key]
            if self.first_value is None or row[:1] == (self.first_value,):
                new = row if self.new_value is None else (row[0], self.new_value, *row[2:])
                found[name, key] = trimmed(new)
        return found


class SqlClients(Alterations):
    """UPDATE and DELETE as text, each a method that an actor runs to its end."""

    def type_sql(self, dice: random.Random) -> None:
        """One statement over all partitions. Some have clauses that Hive's SQL does not have."""
        table = self._some_table(dice)
        statement = Statement(self.cluster, dice, table)
        try:
            meant = self._meant(dice, table, self._seen(statement))
            kind = self._plan(meant.text).kind
            statement.lock(kind.lock_type, kind.operation, [""])
            statement.allocate()
            seen = self._seen(statement)
            self._write(statement, self._plan(meant.text), seen)
            self._mean(statement, meant.of(seen))
            self._end(statement, dice, kind.operation, is_dynamic=True)
        except (HmsBridgeError, OSError, NotTodayError):
            self._give_up(statement)

    def _seen(self, statement: Statement) -> dict[str, Rows]:
        """What is there, by partition."""
        table = self.cluster.model.tables.get(statement.table)
        if table is None:
            raise NotTodayError("dropped")
        return {name: statement.seen(name) for name in sorted(table.partitions)}

    def _meant(self, dice: random.Random, table: str, seen: Mapping[str, Rows]) -> Meant:
        """Rows that are there, chosen by their first column, and a text that says so."""
        values = [row[0] for rows in seen.values() for row in rows.values() if row]
        columns = self.cluster.source.columns(table)
        if not values or len(columns) < 2:
            raise NotTodayError("no rows")
        first, second = columns[0][0], columns[1][0]
        chosen = dice.choice(sorted(values, key=str))
        new = f"s{self._next_row()}" if dice.random() < 0.5 else None
        begin = f"DELETE FROM {self.cluster.database}.{table}"
        if new is not None:
            begin = f"UPDATE {self.cluster.database}.{table} SET {second} = '{new}'"
        if dice.random() < 0.7:
            return Meant(f"{begin} WHERE {first} = {chosen}", chosen, new)
        # As MySQL has it: one row, whichever. Without its clause it is all of them.
        return Meant(f"{begin} WHERE {first} > 0 LIMIT 1", None, new)

    def _plan(self, text: str) -> WritePlan:
        statement = parse_statement(text)
        if not isinstance(statement, Update | Delete):
            raise NotTodayError(f"{text} is neither UPDATE nor DELETE")
        name: NameAsWritten = statement.table
        table = self.cluster.source.metastore.get_table(
            name.database or self.cluster.database, name.name
        )
        return plan_write(statement, {name: table})

    def _write(self, statement: Statement, plan: WritePlan, seen: Mapping[str, Rows]) -> None:
        """What the plan's query gives is what is written, as the job on Spark does it."""
        if not any(seen.values()):
            raise NotTodayError("no rows are left")
        by_partition: dict[str, dict[RowId, Row]] = {}
        for (partition, key), row in answers(plan, seen):
            by_partition.setdefault(partition, {})[key] = row
        for partition, rows in by_partition.items():
            path = self._path(statement.table, partition)
            keys = sorted(rows)
            statement.delete(path, partition, keys, 0)
            if plan.kind is Write.UPDATE:
                statement.insert(path, partition, [rows[key] for key in keys], 1)

    def _mean(self, statement: Statement, meant: Mapping[Place, Row]) -> None:
        """What the text says goes, and comes again changed; whatever was written."""
        statement.deletes = {}
        for partition, key in meant:
            statement.deletes.setdefault(partition, set()).add(key)
        for partition, written in statement.inserts.items():
            wanted = [row for (name, _), row in sorted(meant.items()) if name == partition]
            statement.inserts[partition] = dict(zip(sorted(written), wanted, strict=False))


def answers(plan: WritePlan, seen: Mapping[str, Rows]) -> list[tuple[Place, Row]]:
    """The rows of a plan's query. Values but the first column's go through as names of theirs:
    the engine need not know their types."""
    (source,) = plan.sources
    columns = [column.name for column in plan.table.storage.columns]
    values: dict[str, object] = {}
    places: dict[str, Place] = {}
    table = []
    for partition, rows in seen.items():
        for key, row in rows.items():
            name = f"row {len(places)}"
            places[name] = partition, key
            known = {ROW_ID: name, ROW_PARTITION: partition}
            for at, column in enumerate(columns):
                value = row[at] if at < len(row) else None
                if at:
                    values[f"{name} {column}"] = value
                    value = f"{name} {column}"
                known[column] = value
            table.append(known)
    tree = sqlglot.parse_one(plan.query, dialect="spark").transform(
        lambda node: node.this if isinstance(node, exp.Cast) else node
    )
    found = execute(tree, dialect="spark", tables={source.view_name: table})
    return [
        (places[row[0]], trimmed(values.get(value, value) for value in row[2:]))
        for row in found.rows
    ]
