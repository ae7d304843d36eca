"""A source and its replica of the product's own parts, on one simulated disk under one clock."""

from __future__ import annotations

import copy
import os
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

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
from hms_bridge.repl.format.layout import database_of
from hms_bridge.session.heartbeat import Heartbeat
from tests.simulation import checks, tenants
from tests.simulation.ages import Ages, HostClock, right_clock
from tests.simulation.disk import Directory, File, SimulatedDisk, SimulatedVolume
from tests.simulation.model import Effect, Model, TableModel, Tables
from tests.simulation.plain_reader import Rows, View
from tests.simulation.roles import Roles, dump_directories
from tests.simulation.scheduler import Scheduler
from tests.simulation.scopes import ALL_TABLES, Patterns, Wishes
from tests.simulation.side import Side
from tests.simulation.story import Loaded, OpenReader, Story, ViolationError
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
_OF_MASTERS = {
    "replays that nobody ends": "SELECT TXN_ID FROM TXNS WHERE TXN_STATE = 'o' AND TXN_TYPE = 1"
}
_ARCHIVES = ("cmroot", "cmroot2")


@contextmanager
def determined(seed: int) -> Iterator[None]:
    """Names that the product makes up come from the seed; its thread pools run inline. Who lives is
    told by the run (`Claim`): threads that beat after some seconds of real time would keep the
    stalled alive, too, where the machine is slow."""
    dice = random.Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", dice.randbytes)
        patch.setattr(file_pool, "ThreadPoolExecutor", InlineThreads)
        patch.setattr(Heartbeat, "_beat", lambda _: None)
        yield


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
        self.host_clock = HostClock(self.clock, self.scheduler)
        self.disk = SimulatedDisk(self.clock.now_ms, self.scheduler.point)
        self.disk.on_remove = self._removed
        self.volume = SimulatedVolume(self.disk)
        self.resolve = FsspecResolver(lambda _scheme, _authority: self.volume)
        for path in ("/cmroot", "/cmroot2", "/elsewhere", "/repl", "/source", "/target"):
            self.disk.make_directories(path)
        self.source_roots = ("/cmroot", "/cmroot2", "/elsewhere", "/source", "/target")
        self.sides: tuple[Side, ...] = ()
        self.first = self._side("source", "src", "file:/cmroot")
        self.second = self._side("target", "dst", "file:/cmroot2")
        self.sides = (self.first, self.second)
        self._forget()
        self.first.metastore.create_database(
            Database(name="src", parameters={"repl.source.for": "policy"})
        )
        table = self.table("t", is_partitioned=False)
        self.other_rows = tenants.make_other_database(self, table)
        self.create_table("t", is_partitioned=False)
        self.create_table("q", is_partitioned=True)
        self.disk.sync_all()
        self._image = self.image()

    def _forget(self) -> None:
        for side in self.sides:
            side.story = Story(is_master=side is self.first)
        self.roles = Roles(self)
        self.wishes = Wishes()
        self.effects: dict[str, list[Effect]] = {}
        self.owned: dict[str, set[Claim]] = {}
        self.foreign: list[tenants.Foreign] = []
        self.failed_cleanings: list[str] = []
        self.nothing_to_discard: list[str] = []
        self.is_something_gone = False
        self.archived: set[bytes] = set()
        """Contents of files that left their table, and are in the archive until a purge."""
        self.ages = Ages(self.first.settings.archive.retain_ms)
        self.violation: ViolationError | None = None
        self._picked: set[str] = set()
        self._tokens = 0
        self._seen: tuple[int, ...] = ()

    # -- who is who, as the actor at work knows it

    @property
    def source(self) -> Side:
        """The side that took writes when the actor at work began, or takes them now."""
        actor = self.scheduler.current
        return self.roles.home_of(actor.name if actor else "")

    @property
    def target(self) -> Side:
        """The other one."""
        return self.other(self.source)

    def other(self, side: Side) -> Side:
        return self.second if side is self.first else self.first

    def side(self, name: str) -> Side:
        return next(side for side in self.sides if side.name == name)

    def work_at(self, side: Side) -> None:
        """From here on the actor at work takes this side for the source."""
        actor = self.scheduler.current
        if actor is not None:
            self.roles.homes[actor.name] = side

    @property
    def database(self) -> str:
        return self.source.database_name

    @property
    def model(self) -> Model:
        return self.source.story.model

    @property
    def readers(self) -> dict[int, OpenReader]:
        return self.source.story.readers

    @property
    def loaded(self) -> Loaded | None:
        return self.target.story.loaded

    @loaded.setter
    def loaded(self, loaded: Loaded | None) -> None:
        self.target.story.loaded = loaded

    @property
    def on_moved(self) -> list[Callable[[str, str, str], None]]:
        return self.source.story.on_moved

    @property
    def on_renamed(self) -> list[Callable[[str, str], None]]:
        return self.source.story.on_renamed

    @property
    def dropped(self) -> dict[str, tuple[TableModel, View]]:
        return self.source.story.dropped

    @property
    def left_rows(self) -> dict[str, dict[str, Rows]]:
        return self.source.story.left_rows

    def image(self) -> Image:
        """All that `restart` brings back."""
        return Image(
            tree=copy.deepcopy(self.disk.root),
            databases=(self.first.raw.serialize(), self.second.raw.serialize()),
            history=copy.deepcopy(self.model.history),
        )

    def restart(self) -> None:
        """As it was when it was made. (Making one anew takes longer than most schedules.)"""
        image = self._image
        self.clock.on_sleep = lambda: None
        services = [one for side in self.sides for one in side.metastores]
        right_clock(self.clock, START_MS, services, is_set=self.ages.steps > 0)
        self._forget()
        self.scheduler.restart()
        self.disk.root = copy.deepcopy(image.tree)
        for side, content in zip(self.sides, image.databases, strict=True):
            side.restart(content)
        self.model.history = copy.deepcopy(image.history)
        self.model.tables = copy.deepcopy(image.history[-1][1])
        self.foreign = tenants.files(self)

    def _side(self, name: str, database: str, cm_root: str) -> Side:
        return Side(
            name,
            database,
            cm_root=cm_root,
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
            database_name=self.database,
            storage=STORAGE,
            partition_columns=(Column(name="p", type="string"),) if is_partitioned else (),
            parameters={"transactional": "true"},
        )

    def partition(self, table: str, name: str, location: str | None = None) -> Partition:
        return Partition(
            values=(name.partition("=")[2],),
            database_name=self.database,
            table_name=table,
            storage=replace(STORAGE, location=location and f"file:{location}"),
        )

    def create_table(self, name: str, *, is_partitioned: bool) -> None:
        """As an actor means it: the model has the table once the database has it."""
        model = TableModel(is_partitioned, {} if is_partitioned else {"": {}}, columns=BASE_COLUMNS)

        def apply(tables: Tables) -> None:
            tables[name] = model

        def has_happened() -> bool:
            """A rename to this name keeps the id of its table."""
            return self.source.table_ids().get(name, 0) not in {
                0,
                *self.source.story.seen_table_ids,
            }

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
        if not self.sides:
            return  # they are being made
        actor = self.scheduler.current
        if actor is not None and claims:
            mine = self.owned.setdefault(actor.name, set())
            mine |= {Claim(side.name, txn_id, lock_id) for txn_id, lock_id in claims}
        changed = self._apply_effects(side, actor.name if actor else "")
        self.roles.note(side)
        story, event_id = side.story, side.event_id()
        if not changed and event_id == story.last_event:
            return
        story.last_event = event_id
        story.seen_table_ids.update(side.table_ids().values())
        if story.is_master:
            tables = story.model.tables
            for name in side.table_ids().keys() & tables.keys():
                tables[name].definition = side.definition(name)
            story.model.record(event_id)

    def _apply_effects(self, side: Side, actor: str) -> bool:
        """What the actor means for the side that it takes for the source."""
        if side is not self.source:
            return False
        changed = False
        for effect in list(self.effects.get(actor, ())):
            if effect.has_happened():
                effect.apply(side.story.model.tables)
                self.effects[actor].remove(effect)
                changed = True
                self.roles.changed(side, effect)
        return changed

    # -- invariants

    def _has_another_name(self, path: str, file: File) -> bool:
        above, _, name = path.rpartition("/")
        names = self.disk.directory(above).names
        return any(node is file and other != name for other, node in names.items())

    def _removed(self, path: str, file: File) -> None:
        """I5 is looked at again after this step.

        I4: what leaves a table of the source is in the archive first, byte for byte."""
        levels = path.split("/")
        is_of_archive = levels[1] in _ARCHIVES
        is_of_table = self.roles.is_of_source(path)
        self.is_something_gone |= is_of_table or is_of_archive
        if is_of_archive:
            self.archived.discard(file.data)
            if not self._has_another_name(path, file):
                self.found(self.ages.too_young(path, file, self.scheduler.current, self.clock))
        if not is_of_table or len(levels) < 5 or not levels[-1].startswith("bucket_"):
            return
        if any(level.startswith(("_", ".")) for level in levels[:-1]) or not file.data:
            return
        if file.data in self._kept():
            self.archived.add(file.data)
            return
        self.found(ViolationError("I4", f"{path} is deleted and not in the archive"))

    def _kept(self) -> set[bytes]:
        """What the archives have."""
        return {
            file.data
            for archive in _ARCHIVES
            for file in self.disk.directory(f"/{archive}").names.values()
            if isinstance(file, File)
        }

    def check_archive(self) -> None:
        """I4 after a power cut: what was deleted because it is in the archive is there still."""
        lost = self.archived - self._kept()
        if lost:
            raise ViolationError("I4", f"{len(lost)} files were deleted, and their copies are gone")

    def found(self, violation: ViolationError | None) -> None:
        """Kept until the step is over: no code of the product may swallow it."""
        if self.violation is None:
            self.violation = violation

    def loaded_to(self, event_id: int, patterns: Patterns = ALL_TABLES) -> None:
        """A load said OK. A bootstrap sees each table at some moment while it was made; a dump with
        a limit may end amid the events of one transaction."""
        source, target = self.source, self.target
        if int(target.parameter("repl.last.id") or 0) > event_id or self.roles.is_leaving(target):
            return  # another has gone on from there, while this one stood still at its end
        newest, ended = source.event_id(), source.story.bootstrap_end
        end = newest if ended is None else ended
        model = source.story.model
        if self.wishes.is_limited:
            end = max(end, model.whole_after(event_id))
        choices = model.between(event_id, max(event_id, end))
        target.story.loaded = Loaded(choices, event_id, patterns)

    def check(self) -> None:
        """After every step. Raises ViolationError."""
        if self.violation is not None:
            raise self.violation
        readers = sum(len(side.story.readers) for side in self.sides)
        seen = (self.disk.version, self.first.version, self.second.version, readers)
        if seen == self._seen:
            return
        self._seen = seen
        for archive in _ARCHIVES:
            self.ages.note(self.disk.directory(f"/{archive}"), self.clock.steady_ms())
        self._check_foreign()
        for side in self.sides:
            if side.story.is_master:
                checks.check_master(side)
            checks.check_readers(side)
            if not side.story.is_master:
                checks.check_replica(side)
        if self.is_something_gone:
            self.is_something_gone = False
            self._check_dumps()

    def has_lease(self, side: Side, name: str) -> bool:
        """Whether the actor at work has a lease that nobody took away meanwhile."""
        actor = self.scheduler.current
        mine = self.owned.get(actor.name if actor else "", set())
        query = "SELECT HL_LOCK_EXT_ID FROM HIVE_LOCKS WHERE HL_TABLE = ?"
        locks = [lock for (lock,) in side.raw.execute(query, (name,))]
        return any(Claim(side.name, 0, lock) in mine for lock in locks)

    def is_open(self, txn_id: int) -> bool:
        """Of a reader's transaction, or lock without one (:meth:`reader_of`)."""
        return self.source.is_held(txn_id)

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
                    name = f"{source.rpartition('/')[2]}_{checksum}"
                    places = (source, *(f"/{archive}/{name}" for archive in _ARCHIVES))
                    if all(self.disk.find(one) is None for one in places):
                        raise ViolationError("I5", f"{dump} names {line}, which is gone")

    def _unloaded_dumps(self) -> Iterator[str]:
        for dump in dump_directories(self.disk):
            if self.roles.is_ended(database_of(dump.split("/")[2]) or ""):
                continue  # nobody archives what it names
            is_finished = self.disk.find(f"{dump}/_finished_dump") is not None
            is_loaded = self.disk.find(f"{dump}/_finished_load") is not None
            if is_finished and not is_loaded and dump not in self.roles.abandoned:
                yield dump

    def dumps(self) -> list[str]:
        """The finished dumps of the source, as the product calls them."""
        return [
            f"file:{dump.removesuffix('/hive')}"
            for dump in dump_directories(self.disk)
            if database_of(dump.split("/")[2]) == self.database
            and self.disk.find(f"{dump}/_finished_dump") is not None
        ]

    def is_loaded(self, dump: str) -> bool:
        """Whether a dump says that it was."""
        mark = f"{dump.removeprefix('file:')}/hive/_finished_load"
        return self.disk.find(mark) is not None

    def check_ended(self) -> None:
        """I13: once all have had their time, nothing is left half done."""
        for side in self.sides:
            queries = UNFINISHED | (_OF_MASTERS if side.story.is_master else {})
            for what, query in queries.items():
                left = side.raw.execute(query).fetchall()
                if left:
                    raise ViolationError("I13", f"{side.name}: {what}: {left}")

    def is_replica_equal(self) -> bool:
        """Whether the last load brought all that the source has."""
        loaded, wanted = self.loaded, self.wishes.patterns or ALL_TABLES
        return (
            loaded is not None
            and loaded.of_replica[-1:] == [loaded.patterns.of(self.model.tables)]
            and loaded.patterns.of(self.model.tables) == wanted.of(self.model.tables)
        )

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
