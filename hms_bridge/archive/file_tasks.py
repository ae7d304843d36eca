"""File work that outlives a transaction: written with it, done after it, found after a crash.

A verb that drops something cannot delete files before its commit (a rollback would leave rows
without files), and after its commit it may die. So the directory is written down inside the
transaction, and whoever comes first deletes it: the verb itself, or housekeeping. What is in it is
written down too: it may be long until the work is done, and what comes later belongs to others.

A move is written down before it begins, in a transaction of its own; the transaction that gives
the rows their new place removes the task. A task that is still there was not committed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from sqlalchemy import ColumnElement, Connection, bindparam, delete, insert, or_, select, update

from changemanager.filesystem.volume import FileKind
from changemanager.location import ListedFile, is_below
from changemanager.manifest import ArchiveContext
from hms_bridge.archive.context_columns import CONTEXT
from hms_bridge.backend.batches import insert_rows
from hms_bridge.backend.columns import Columns, flag, member
from hms_bridge.backend.fixed_sql import FixedSql
from hms_bridge.backend.schema.archive_tables import HMSB_FILE_TASK, HMSB_FILE_TASK_SEEN, MOVE
from hms_bridge.backend.work import Work

_ROW = HMSB_FILE_TASK.c
_SEEN = HMSB_FILE_TASK_SEEN.c
_MOVE_LOCATIONS = FixedSql(
    select(_ROW.LOCATION).where(
        _ROW.KIND == MOVE,
        _ROW.DB_NAME == bindparam("database"),
        _ROW.TBL_NAME == bindparam("name"),
    )
)
_PLACES = FixedSql(select(_ROW.LOCATION, _ROW.TARGET))
_PLACES_OF_MOVES = FixedSql(select(_ROW.LOCATION, _ROW.TARGET).where(_ROW.KIND == MOVE))
_FILE, _DIRECTORY = "f", "d"


class FileTaskKind(Enum):
    """What is to be done; the value is stored."""

    DELETE = "d"
    MOVE = MOVE


@dataclass(frozen=True, kw_only=True, slots=True)
class FileTask:
    """One directory to be deleted, or being moved to ``target``. Paths are URIs.

    ``root`` is what the directory must lie below; ``is_archived`` says that its files must be in
    the archive first (I4). ``owner`` is a text that only the holder of a claim knows. ``seen``:
    what a deletion may remove; it is there when a task is added or claimed.
    """

    id: str
    kind: FileTaskKind
    location: str
    target: str | None = None
    root: str
    is_archived: bool = False
    is_purge: bool = False
    context: ArchiveContext
    created_at_ms: int
    owner: str | None = None
    seen: tuple[ListedFile, ...] = ()

    @property
    def places(self) -> tuple[str, ...]:
        """Where the work is."""
        return (self.location,) if self.target is None else (self.location, self.target)

    def covers(self, location: str) -> bool:
        """Whether the work is at a place or above it."""
        return any(is_below(location, place) for place in self.places)

    def touches(self, location: str) -> bool:
        """Whether the work is at a place, below it or above it."""
        return any(_touch(place, location) for place in self.places)


def _touch(place: str, other: str) -> bool:
    return is_below(place, other) or is_below(other, place)


_TASK_COLUMNS = Columns(
    FileTask,
    id="TASK_ID",
    kind=member("KIND", FileTaskKind),
    location="LOCATION",
    target="TARGET",
    root="ROOT",
    is_archived=flag("IS_ARCHIVED"),
    is_purge=flag("IS_PURGE"),
    context=CONTEXT,
    created_at_ms="CREATED_AT_MS",
    owner="CLAIMED_BY",
)


def add(work: Work, tasks: Sequence[FileTask]) -> None:
    """Write tasks down; one with an owner is claimed from the start."""
    connection = work.connection
    if tasks:
        now_ms = work.now_ms
        connection.execute(
            insert(HMSB_FILE_TASK),
            [
                {
                    "CLAIMED_AT_MS": now_ms if task.owner else None,
                    **_TASK_COLUMNS.values(task),
                }
                for task in tasks
            ],
        )
    seen = [
        {
            "TASK_ID": task.id,
            "PLACE": place,
            "PATH": file.path,
            "KIND": _FILE if file.kind is FileKind.FILE else _DIRECTORY,
            "SIZE_BYTES": file.size_bytes,
            "MTIME_MS": file.mtime_ms,
        }
        for task in tasks
        for place, file in enumerate(task.seen)
        if file.kind in {FileKind.FILE, FileKind.DIRECTORY}
    ]
    insert_rows(connection, HMSB_FILE_TASK_SEEN, seen)


def find(connection: Connection) -> tuple[FileTask, ...]:
    """All tasks, the oldest first, without what was seen."""
    rows = connection.execute(select(HMSB_FILE_TASK).order_by(_ROW.CREATED_AT_MS, _ROW.TASK_ID))
    return tuple(map(_TASK_COLUMNS.read, rows))


def find_moves(connection: Connection, database: str, table: str) -> tuple[FileTask, ...]:
    """Moves of directories of a table that are under way."""
    rows = connection.execute(
        select(HMSB_FILE_TASK).where(
            _ROW.KIND == FileTaskKind.MOVE.value, _ROW.DB_NAME == database, _ROW.TBL_NAME == table
        )
    )
    return tuple(map(_TASK_COLUMNS.read, rows))


def move_locations(connection: Connection, database: str, table: str) -> tuple[str, ...]:
    """From where directories of a table are being moved."""
    rows = _MOVE_LOCATIONS.all(connection, database=database, name=table)
    return tuple(location for (location,) in rows)


def touching(
    connection: Connection, locations: Sequence[str], kind: FileTaskKind | None = None
) -> FileTask | None:
    """The oldest task at, below or above one of some places, without what was seen."""
    statement = _PLACES_OF_MOVES if kind is FileTaskKind.MOVE else _PLACES
    there = {place for row in statement.all(connection) for place in row if place is not None}
    if not any(_touch(place, location) for place in there for location in locations):
        return None
    return next(
        (
            task
            for task in find(connection)
            if kind in (None, task.kind) and any(map(task.touches, locations))
        ),
        None,
    )


def claim(
    connection: Connection, task_id: str, *, owner: str, now_ms: int, lease_ms: int
) -> FileTask | None:
    """Take a task for ``lease_ms``; None if it is done, or someone else's claim has not run out.

    A claim from the future (a clock that was ahead) has run out, as leases do.
    """
    is_alive = _ROW.CLAIMED_AT_MS.between(now_ms - lease_ms, now_ms + lease_ms)
    is_free = or_(_ROW.CLAIMED_AT_MS.is_(None), ~is_alive)
    changed = connection.execute(
        update(HMSB_FILE_TASK)
        .where(_ROW.TASK_ID == task_id, is_free)
        .values(CLAIMED_AT_MS=now_ms, CLAIMED_BY=owner)
    )
    if not changed.rowcount:
        return None
    row = connection.execute(select(HMSB_FILE_TASK).where(_ROW.TASK_ID == task_id)).one()
    return _TASK_COLUMNS.read(row, seen=_seen(connection, task_id))


def _seen(connection: Connection, task_id: str) -> tuple[ListedFile, ...]:
    rows = connection.execute(
        select(HMSB_FILE_TASK_SEEN).where(_SEEN.TASK_ID == task_id).order_by(_SEEN.PLACE)
    )
    return tuple(
        ListedFile(
            path=row.PATH,
            kind=FileKind.FILE if row.KIND == _FILE else FileKind.DIRECTORY,
            size_bytes=row.SIZE_BYTES,
            mtime_ms=row.MTIME_MS,
        )
        for row in rows
    )


def renew(connection: Connection, task: FileTask, now_ms: int) -> bool:
    """Lengthen a claim; False, and no change, if someone else has taken the task over."""
    renewed = connection.execute(
        update(HMSB_FILE_TASK).where(_mine(task)).values(CLAIMED_AT_MS=now_ms)
    )
    return renewed.rowcount == 1


def give_back(connection: Connection, tasks: Sequence[FileTask], error: str) -> None:
    """Claimed tasks failed: anyone may try them again; the error stays for people to read."""
    for task in tasks:
        connection.execute(
            update(HMSB_FILE_TASK)
            .where(_mine(task))
            .values(CLAIMED_AT_MS=None, CLAIMED_BY=None, ERROR=error)
        )


def finish(connection: Connection, task: FileTask) -> bool:
    """A claimed task is done; False, and no change, if someone else has taken it over."""
    gone = connection.execute(delete(HMSB_FILE_TASK).where(_mine(task)))
    if gone.rowcount != 1:
        return False
    connection.execute(delete(HMSB_FILE_TASK_SEEN).where(_SEEN.TASK_ID == task.id))
    return True


def _mine(task: FileTask) -> ColumnElement[bool]:
    return (_ROW.TASK_ID == task.id) & (_ROW.CLAIMED_BY == task.owner)
