"""What is there before a verb, what is left of it, and whether somebody ends what is left."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from changemanager.fsck import Fsck
from changemanager.location import FsspecResolver, Resolver
from hms_bridge.config.settings import CompactorSettings
from hms_bridge.model.event import EventType
from hms_bridge.model.txn import TxnType
from hms_bridge.service.task_leases import CLAIM_MS
from tests.simulation.disk import Directory, File
from tests.simulation.plain_reader import View, read_rows
from tests.support.databases import sqlite_connection
from tests.support.engines import MEMORY
from tests.support.failures import (
    DatabaseFailures,
    FailingVolume,
    StorageFailures,
    failing_database,
)
from tests.support.faults import faulty
from tests.support.simulated_clock import DAY_MS
from tests.support.world import World

PASSES_MS = (CLAIM_MS + 1, 2 * DAY_MS)
"""Time before each pass of housekeeping and cleaner; after them nothing is left to be done."""
SETTINGS = CompactorSettings(aborted_txn_threshold=0, abort_retention_ms=0)
"""What was aborted goes in the next pass."""
_LEFT_TABLES = (
    "HMSB_FILE_TASK",
    "HIVE_LOCKS",
    "HMSB_LEASE",
    "TXN_COMPONENTS",
    "MATERIALIZATION_REBUILD_LOCKS",
)
_OPEN_ROWS = {
    "TXNS": f"TXN_STATE = 'o' AND TXN_TYPE <> {TxnType.REPL_CREATED.value}",
    "COMPACTION_QUEUE": "CQ_STATE <> 'i'",
    "HMSB_ARCHIVE_INTENT": "STATE IN ('p', 'a', 'd')",
    "HMSB_ARCHIVED_FILE": "STATE NOT IN ('a', 'x')",
}
_TXN = re.compile(r"_v\d+")
_VOLATILE = {
    "transient_lastDdlTime",
    "repl.last.id",
    "repl.target.last.id",
    "hive.repl.ckpt.key",
    "hive.repl.first.inc.pending",
    "hms.bridge.repl.first.inc.tables",
    "hms.bridge.repl.handover",
}
"""What names times, events and dumps."""

_COUNTED = {"numFiles", "totalSize", "COLUMN_STATS_ACCURATE", "numFilesErasureCoded"}
"""What a verb leaves out where it cannot look at files."""

State = list[dict[str, object]]
"""What users see, by world and name."""
Saved = tuple[dict[Path, tuple[bytes | None, int]], list[tuple[bytes, int]]]
"""Files with their times; databases with the time of their worlds."""


class Scene:
    """Worlds in one folder whose disk and databases fail on demand, and can be put back."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.storage, self.database = StorageFailures(), DatabaseFailures()
        self.worlds: list[World] = []

    @property
    def resolve(self) -> Resolver:
        folder = str(self.folder)
        return faulty(
            FsspecResolver(),
            self.storage,
            lambda place: place.path.startswith(folder),
            kind=FailingVolume,
        )

    @contextmanager
    def watched(self, *worlds: World) -> Iterator[None]:
        """The databases of these worlds fail on demand, too; they are closed at the end."""
        self.worlds = list(worlds)
        with ExitStack() as closing:
            for world in worlds:
                closing.callback(world.close)
                closing.enter_context(failing_database(world, self.database))
            yield

    def save(self) -> Saved:
        files = {
            path: (path.read_bytes() if path.is_file() else None, path.stat().st_mtime_ns)
            for path in sorted(self.folder.rglob("*"))
        }
        return files, [(world.backup(), world.clock.now_ms()) for world in self.worlds]

    def is_as(self, saved: Saved) -> bool:
        """Whether nothing at all has changed but times."""
        found = self.save()
        contents = [
            ({path: content for path, (content, _) in files.items()}, [one for one, _ in databases])
            for files, databases in (found, saved)
        ]
        return contents[0] == contents[1]

    def restore(self, saved: Saved) -> None:
        files, databases = saved
        for path in self.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        for path, (content, mtime_ns) in files.items():
            path.mkdir() if content is None else path.write_bytes(content)
            os.utime(path, ns=(mtime_ns, mtime_ns))
        for world, (database, now_ms) in zip(self.worlds, databases, strict=True):
            world.restore(database)
            world.clock.set_back_ms(world.clock.now_ms() - now_ms)

    def settle(self) -> list[str]:
        """Time goes by, servers keep house, cleaners clean, an administrator repairs archives.
        What is left then."""
        left: list[str] = []
        for passed_ms in PASSES_MS:
            for world in self.worlds:
                world.clock.advance_ms(passed_ms)
                world.metastore.run_housekeeping()
                world.cleaner().run_once(is_retried_now=True)
                if world.cmroot.is_dir():
                    check = self._check(world)
                    check.repair(check.plan())
            if not (left := self.left()):
                break
        return left

    def _check(self, world: World) -> Fsck:
        return Fsck(world.store.archive(), world.metastore.manifest, world.clock)

    def visible(self) -> State:
        """What users see, by world: definitions, rows as a plain reader finds them, and events."""
        return [_visible(world) for world in self.worlds]

    def files(self) -> set[str]:
        """All files and directories but those of archives; transactions differ from try to try, and
        the mark of a move that cannot be removed goes with its directory."""
        return {
            _TXN.sub("_vN", str(path.relative_to(self.folder)))
            for path in self.folder.rglob("*")
            if "cmroot" not in path.parts and not path.name.startswith(".hms_bridge_move_")
        }

    def left(self) -> list[str]:
        """What nobody has ended: rows that wait for somebody, files that only one process knew of,
        and what a check of the archive finds. What a load replays waits for the next one."""
        found = []
        for world in self.worlds:
            with sqlite_connection(world.engine) as raw:
                found += _rows_left(raw)
            if world.cmroot.is_dir():
                found += [f"{one.name}: {one.kind.value}" for one in self._check(world).plan()]
        return found + [path for path in self.files() if ".part" in path or "/_tmp_" in path]


def _rows_left(raw: sqlite3.Connection) -> Iterator[str]:
    for table in _LEFT_TABLES:
        for row in raw.execute(f'SELECT * FROM "{table}"'):
            yield f"{table} {row}"
    for table, condition in _OPEN_ROWS.items():
        for row in raw.execute(f'SELECT * FROM "{table}" WHERE {condition}'):
            yield f"{table} {row}"


def _visible(world: World) -> dict[str, object]:
    found: dict[str, object] = {}
    metastore = world.metastore
    with sqlite_connection(world.engine) as raw:
        views = _Views(raw)
        found["events"] = [
            row
            for row in raw.execute(
                "SELECT EVENT_TYPE, DB_NAME, TBL_NAME FROM NOTIFICATION_LOG ORDER BY EVENT_ID"
            )
            if row[0] not in _SILENT
        ]
    for database in metastore.get_databases():
        known = metastore.get_database(database)
        found[database] = (known.location, _lasting(known.parameters))
        found[f"functions of {database}"] = [one.name for one in metastore.get_functions(database)]
        for name in metastore.get_tables(database):
            table = metastore.get_table(database, name)
            what = f"{database}.{name}"
            found[what] = (table.storage, _lasting(table.parameters))
            found[f"constraints of {what}"] = metastore.get_constraints(database, name)
            view = views.of(database, name)
            places = {"": table.storage.location}
            if table.is_partitioned:
                parts = metastore.get_partitions(database, name)
                places = {"/".join(one.values): one.storage.location for one in parts}
                found[f"partitions of {what}"] = [
                    (one.values, one.storage.location, _lasting(one.parameters)) for one in parts
                ]
            found[f"rows of {what}"] = {
                part: read_rows(_tree(Path(str(place).removeprefix("file:"))), view)
                for part, place in places.items()
            }
    return found


_SILENT = {EventType.OPEN_TXN.value, EventType.ABORT_TXN.value, EventType.COMMIT_TXN.value}
"""A verb that is tried again may use one transaction more."""


def _lasting(parameters: Any) -> dict[str, str]:
    return {name: value for name, value in parameters.items() if name not in _VOLATILE | _COUNTED}


class _Views:
    """What a reader that comes now sees, by the rows of the database."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        txns = dict(raw.execute("SELECT TXN_ID, TXN_STATE FROM TXNS").fetchall())
        self._open = {txn for txn, state in txns.items() if state == "o"}
        self._aborted = {txn for txn, state in txns.items() if state == "a"}
        self._highest_txn = max(txns)
        self._write_ids = raw.execute(
            "SELECT T2W_DATABASE, T2W_TABLE, T2W_WRITEID, T2W_TXNID FROM TXN_TO_WRITE_ID"
        ).fetchall()
        self._next = {
            (database, table): number
            for database, table, number in raw.execute(
                "SELECT NWI_DATABASE, NWI_TABLE, NWI_NEXT FROM NEXT_WRITE_ID"
            )
        }

    def of(self, database: str, table: str) -> View:
        mine = [row[2:] for row in self._write_ids if row[:2] == (database, table)]
        return View(
            open=frozenset(one for one, txn in mine if txn in self._open),
            aborted=frozenset(one for one, txn in mine if txn in self._aborted),
            highest=self._next.get((database, table), 1) - 1,
            hidden_txns=frozenset(self._open | self._aborted),
            txn_highest=self._highest_txn,
        )


def _tree(path: Path) -> Directory | None:
    if not path.is_dir():
        return None
    names: dict[str, File | Directory] = {}
    for below in path.iterdir():
        names[below.name] = (
            _tree(below) or Directory() if below.is_dir() else File(below.read_bytes(), 0)
        )
    return Directory(names)


def different(found: State, wanted: State, *, are_events_left_out: bool = False) -> list[str]:
    """What differs between two states, by name."""
    return [
        f"{name}: {one.get(name)} is not {other.get(name)}"
        for one, other in zip(found, wanted, strict=True)
        for name in sorted({*one, *other})
        if one.get(name) != other.get(name) and not (are_events_left_out and name == "events")
    ]


@contextmanager
def scene_of_one(folder: Path, fill: Callable[[World], object]) -> Iterator[Scene]:
    """A source of replication alone in a folder that is made; ``fill`` says what is there."""
    folder.mkdir()
    scene = Scene(folder)
    world = World(
        folder,
        url=MEMORY,
        resolve=scene.resolve,
        parameters={"repl.source.for": "policy"},
        compactor=SETTINGS,
    )
    fill(world)
    with scene.watched(world):
        yield scene
