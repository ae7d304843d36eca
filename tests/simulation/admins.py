"""Admins: who register tables that they find on the disk, and who begin a replica anew."""

from __future__ import annotations

import copy
import random
import re
from contextlib import nullcontext
from dataclasses import dataclass

from hms_bridge.adoption.adopt import adopt
from hms_bridge.adoption.look import look
from hms_bridge.adoption.plan import AdoptionRequest
from hms_bridge.errors import HmsBridgeError, ReplError
from hms_bridge.model.catalog import Column
from hms_bridge.model.ids import WriteId
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.repl.dump.discard import DiscardRequest, ReplDiscard
from tests.simulation.clients import ELSEWHERE
from tests.simulation.daemons import LEASE, Daemons
from tests.simulation.definitions import Columns
from tests.simulation.disk import Directory
from tests.simulation.model import Effect, TableModel, Tables
from tests.simulation.plain_reader import View, read_rows
from tests.simulation.side import REPL_ROOT
from tests.simulation.statements import NotTodayError
from tests.simulation.story import ViolationError


@dataclass(frozen=True)
class Left:
    """A table's directory without a table, and what its admin knows of it."""

    name: str
    location: str
    columns: Columns
    view: View


class Admins(Daemons):
    """What admins do, each a method that an actor runs to its end."""

    # -- adoption

    def adopt_copy(self, dice: random.Random) -> None:
        """A copy of a table, as somebody saved it, becomes a table of another name."""
        tables = self.cluster.model.tables
        free = [name for name in ("a", "b") if name not in tables]
        if not tables or not free:
            raise NotTodayError("nothing to copy, or no name")
        table, name = dice.choice(sorted(tables)), free[0]
        above = dice.choice((ELSEWHERE, self.cluster.source.directory))
        location = f"{above}/{name}"
        if self.cluster.disk.find(location) is not None:
            raise NotTodayError("taken")
        with self.cluster.scheduler.atomic():
            known = copy.deepcopy(tables[table])
            left = Left(name, location, known.columns, self.cluster.source.view(table))
            self._copy(table, location, known)
        self._adopt(left, known)

    def _copy(self, table: str, location: str, known: TableModel) -> None:
        disk = self.cluster.disk
        disk.make_directories(location)
        for partition, path in self.cluster.source.places(table).items():
            node = disk.find(path)
            if not isinstance(node, Directory):
                if not partition:
                    raise NotTodayError("nothing to copy")
                known.partitions.pop(partition, None)
                continue
            target = disk.directory(location)
            copied = copy.deepcopy(node)
            if partition:
                target.names[partition] = copied
            else:
                target.names.update(copied.names)
        disk.settle(location)
        disk.version += 1

    def adopt_dropped(self, dice: random.Random) -> None:
        """A table was dropped by mistake, and its files are there still."""
        found = sorted(name for name in self.cluster.dropped if self._is_left(name))
        if not found:
            raise NotTodayError("no table is dropped")
        table = dice.choice(found)
        known, view = self.cluster.dropped[table]
        location = f"{self.cluster.source.directory}/{table}"
        if not self.cluster.source.has_file_task(location):
            raise NotTodayError("its drop is done: what lies there is of others")
        self._adopt(Left(table, location, known.columns, view), copy.deepcopy(known))
        places = self.cluster.source.places(table)
        for partition, rows in known.partitions.items():
            if rows and partition not in places:
                raise ViolationError("I1", f"{table} was adopted without {partition}: {rows}")

    def _is_left(self, name: str) -> bool:
        if name in self.cluster.model.tables:
            return False
        return isinstance(
            self.cluster.disk.find(f"{self.cluster.source.directory}/{name}"), Directory
        )

    def _adopt(self, left: Left, known: TableModel) -> None:
        """`known`: what must be there if it can be adopted."""
        cluster = self.cluster
        ids = ValidWriteIdList(
            table=f"{cluster.database}.{left.name}",
            high_watermark=WriteId(left.view.highest),
            aborted_ids=tuple(WriteId(one) for one in left.view.open | left.view.aborted),
        )
        request = AdoptionRequest(
            database_name=cluster.database,
            table_name=left.name,
            location=f"file:{left.location}",
            columns=tuple(Column(name=name, type=kind) for name, kind in left.columns),
            partition_types={"p": "string"} if known.is_partitioned else {},
            valid_write_ids=ids,
            owner="admin",
        )
        plan = look(request, cluster.resolve)
        if bool(plan.table.partition_columns) != known.is_partitioned:
            raise NotTodayError("no partition is left, so nobody knows that there were any")

        def apply(tables: Tables) -> None:
            if left.name not in tables:
                wanted = copy.deepcopy(known)
                wanted.partitions = {} if known.is_partitioned else known.partitions
                tables[left.name] = wanted
                cluster.dropped.pop(left.name, None)
                if known.is_partitioned:
                    cluster.left_rows[left.name] = copy.deepcopy(known.partitions)
            places = cluster.source.places(left.name)
            table = tables[left.name]
            for name in places.keys() - table.partitions.keys():
                node = cluster.disk.find(places[name])
                rows = read_rows(node if isinstance(node, Directory) else None, left.view)
                table.partitions[name] = known.partitions.get(name, rows)
                cluster.left_rows.get(left.name, {}).pop(name, None)

        def is_there() -> bool:
            return left.name in cluster.source.table_ids()

        def is_whole() -> bool:
            wanted = len(plan.partitions) if known.is_partitioned else 1
            return is_there() and len(cluster.source.places(left.name)) >= wanted

        with cluster.meaning(Effect(is_there, apply)), cluster.meaning(Effect(is_whole, apply)):
            adopt(plan, cluster.source.metastore, user="admin", host="h")

    # -- replication

    def mend_replica(self, dice: random.Random) -> None:
        """Replicates; where that fails, it does what the error says: tables come whole, one after
        the other, or the replica begins anew."""
        try:
            self.replicate(dice)
        except ReplError as error:
            told: ReplError | None = error
            names: tuple[str, ...] = ()
            while told is not None and len(names) < len(more := _named_tables(told, names)):
                names, told = more, self._bring_anew(dice, more)
            if told is not None and "--bootstrap" not in str(told):
                raise told from None
            if told is not None:
                self.begin_anew(dice)

    def _bring_anew(self, dice: random.Random, names: tuple[str, ...]) -> ReplError | None:
        """The two commands of hms_bridge.repl.remedies; what they refuse."""
        try:
            self.dump(dice, tables_anew=names)
            self.load(dice)
        except ReplError as error:
            return error
        return None

    def begin_anew(self, dice: random.Random) -> None:
        """The four commands of hms_bridge.repl.remedies."""
        cluster = self.cluster
        store = cluster.source.metastore
        discard = ReplDiscard(
            store, cluster.resolve, cluster.host_clock, cluster.token, store.manifest
        )
        try:
            discard.run(
                discard.plan(
                    DiscardRequest(root=REPL_ROOT, database_name=cluster.database, lease=LEASE)
                )
            )
        except HmsBridgeError as error:
            cluster.nothing_to_discard.append(str(error))
        if cluster.target.has_database():
            self._drop_replica()
        self.dump(dice, is_bootstrap_forced=True)
        self.load(dice)

    def _drop_replica(self) -> None:
        """Nobody who knows what is going on drops what takes writes, or is about to."""
        cluster, target = self.cluster, self.cluster.target
        with cluster.scheduler.atomic() if cluster.roles.has_changed else nullcontext():
            if cluster.roles.is_leaving(target):
                raise NotTodayError("it has taken its source's place, or is about to")
            cluster.loaded = None
            target.metastore.drop_database(target.database_name, is_cascade=True)


def _named_tables(error: ReplError, known: tuple[str, ...]) -> tuple[str, ...]:
    found = re.findall(r"--table-anew (\w+)", str(error))
    return tuple(dict.fromkeys((*known, *found)))
