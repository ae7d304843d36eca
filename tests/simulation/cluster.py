"""A source and its replica of the product's own parts, on one simulated disk under one clock."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import pytest

from changemanager.location import FsspecResolver
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
from hms_bridge.model.ids import LockId, TxnId
from hms_bridge.repl import file_pool
from tests.simulation import tenants
from tests.simulation.definitions import Columns, Definition
from tests.simulation.disk import Directory, File, SimulatedDisk, SimulatedVolume
from tests.simulation.model import Effect, Model, TableModel, Tables
from tests.simulation.plain_reader import Rows, View
from tests.simulation.scheduler import Scheduler
from tests.simulation.side import Side
from tests.support.inline_threads import InlineThreads
from tests.support.simulated_clock import SimulatedClock

START_MS = SimulatedClock().now_ms()
COLUMNS = (Column(name="id", type="int"), Column(name="v", type="string"))
BASE_COLUMNS = tuple((column.name, column.type) for column in COLUMNS)
STORAGE = Storage(
    columns=COLUMNS,
    input_format=ORC_INPUT_FORMAT,
    output_format=ORC_OUTPUT_FORMAT,
    serde=SerDe(library=ORC_SERDE),
)


_ELSEWHERE = 0.3
UNFINISHED = {
    "files still to be deleted or moved": "SELECT KIND, LOCATION FROM HMSB_FILE_TASK",
    "removals under way": "SELECT VICTIM, STATE FROM HMSB_ARCHIVE_INTENT WHERE STATE IN ('p', 'a')",
    "compactions of nobody": "SELECT CQ_ID, CQ_TABLE, CQ_STATE FROM COMPACTION_QUEUE"
    " WHERE CQ_STATE = 'w'",
    "purges under way": "SELECT NAME FROM HMSB_ARCHIVED_FILE WHERE STATE = 'p'",
    "open transactions": "SELECT TXN_ID FROM TXNS WHERE TXN_STATE = 'o' AND TXN_TYPE <> 1",
}
"""What may not be there in the end."""


@contextmanager
def determined(seed: int) -> Iterator[None]:
    """Names that the product makes up come from the seed; its thread pools run inline."""
    dice = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", dice.randbytes)
        patch.setattr(file_pool, "ThreadPoolExecutor", InlineThreads)
        yield


@dataclass
class OpenReader:
    """A snapshot that somebody reads by: what it must go on seeing, partition by partition."""

    txn_id: int
    table: str
    view: View
    rows: dict[str, Rows]
    places: dict[str, str]
    columns: Columns
    is_unsettled: bool = False


@dataclass
class ViolationError(Exception):
    """An invariant does not hold."""

    invariant: str
    text: str

    def __str__(self) -> str:
        return f"{self.invariant}: {self.text}"


@dataclass
class Loaded:
    """What the replica must be since the last load that said OK: one of these, table by table."""

    choices: list[Tables]
    event_id: int


@dataclass(frozen=True)
class Claim:
    """A transaction, or a lock without one, that a process keeps alive while it lives."""

    side: str
    txn_id: int
    lock_id: int


@dataclass(frozen=True)
class Image:
    """What a run begins with."""

    tree: Directory
    databases: tuple[bytes, bytes]
    history: list[tuple[int, Tables]]


class Cluster:
    """Everything that outlives a process, and the model of what it must contain."""

    def __init__(self) -> None:
        self.clock = SimulatedClock()
        self.scheduler = Scheduler()
        self.disk = SimulatedDisk(self.clock.now_ms, self.scheduler.point)
        self.disk.on_remove = self._removed
        self.volume = SimulatedVolume(self.disk)
        self.resolve = FsspecResolver(lambda _scheme, _authority: self.volume)
        self._forget()
        for path in ("/cmroot", "/elsewhere", "/repl", "/source", "/target"):
            self.disk.make_directories(path)
        self.source = self._side("source", "src")
        self.target = self._side("target", "dst")
        self.source.metastore.create_database(
            Database(name="src", parameters={"repl.source.for": "policy"})
        )
        table = self.table("t", is_partitioned=False)
        self.other_rows = tenants.make_other_database(self, table)
        self.create_table("t", is_partitioned=False)
        self.create_table("q", is_partitioned=True)
        self.disk.sync_all()
        self._image = self.image()

    def _forget(self) -> None:
        self.model = Model()
        self.effects: dict[str, list[Effect]] = {}
        self.owned: dict[str, set[Claim]] = {}
        self.on_moved: list[Callable[[str, str, str], None]] = []
        """Told of each partition that was renamed: table, old name, new one."""
        self.on_renamed: list[Callable[[str, str], None]] = []
        """Told of each table that was renamed: old name, new one."""
        self.readers: dict[int, OpenReader] = {}
        self.loaded: Loaded | None = None
        self.bootstrap_end: int | None = None
        self.foreign: list[tenants.Foreign] = []
        self.failed_cleanings: list[str] = []
        self.nothing_to_discard: list[str] = []
        self.dropped: dict[str, tuple[TableModel, View]] = {}
        """Tables as they were when they were dropped, and which write ids counted."""
        self.left_rows: dict[str, dict[str, Rows]] = {}
        """Of adopted tables: rows of partitions that nobody has registered yet. Whoever adds such a
        partition, also a writer, shows them."""
        self.is_something_gone = False
        self.archived: set[bytes] = set()
        """Contents of files that left their table, and are in the archive until a purge."""
        self.violation: ViolationError | None = None
        self._picked: set[str] = set()
        self._tokens = 0
        self._last_event = -1
        self._seen_table_ids: set[int] = set()
        self._seen: tuple[int, ...] = ()

    def image(self) -> Image:
        """All that `restart` brings back."""
        return Image(
            tree=copy.deepcopy(self.disk.root),
            databases=(self.source.raw.serialize(), self.target.raw.serialize()),
            history=copy.deepcopy(self.model.history),
        )

    def restart(self) -> None:
        """As it was when it was made. (Making one anew takes longer than most schedules.)"""
        image = self._image
        self._forget()
        self.clock.advance_ms(START_MS - self.clock.now_ms())
        self.scheduler.restart()
        self.disk.root = copy.deepcopy(image.tree)
        for side, content in zip((self.source, self.target), image.databases, strict=True):
            side.restart(content)
        self.model.history = copy.deepcopy(image.history)
        self.model.tables = copy.deepcopy(image.history[-1][1])
        self.foreign = tenants.files(self)

    def _side(self, name: str, database: str) -> Side:
        return Side(
            name,
            database,
            disk=self.disk,
            resolve=self.resolve,
            clock=self.clock,
            scheduler=self.scheduler,
            on_commit=self._committed,
            token=self.token,
        )

    def pick(self, dice: random.Random, names: Sequence[str]) -> str:
        """Mostly what was picked last: things go wrong where many meet."""
        again = [name for name in names if name in self._picked]
        if not again or dice.random() < _ELSEWHERE:
            self._picked.difference_update(names)
            again = [dice.choice(names)]
        picked = dice.choice(again)
        self._picked.add(picked)
        return picked

    def token(self) -> str:
        self._tokens += 1
        return f"token{self._tokens:05d}"

    # -- objects

    def table(self, name: str, *, is_partitioned: bool) -> Table:
        return Table(
            name=name,
            database_name="src",
            storage=STORAGE,
            partition_columns=(Column(name="p", type="string"),) if is_partitioned else (),
            parameters={"transactional": "true"},
        )

    def partition(self, table: str, name: str) -> Partition:
        return Partition(
            values=(name.partition("=")[2],),
            database_name="src",
            table_name=table,
            storage=STORAGE,
        )

    def create_table(self, name: str, *, is_partitioned: bool) -> None:
        """As an actor means it: the model has the table once the database has it."""
        model = TableModel(is_partitioned, {} if is_partitioned else {"": {}}, columns=BASE_COLUMNS)

        def apply(tables: Tables) -> None:
            tables[name] = model

        def has_happened() -> bool:
            """A rename to this name keeps the id of its table."""
            return self.source.table_ids().get(name, 0) not in {0, *self._seen_table_ids}

        with self.meaning(Effect(has_happened, apply)):
            self.source.metastore.create_table(self.table(name, is_partitioned=is_partitioned))

    # -- what actors mean

    @contextmanager
    def meaning(self, effect: Effect) -> Iterator[None]:
        """What follows is meant to change the tables so; only the database knows if it does."""
        actor = self.scheduler.current
        mine = self.effects.setdefault(actor.name if actor else "", [])
        mine.append(effect)
        try:
            yield
        finally:
            if effect in mine:
                mine.remove(effect)

    def _committed(self, side: Side, claims: set[tuple[int, int]]) -> None:
        actor = self.scheduler.current
        if actor is not None and claims:
            mine = self.owned.setdefault(actor.name, set())
            mine |= {Claim(side.name, txn_id, lock_id) for txn_id, lock_id in claims}
        if side.name != "source":
            return
        changed = False
        for effect in list(self.effects.get(actor.name if actor else "", ())):
            if effect.has_happened():
                effect.apply(self.model.tables)
                self.effects[actor.name if actor else ""].remove(effect)
                changed = True
        event_id = side.event_id()
        if changed or event_id != self._last_event:
            self._last_event = event_id
            self._seen_table_ids.update(side.table_ids().values())
            for name in side.table_ids().keys() & self.model.tables.keys():
                self.model.tables[name].definition = side.definition(name)
            self.model.record(event_id)

    # -- invariants

    def _removed(self, path: str, file: File) -> None:
        """I5 is looked at again after this step.

        I4: what leaves a table of the source is in the archive first, byte for byte."""
        levels = path.split("/")
        is_of_table = levels[1] in {"source", "elsewhere"}
        self.is_something_gone |= is_of_table or levels[1] == "cmroot"
        if levels[1] == "cmroot":
            self.archived.discard(file.data)
        if not is_of_table or len(levels) < 5 or not levels[-1].startswith("bucket_"):
            return
        if any(level.startswith(("_", ".")) for level in levels[:-1]) or not file.data:
            return
        archive = self.disk.directory("/cmroot").names.values()
        if any(isinstance(kept, File) and kept.data == file.data for kept in archive):
            self.archived.add(file.data)
            return
        self.found(ViolationError("I4", f"{path} is deleted and not in the archive"))

    def check_archive(self) -> None:
        """I4 after a power cut: what was deleted because it is in the archive is there still."""
        kept = self.disk.directory("/cmroot").names.values()
        lost = self.archived - {file.data for file in kept if isinstance(file, File)}
        if lost:
            raise ViolationError("I4", f"{len(lost)} files were deleted, and their copies are gone")

    def found(self, violation: ViolationError) -> None:
        """Kept until the step is over: no code of the product may swallow it."""
        if self.violation is None:
            self.violation = violation

    def loaded_to(self, event_id: int) -> None:
        """A load said OK. A bootstrap sees each table at some moment while it was made."""
        if int(self.target.parameter("repl.last.id") or 0) > event_id:
            return  # another load has gone on from there, while this one stood still at its end
        newest = self.source.event_id()
        end = newest if self.bootstrap_end is None else self.bootstrap_end
        self.loaded = Loaded(self.model.between(event_id, max(event_id, end)), event_id)

    def check(self) -> None:
        """After every step. Raises ViolationError."""
        if self.violation is not None:
            raise self.violation
        seen = (self.disk.version, self.source.version, self.target.version, len(self.readers))
        if seen == self._seen:
            return
        self._seen = seen
        self._check_foreign()
        self._check_definitions()
        self._check_rows()
        self._check_readers()
        self._check_replica()
        if self.is_something_gone:
            self.is_something_gone = False
            self._check_dumps()

    def _check_definitions(self) -> None:
        there = self.source.table_ids()
        for name, table in self.model.tables.items():
            if name in there and table.columns != self.source.columns(name):
                found = self.source.columns(name)
                raise ViolationError("I11", f"{name} has columns {found}, not {table.columns}")
        if set(there) != set(self.model.tables):
            raise ViolationError("I8", f"tables {sorted(there)}, not {sorted(self.model.tables)}")

    def _check_rows(self) -> None:
        for name, table in self.model.tables.items():
            view = self.source.view(name)
            places = self.source.places(name)
            if set(places) != set(table.partitions):
                raise ViolationError(
                    "I1", f"{name} has partitions {sorted(places)}, not {sorted(table.partitions)}"
                )
            for partition, path in places.items():
                if self.source.is_moving(path):
                    continue
                _compare(
                    "I1",
                    f"a new reader of {name} {partition}",
                    self._rows(self.source, path, view),
                    table.partitions[partition],
                )

    def _rows(self, side: Side, path: str, view: View) -> Any:
        try:
            return side.rows(path, view)
        except Exception as error:
            raise ViolationError("I1", f"{path}: {error}") from error

    def _check_readers(self) -> None:
        for reader in list(self.readers.values()):
            if not self.is_open(reader.txn_id):
                del self.readers[reader.txn_id]
                continue
            for partition, path in reader.places.items():
                _compare(
                    "I2",
                    f"reader {reader.txn_id} of {reader.table} {partition}",
                    self._rows(self.source, path, reader.view),
                    reader.rows[partition],
                )

    def is_open(self, txn_id: int) -> bool:
        """Of a reader's transaction, or lock without one (:meth:`reader_of`)."""
        if txn_id < 0:
            return (0, -txn_id) in self.source.ledger.locks
        return txn_id in self.source.ledger.open

    def reader_of(self, lock_id: LockId) -> TxnId:
        """A number for a reader that has no transaction."""
        return TxnId(-lock_id)

    def _check_foreign(self) -> None:
        foreign = tenants.missing(self)
        if foreign is not None:
            raise ViolationError("I12", f"{foreign.path} is of somebody else, and is not there")

    def _check_dumps(self) -> None:
        """I5: a file that an unloaded dump names is at its source path or in the archive."""
        for dump in self._unloaded_dumps():
            for path, listed in self.disk.files(dump):
                if not path.endswith("/_files"):
                    continue
                for line in listed.data.decode().splitlines():
                    place, checksum, *_ = [*line.split("#"), "", ""]
                    source = place.removeprefix("file:")
                    archived = f"/cmroot/{source.rpartition('/')[2]}_{checksum}"
                    if self.disk.find(source) is None and self.disk.find(archived) is None:
                        raise ViolationError("I5", f"{dump} names {line}, which is gone")

    def _unloaded_dumps(self) -> Iterator[str]:
        for policy in list(self.disk.directory("/repl").names):
            for name in list(self.disk.directory(f"/repl/{policy}").names):
                hive = f"/repl/{policy}/{name}/hive"
                if self.disk.find(f"{hive}/_finished_dump") is not None and (
                    self.disk.find(f"{hive}/_finished_load") is None
                ):
                    yield hive

    def check_ended(self) -> None:
        """I13: once all have had their time, nothing is left half done."""
        for side in (self.source, self.target):
            for what, query in UNFINISHED.items():
                left = side.raw.execute(query).fetchall()
                if left:
                    raise ViolationError("I13", f"{side.name}: {what}: {left}")

    def _check_replica(self) -> None:
        """I11: equal to the source at the event where the last load that said OK left it."""
        if self.loaded is None:
            return
        found = replica_rows(self.target)
        choices = self.loaded.choices
        names = set().union(*choices)
        always = set(choices[0]).intersection(*choices[1:])
        if not always <= set(found) <= names:
            raise ViolationError("I11", f"the replica has {sorted(found)}, not {sorted(names)}")
        for name, partitions in found.items():
            wanted = [one[name] for one in choices if name in one]
            _check_definition(
                f"{name} at event {self.loaded.event_id}",
                self.target.definition(name),
                [one.definition for one in wanted if one.definition],
            )
            if not _is_one_of(partitions, [one.partitions for one in wanted]):
                raise ViolationError(
                    "I11",
                    f"{name} at event {self.loaded.event_id} is {partitions}, "
                    f"not {wanted[-1].partitions}",
                )

    def is_replica_equal(self) -> bool:
        """Whether the last load brought all that the source has."""
        return self.loaded is not None and self.loaded.choices[-1:] == [self.model.tables]

    def taken_away(self, table: str, partitions: list[str]) -> None:
        """A statement without a lock: readers of the table are promised nothing any more. Another
        such statement may have been faster."""
        if table not in self.model.tables:
            return
        tenants.forget(self, table, partitions)
        for reader in self.readers.values():
            if reader.table == table:
                reader.is_unsettled = True
                for partition in partitions:
                    reader.places.pop(partition, None)


def replica_rows(side: Side) -> dict[str, dict[str, Any]]:
    """All rows of a side, by table and partition."""
    found: dict[str, dict[str, Any]] = {}
    for name in side.table_ids():
        view = side.view(name)
        try:
            found[name] = {part: side.rows(path, view) for part, path in side.places(name).items()}
        except Exception as error:
            raise ViolationError("I11", f"{side.name} {name}: {error}") from error
    return found


def _check_definition(what: str, found: Definition, wanted: Sequence[Definition]) -> None:
    """A bootstrap reads what the catalog says and what was written one after the other."""
    for field in fields(Definition):
        choices = [getattr(one, field.name) for one in wanted]
        there = getattr(found, field.name)
        if there not in choices:
            raise ViolationError("I11", f"{what}: {field.name} is {there}, not {choices[-1]}")


def _is_one_of(found: dict[str, Rows], wanted: Sequence[dict[str, Rows]]) -> bool:
    """Whether a table is as it was at one moment; or its rows are those of one moment, but its
    partitions those of a later one, as a bootstrap that reads its snapshot first may find them."""
    names = set().union(*wanted)
    always = names.intersection(*wanted)
    return found in wanted or (
        always <= set(found) <= names
        and any(all(rows == one.get(name, {}) for name, rows in found.items()) for one in wanted)
    )


def _compare(invariant: str, what: str, found: Any, wanted: Any) -> None:
    if found == wanted:
        return
    lost = {key: row for key, row in wanted.items() if found.get(key) != row}
    extra = {key: row for key, row in found.items() if wanted.get(key) != row}
    raise ViolationError(invariant, f"{what} misses {lost} and has {extra} besides")
