"""What is left to do with files once a transaction has committed, and moves of directories.

A directory is deleted after the transaction that forgets it, by a task that the transaction wrote
(archive/file_tasks), so a crash in between leaves work and not garbage. The task names what was
there before that transaction; whatever comes later stays, however late the work is done. Files of
a replication source are archived before they are deleted (I4).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial

from changemanager.delete_protocol import DeleteProtocol
from changemanager.errors import (
    ArchivedFileLostError,
    ChangeManagerError,
    DirectoryChangedError,
    LeaseLostError,
    PathNotContainedError,
)
from changemanager.filesystem.volume import FileKind
from changemanager.lease import never_lost
from changemanager.location import ListedFile, is_below
from changemanager.manifest import ArchiveContext
from changemanager.recycle import RecycleKind
from hms_bridge.archive import file_tasks
from hms_bridge.archive.file_tasks import FileTask, FileTaskKind
from hms_bridge.backend.connection import Connection
from hms_bridge.catalog import places
from hms_bridge.errors import (
    BackendError,
    CommitUnknownError,
    HmsBridgeError,
    InvalidOperationError,
    MetaError,
)
from hms_bridge.service import moves
from hms_bridge.service.archive_copies import ArchiveCopies
from hms_bridge.service.directories import Directories, visible_children
from hms_bridge.service.task_leases import CLAIM_MS, TaskLeases
from hms_bridge.service.unit_of_work import Transactions, UnitOfWork
from hms_bridge.service.warehouse_files import WarehouseFiles

_LOG = logging.getLogger(__name__)

WAIT_SECONDS = 30.0
WAIT_STEP_SECONDS = 0.1
CLAIMED_AT_ONCE = 20
TRIES_MAX = 3
"""How often a directory is tried again that changes while it is deleted."""


class FileWork:
    """Deletes and moves directories for the service: tasks, each done by who has claimed it."""

    def __init__(
        self,
        *,
        transactions: Transactions,
        files: WarehouseFiles,
        directories: Directories,
        protocol: DeleteProtocol,
        new_id: Callable[[], str],
    ) -> None:
        self._transactions = transactions
        self._clock = transactions.clock
        self._files = files
        self._directories = directories
        self._protocol = protocol
        self._archive = protocol.archive
        self.copies = ArchiveCopies(files, protocol.archive)
        self._new_id = new_id
        self._leases = TaskLeases(self._renew, transactions.clock)

    def empty(
        self, location: str, *, root: str, context: ArchiveContext, is_archived: bool
    ) -> None:
        """Delete what is in a directory, but for hidden files, and for what comes meanwhile.
        Raises MetaError; the rest is then still there, and the call can be repeated."""
        try:
            for name, seen in visible_children(self._directories.listing(location)).items():
                self._delete(
                    self.deletion(
                        f"{location.rstrip('/')}/{name}",
                        root=root,
                        seen=seen,
                        context=context,
                        is_archived=is_archived,
                        is_purge=True,
                    )
                )
        except (OSError, ChangeManagerError, ValueError) as error:
            raise MetaError(f"{location} cannot be emptied: {error}; try again") from error

    def deletion(
        self,
        location: str,
        *,
        root: str,
        seen: Sequence[ListedFile],
        context: ArchiveContext,
        is_archived: bool,
        is_purge: bool,
    ) -> FileTask:
        """The task of deleting what was seen in a directory, to be written in the transaction that
        drops it."""
        return FileTask(
            id=self._new_id(),
            kind=FileTaskKind.DELETE,
            location=location,
            root=root,
            is_archived=is_archived,
            is_purge=is_purge,
            context=context,
            created_at_ms=self._clock.now_ms(),
            seen=tuple(seen),
        )

    def carry_out(self, tasks: Sequence[FileTask]) -> None:
        """Do what a committed transaction left. Failures are logged; the tasks stay.

        Several are claimed, and recorded as done, in one transaction each: a statement may leave
        thousands.
        """
        try:
            self._carry_out(tasks)
        except BackendError as error:
            _LOG.warning("what was dropped is deleted later, by housekeeping: %s", error)

    def _carry_out(self, tasks: Sequence[FileTask]) -> None:
        for start in range(0, len(tasks), CLAIMED_AT_ONCE):
            claimed = self._claim_all(tasks[start : start + CLAIMED_AT_ONCE])
            with self._holding(claimed):
                done = [task for task in claimed if self._is_carried_out(task)]
                if done:
                    self._transactions.write(partial(self._finish_all, tasks=done))
            for task in claimed:
                if task not in done:
                    self._try_again(task)

    @contextmanager
    def _holding(self, claimed: Sequence[FileTask]) -> Iterator[None]:
        """Beat for claimed tasks. Where the database fails, nobody shall wait for the end of the
        claims that it can still give back."""
        with self._leases.held(claimed):
            try:
                yield
            except BackendError as error:
                reason = str(error)
                with suppress(BackendError):
                    self._transactions.write_without_waiting(
                        lambda unit: file_tasks.give_back(unit.connection, claimed, reason)
                    )
                raise

    def _claim_all(self, tasks: Sequence[FileTask]) -> list[FileTask]:
        return self._transactions.write(
            lambda unit: [
                claimed for task in tasks if (claimed := self._claim_within(unit, task)) is not None
            ]
        )

    def _finish_all(self, unit: UnitOfWork, tasks: Sequence[FileTask]) -> None:
        for task in tasks:
            self.finish(unit, task)

    def _try_again(self, task: FileTask) -> None:
        for _ in range(TRIES_MAX - 1):
            claimed = self._claim(task)
            if claimed is None or self._try(claimed):
                return

    def resume(self) -> int:
        """Do what crashed or failing verbs left behind; how many tasks are done."""
        tasks = self._transactions.read(file_tasks.find)
        return sum(
            self._try(claimed) for task in tasks if (claimed := self._claim(task)) is not None
        )

    def settle(self, *locations: str, is_below_left: bool = False) -> None:
        """Before something new comes to a place: what was dropped there must be gone; with
        ``is_below_left`` what is only below it may wait.

        Raises MetaError if somebody is still at it, or it cannot be done.
        """
        self._settle(lambda c: _task_at(c, locations, is_below_left=is_below_left))

    def settle_moves(self, *locations: str) -> None:
        """Before it is looked what is at some places: a move that is under way there, or was
        killed, must have ended. Raises MetaError as :meth:`settle`."""
        if locations:
            self._settle(lambda c: file_tasks.touching(c, locations, FileTaskKind.MOVE))

    def _settle(self, next_task: Callable[[Connection], FileTask | None]) -> None:
        waited_seconds, failures = 0.0, 0
        while (task := self._transactions.read(next_task)) is not None:
            claimed = self._claim(task)
            if claimed is not None and self._try(claimed):
                continue
            failures += claimed is not None
            if waited_seconds >= WAIT_SECONDS or failures >= TRIES_MAX:
                raise self._busy(task)
            self._clock.sleep_seconds(WAIT_STEP_SECONDS)
            waited_seconds += WAIT_STEP_SECONDS

    def require_unmoved(self, connection: Connection, locations: Sequence[str]) -> None:
        """For who holds a table's row, and stores or drops what lies in directories of it: a move
        that began after they were settled has them elsewhere, and may put them back. None begins
        until that transaction ends. Raises MetaError."""
        if not locations:
            return
        task = file_tasks.touching(connection, locations, FileTaskKind.MOVE)
        if task is not None:
            raise self._busy(task)

    def require_settled(self, connection: Connection, location: str) -> None:
        """For who stores something new at a place: what began there after it was settled would
        move it away, or delete what is counted as its own. Raises MetaError."""
        task = file_tasks.touching(connection, [location])
        if task is not None:
            raise self._busy(task)

    def keep(self, location: str) -> None:
        """What was dropped at a place shall stay after all: nothing is deleted there any more.

        Raises MetaError if its deletion has begun, or is of a directory above.
        """
        for task in self._transactions.read(file_tasks.find):
            if not task.touches(location):
                continue
            if task.kind is FileTaskKind.MOVE:
                self.settle(task.location)
                continue
            # Claimed before it is looked at, so that nobody begins to delete meanwhile.
            claimed = self._claim(task)
            if claimed is None:
                raise self._busy(task)
            refusal = self._why_not_kept(claimed, location)
            if refusal is not None:
                self._give_back(claimed, refusal)
                raise MetaError(refusal)
            self._protocol.abandon_all(task.location, "what was dropped there is kept")
            self._transactions.write(partial(self.finish, task=claimed))
            _LOG.info("%s was dropped and is kept all the same", task.location)

    def _why_not_kept(self, task: FileTask, location: str) -> str | None:
        if not is_below(task.location, location):
            return (
                f"{task.location}, in which {location} lies, was dropped and is to be deleted; "
                "copy what is to be kept elsewhere"
            )
        there = set(self._files.look(task.location))
        gone = [f.path for f in task.seen if f.kind is FileKind.FILE and f not in there]
        if gone:
            return (
                f"{task.location} was dropped, and its deletion has begun: {gone[0]} is gone or "
                "another file. Take what is missing from the archive, and copy what is there "
                "elsewhere, before it goes"
            )
        return None

    def _busy(self, task: FileTask) -> MetaError:
        doing = "moved" if task.kind is FileTaskKind.MOVE else "deleted"
        return MetaError(
            f"{task.location} is still being {doing} for an earlier statement; try again, or see "
            "the log of the metastore for what keeps it"
        )

    def _claim(self, task: FileTask) -> FileTask | None:
        return self._transactions.write(lambda unit: self._claim_within(unit, task))

    def _claim_within(self, unit: UnitOfWork, task: FileTask) -> FileTask | None:
        return file_tasks.claim(
            unit.connection, task.id, owner=self._new_id(), now_ms=unit.now_ms, lease_ms=CLAIM_MS
        )

    def _renew(self, task: FileTask) -> bool:
        return self._transactions.write(
            lambda unit: file_tasks.renew(unit.connection, task, unit.now_ms)
        )

    def _try(self, task: FileTask, *, is_patient: bool = True) -> bool:
        """Not ``is_patient`` after a failure of the database, which was waited for then."""
        write = self._transactions.write if is_patient else self._transactions.write_without_waiting
        with self._holding([task]):
            if not self._is_carried_out(task):
                return False
            write(lambda unit: self.finish(unit, task))
        return True

    def _is_carried_out(self, task: FileTask) -> bool:
        """Do it; a failure gives the task back."""
        try:
            if task.kind is FileTaskKind.DELETE:
                self._delete(task, partial(self._leases.check, task))
            else:
                self._move_back(task)
        # Trying again would not help, so the task ends here.
        except PathNotContainedError as error:
            _LOG.warning("%s; its table is dropped, its files stay", error)
        except (ChangeManagerError, OSError) as error:
            _LOG.warning("%s could not be finished and stays to be done: %s", task.location, error)
            self._give_back(task, str(error))
            return False
        return True

    def _give_back(self, task: FileTask, reason: str) -> None:
        self._transactions.write(lambda unit: file_tasks.give_back(unit.connection, [task], reason))

    def _delete(self, task: FileTask, require_lease: Callable[[], None] = never_lost) -> None:
        tries = 0
        while True:
            try:
                report = self._protocol.remove(
                    task.location,
                    root=task.root,
                    context=task.context,
                    is_archived=task.is_archived,
                    is_purge=task.is_purge,
                    require_lease=require_lease,
                    seen=task.seen,
                )
            except (DirectoryChangedError, ArchivedFileLostError) as error:
                # Its row, if any, is given up: the next try plans anew, from what is there.
                _LOG.warning("%s changed while it was removed: %s", task.location, error)
                tries += 1
                if tries == TRIES_MAX:
                    raise
                continue
            if report.intent is not None:
                self._protocol.finish([report.intent])
            if not report.is_resumed:  # else there may be more than what was interrupted
                break
        if report.left:
            _LOG.warning(
                "%s was dropped and keeps %d files that were not in it then, such as %s",
                task.location,
                len(report.left),
                report.left[0],
            )

    @contextmanager
    def moved(
        self,
        source: str,
        target: str,
        *,
        context: ArchiveContext,
        is_archived: bool,
        require: Callable[[Connection], None],
    ) -> Iterator[FileTask]:
        """Move a directory before a block, whose transaction renames its rows and must finish the
        task; put it back if the block fails.

        ``require`` holds the rows of the tables alone while the move is written down, and raises if
        they do not say any more what the move is for: who drops something there has done so before,
        or finds the move.

        Raises InvalidOperationError if the target is there, or one of both lies outside of the
        allowed roots, MetaError if it cannot be moved, or is being cleaned. Meanwhile nobody
        compacts or cleans the table.
        """
        task = self._planned_move(source, target, context=context, is_archived=is_archived)
        self._note_move(task, require)
        with self._leases.held([task]):
            try:
                self._move(task)
            except (Exception, KeyboardInterrupt) as error:
                self._undo_move(task, error)
                raise
            try:
                yield task
            except BaseException as error:
                self._undo_move(task, error)
                raise
        try:
            self._directories.end_move(target, task.id)
        except OSError as error:  # nobody reads it
            _LOG.warning("the mark of a move stays in %s: %s", target, error)

    def _planned_move(
        self, source: str, target: str, *, context: ArchiveContext, is_archived: bool
    ) -> FileTask:
        root = self._files.rule.require_movable(source, target)
        try:
            is_taken = self._directories.exists(target)
        except OSError as error:  # too long a name, a file on the way
            raise MetaError(f"{source} cannot be moved to {target}: {error}") from error
        if is_taken:
            raise _taken(target)
        return replace(
            self.deletion(
                source,
                root=root,
                seen=(),
                context=context,
                is_archived=is_archived,
                is_purge=True,
            ),
            kind=FileTaskKind.MOVE,
            target=target,
            owner=self._new_id(),
        )

    def _note_move(self, task: FileTask, require: Callable[[Connection], None]) -> None:
        def work(unit: UnitOfWork) -> bool:
            connection, target = unit.connection, task.target or ""
            require(connection)
            for place in task.places:
                self.require_settled(connection, place)
            if places.user_of(connection, target) is not None:
                raise _taken(target)
            return moves.begin(unit, task)

        waited_seconds = 0.0
        while not self._transactions.write(work):
            if waited_seconds >= WAIT_SECONDS:
                raise MetaError(
                    f"{task.location} is being cleaned and cannot be moved now; try again"
                )
            self._clock.sleep_seconds(WAIT_STEP_SECONDS)
            waited_seconds += WAIT_STEP_SECONDS

    def _move(self, task: FileTask) -> None:
        source, target = task.location, task.target or ""
        try:
            if task.is_archived and self._archive is not None:
                # For dumps that name the old place; the files are moved next (Warehouse.renameDir).
                self._archive.recycle(
                    source,
                    RecycleKind.COPY,
                    is_purge=True,
                    root=task.root,
                    context=task.context,
                )
            self._leases.check(task)
            if self._directories.exists(source):
                self._directories.move(source, target, task.id, partial(self._leases.check, task))
        # Whoever took the task over puts the directory back; two at it could lose files.
        except LeaseLostError as error:
            raise MetaError(str(error)) from error
        except (ChangeManagerError, OSError) as error:
            raise MetaError(f"{source} cannot be moved to {target}: {error}") from error

    def _undo_move(self, task: FileTask, error: BaseException) -> None:
        """Unless the commit that ends it came through all the same: then the rows name the new
        place. Where that is in doubt and cannot be asked, housekeeping finds out."""
        try:
            if self._is_left(task, error):
                self._try(task, is_patient=False)
        except BackendError as failure:
            _LOG.warning("%s may have to be put back, later: %s", task.location, failure)

    def _is_left(self, task: FileTask, error: BaseException) -> bool:
        try:
            return self._transactions.write_without_waiting(
                lambda unit: file_tasks.renew(unit.connection, task, unit.now_ms)
            )
        except BackendError:
            if isinstance(error, HmsBridgeError) and not isinstance(error, CommitUnknownError):
                return True
            raise

    def finish(self, unit: UnitOfWork, task: FileTask) -> bool:
        """Record inside a transaction that a task is done; False if another process took it."""
        if not file_tasks.finish(unit.connection, task):
            return False
        if task.kind is FileTaskKind.MOVE:
            moves.end(unit.connection, task)
        return True

    def _move_back(self, task: FileTask) -> None:
        """The rows still name the old place, because a commit would have removed the task."""
        self._leases.check(task)
        proceed = partial(self._leases.check, task)
        self._directories.move_back(task.location, task.target or "", task.id, proceed)


def _task_at(
    connection: Connection, locations: Sequence[str], *, is_below_left: bool
) -> FileTask | None:
    if not is_below_left:
        return file_tasks.touching(connection, locations)
    return next(
        (task for task in file_tasks.find(connection) if any(map(task.covers, locations))), None
    )


def _taken(target: str) -> InvalidOperationError:
    return InvalidOperationError(
        f"New location for this table {target} already exists; remove it, or give the "
        "table another location"
    )
