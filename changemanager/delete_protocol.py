"""Archive, then delete: a write-ahead row makes it resumable after a crash at any point.

1. PLANNED: the victim is listed and read; the row names every file with length and checksum. Where
   nothing is to be archived, the row begins as ARCHIVED.
2. ARCHIVED: every file that must be kept is in the cmroot, verified and on the disk.
3. DELETED: the files of the row are removed one by one, then the directories, which must be empty:
   when nobody lists them, as whoever called has it.
4. DONE: whoever asked has recorded it.

Where a file is, is always looked up, never concluded from what an earlier call returned. A name
that the row does not know stops the protocol before anything more is touched (ABANDONED).

A row says what was to be deleted, not that it still may be: a table can be dropped and made again
in between. So nothing resumes by itself. Who calls `remove` knows, now, that the victim may go; an
interrupted row of the same victim is then taken up where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

from changemanager.archive import ChangeManager
from changemanager.clock import Clock
from changemanager.containment import RealPaths, require_contained
from changemanager.errors import (
    ArchivedFileLostError,
    ChangeManagerConfigError,
    ChangeManagerError,
    DirectoryChangedError,
    IntentError,
    LeaseLostError,
)
from changemanager.filesystem.volume import FileKind
from changemanager.lease import never_lost
from changemanager.location import ListedFile, Location, Resolver, list_tree
from changemanager.manifest import (
    ArchiveContext,
    ArchiveIntent,
    ArchiveIntents,
    IntentFile,
    IntentState,
)
from changemanager.recycle import KeptFile, RecycleKind, plan_recycle
from changemanager.removal import (
    DeletionReport,
    Removal,
    RemovalWork,
    SameCheck,
    always_same,
    fail_changed,
    in_state,
    log_deletion,
    unplanned_changes,
)
from changemanager.removed_directories import remove_directories, settle_removals, while_quiet
from changemanager.seen import archived_before, files_as_seen, names_only

_OPEN = tuple(state for state in IntentState if state.is_open)
FILES_AT_ONCE = 16
"""Victims with so many files together are deleted after one question whether they still may go."""
_SOURCE_CHANGED = "whether the database is a replication source has changed"


class DeleteProtocol:
    """Removes victims. `archive` is None where the ChangeManager is off: nothing may be archived.

    `new_id` gives ids that no other intent has.
    """

    def __init__(
        self,
        *,
        resolve: Resolver,
        intents: ArchiveIntents,
        archive: ChangeManager | None,
        clock: Clock,
        new_id: Callable[[], str],
    ) -> None:
        self._resolve = resolve
        self._intents = intents
        self.archive = archive
        self._clock = clock
        self._new_id = new_id

    def _contained(self, removal: Removal, real_paths: RealPaths) -> Location:
        """The victim, which may be deleted. Raises PathNotContainedError."""
        place = self._resolve(removal.victim)
        spared = self.archive.spared if self.archive else ()
        require_contained(place, self._resolve(removal.root), spared, real_paths)
        return place

    def plan(self, removal: Removal, place: Location) -> ArchiveIntent | None:
        """The row of a removal whose victim is at a place, without a trace; None if it is not
        there.

        Raises ChangeManagerConfigError if files must be archived and the ChangeManager is off;
        ChangeManagerError if a file cannot be read.
        """
        archive, is_archived = self.archive, removal.is_archived
        if is_archived and archive is None:
            raise ChangeManagerConfigError(
                f"{place.uri} must be archived before it is deleted, but the ChangeManager is off; "
                "set hive.repl.cm.enabled=true and hive.repl.cmrootdir"
            )
        if place.status() is None:
            return None
        listing = list_tree(place)
        if removal.seen is not None:
            was_archived = archived_before(self._intents, place, removal.seen)
            listing = files_as_seen(listing, removal.seen, was_archived)
        chosen = plan_recycle(place.uri, listing, kind=RecycleKind.MOVE, is_purge=removal.is_purge)
        keeper = archive if is_archived else None
        named = (
            {file.path: file for file in keeper.fingerprint(place, chosen.files)} if keeper else {}
        )
        now_ms = self._clock.now_ms()
        return ArchiveIntent(
            intent_id=self._new_id(),
            victim=place.uri,
            cmroot=keeper.cmroot.uri if keeper else None,
            files=tuple(
                named.get(file.path)
                or IntentFile(path=file.path, size_bytes=file.size_bytes, mtime_ms=file.mtime_ms)
                for file in listing
                if file.kind is FileKind.FILE
            ),
            context=removal.context,
            is_remaining_in_trash=chosen.is_remaining_in_trash and keeper is not None,
            # Where nothing is to be archived, everything is.
            state=IntentState.PLANNED if keeper else IntentState.ARCHIVED,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )

    def remove(
        self,
        victim: str,
        *,
        root: str,
        context: ArchiveContext,
        is_archived: bool,
        is_purge: bool = True,
        require_lease: Callable[[], None] = never_lost,
        seen: Sequence[ListedFile] | None = None,
    ) -> DeletionReport:
        """One victim, as :meth:`remove_all`; what fails it is raised."""
        removal = Removal(
            victim=victim,
            root=root,
            context=context,
            is_archived=is_archived,
            is_purge=is_purge,
            seen=seen,
        )
        (outcome,) = self.remove_all([removal], require_lease=require_lease)
        if isinstance(outcome, DeletionReport):
            return outcome
        raise outcome

    def remove_all(
        self,
        removals: Sequence[Removal],
        *,
        begun: Sequence[ArchiveIntent] | None = None,
        require_lease: Callable[[], None] = never_lost,
        require_same: SameCheck = always_same,
        require_quiet: SameCheck = always_same,
    ) -> tuple[DeletionReport | ChangeManagerError | OSError, ...]:
        """Archive and delete victims that, as the caller knows now, may go: of each, in their
        order, what became of it, or why it failed, which stops no other.

        All rows are written before anything is touched, and each step of all rows is one step of
        the store. Takes up an interrupted row of a victim; one that is out of date, or names what
        was not seen, is abandoned and a new one is made. Afterwards the rows are DELETED.
        `require_lease` is called before each step, and raises if the caller may not go on.
        `require_same` is asked before each victim is archived, and before victims of a few files
        are deleted together (FILES_AT_ONCE), after they were looked at; `require_quiet` when their
        files are gone, before their directories follow. The rows of those that they name stay open.
        Besides the errors of `plan`: ArchiveBusyError, ArchiveUnwritableError,
        ArchiveCollisionError, ChecksumMismatchError (the row stays, call again later);
        DirectoryChangedError, ArchivedFileLostError (the row is ABANDONED, calling again plans
        anew).
        """
        works = [RemovalWork(removal, self._resolve(removal.victim)) for removal in removals]
        rows = begun
        if rows is None:
            rows = self._intents.intents(_OPEN, victims=[work.place.uri for work in works])
        real_paths = RealPaths()
        for work in works:
            with work.failing():
                begun_here = [row for row in rows if row.victim == work.place.uri]
                self._begin(work, begun_here, real_paths)
        planned = [work.intent for work in works if work.intent and not work.is_resumed]
        if planned:
            require_lease()
            stored = {row.victim: row for row in self._intents.add_intents(planned)}
            for work in works:
                if work.intent and not work.is_resumed:
                    work.intent = stored[work.intent.victim]
        self._drive(
            works,
            require_lease=require_lease,
            require_same=require_same,
            require_quiet=require_quiet,
        )
        return tuple(work.outcome for work in works)

    def _begin(
        self, work: RemovalWork, rows: Sequence[ArchiveIntent], real_paths: RealPaths
    ) -> None:
        """Find an interrupted row to go on with, or plan; no row for a victim that is not there."""
        removal = work.removal
        place = self._contained(removal, real_paths)
        for intent in rows:
            is_gone = place.status() is None
            is_same_kind = (intent.cmroot is not None) == removal.is_archived
            # Also for a victim that is gone: it shows whether all that must be kept is archived.
            if is_gone or (is_same_kind and names_only(intent, removal.seen)):
                work.intent, work.is_resumed = intent, True
                return
            why = "it names other files" if is_same_kind else _SOURCE_CHANGED
            self.abandon(intent, why)
        work.intent = self.plan(removal, place)

    def settle(self, intent: ArchiveIntent) -> DeletionReport | None:
        """Bring an interrupted row to its end if its victim is gone; None (no change) if it is not.

        Raises ArchivedFileLostError if a file of it is in no archive (the row is ABANDONED).
        """
        if not intent.state.is_open or self._resolve(intent.victim).status() is not None:
            return None
        removal = Removal(
            victim=intent.victim,
            root=intent.victim,
            context=intent.context,
            is_archived=intent.cmroot is not None,
        )
        work = RemovalWork(removal, self._resolve(intent.victim), intent, is_resumed=True)
        self._drive([work])
        if isinstance(work.outcome, DeletionReport):
            return work.outcome
        raise work.outcome

    def abandon(self, intent: ArchiveIntent, reason: str) -> None:
        """Stop an open row for a reason; what it has archived stays archived."""
        (moved,) = self._move([intent], IntentState.ABANDONED, reason)
        if isinstance(moved, IntentError):
            raise moved

    def abandon_all(self, victim: str, reason: str) -> None:
        """Stop every open row of a victim."""
        for intent in self._intents.intents(_OPEN, victims=[self._resolve(victim).uri]):
            self.abandon(intent, reason)

    def finish(self, intents: Iterable[ArchiveIntent]) -> None:
        """Whoever asked has recorded the deletion: DELETED rows become DONE, others stay."""
        ids = [intent.intent_id for intent in intents]
        if ids:
            self._intents.advance_intents(
                ids, IntentState.DELETED, IntentState.DONE, self._clock.now_ms()
            )

    def finish_below(self, locations: Collection[str]) -> None:
        """The same for all that was deleted at or below some locations."""
        self._intents.finish_intents(locations, self._clock.now_ms())

    def _advance(self, works: Sequence[RemovalWork], to_state: IntentState) -> None:
        """Move the rows of works on in one step; a row that another process has moved meanwhile
        fails its work."""
        moved = self._move([work.row for work in works], to_state)
        for work, row in zip(works, moved, strict=True):
            with work.failing():
                if isinstance(row, IntentError):
                    raise row
                work.intent = row

    def _move(
        self, rows: Sequence[ArchiveIntent], to_state: IntentState, reason: str = ""
    ) -> list[ArchiveIntent | IntentError]:
        """Rows of one state in another one, in one step; an error for each that is no longer as it
        was."""
        if not rows:
            return []
        now_ms = self._clock.now_ms()
        (from_state,) = {row.state for row in rows}
        ids = [row.intent_id for row in rows]
        moved = self._intents.advance_intents(ids, from_state, to_state, now_ms, reason)
        return [
            replace(row, state=to_state, updated_at_ms=now_ms, reason=reason)
            if row.intent_id in moved
            else IntentError(
                f"the removal {row.intent_id} of {row.victim} is no longer {from_state.name}: "
                "another process works on it; try again later"
            )
            for row in rows
        ]

    def _drive(
        self,
        works: Sequence[RemovalWork],
        *,
        require_lease: Callable[[], None] = never_lost,
        require_same: SameCheck = always_same,
        require_quiet: SameCheck = always_same,
    ) -> None:
        """Bring rows from the state in which they are to DELETED."""
        require_lease()
        for work in in_state(works, IntentState.PLANNED):
            fail_changed([work], require_same)
            if work.error is not None:
                continue
            with work.failing(), self._abandoning(work):
                work.kept = self._archive_files(work, require_lease)
                work.is_archived_now = True
        self._advance(in_state(works, IntentState.PLANNED), IntentState.ARCHIVED)
        try:
            for group in _groups(in_state(works, IntentState.ARCHIVED)):
                for work in group:
                    with work.failing(), self._abandoning(work):
                        self._look_again(work)
                # After the look, so that little time goes by until the last of them is gone.
                fail_changed(in_state(group, IntentState.ARCHIVED), require_same)
                for work in in_state(group, IntentState.ARCHIVED):
                    with work.failing(), self._abandoning(work):
                        self._delete_files(work, require_lease)
                emptied = in_state(group, IntentState.ARCHIVED)
                for work in while_quiet(emptied, self._clock, require_quiet):
                    with work.failing(), self._abandoning(work):
                        self._delete_directories(work, require_lease)
        except LeaseLostError:
            raise  # whoever lost it changes nothing more
        except Exception:
            self._record_deleted(works)
            raise
        self._record_deleted(works)

    def _record_deleted(self, works: Sequence[RemovalWork]) -> None:
        deleted = [work for work in works if work.is_deleted_now]
        settle_removals(deleted)
        self._advance(in_state(deleted, IntentState.ARCHIVED), IntentState.DELETED)
        for work in in_state(deleted, IntentState.DELETED):
            log_deletion(work.row, work.deleted_count, is_resumed=work.is_resumed)

    @contextmanager
    def _abandoning(self, work: RemovalWork) -> Iterator[None]:
        """A victim that is no longer what the row says is to be planned anew."""
        try:
            yield
        except (DirectoryChangedError, ArchivedFileLostError) as error:
            self.abandon(work.row, str(error))
            raise

    def _require_unchanged(
        self, work: RemovalWork, *, is_time_compared: bool
    ) -> Mapping[str, ListedFile]:
        """What is in the victim, planned files only if unchanged. Raises DirectoryChangedError."""
        place = work.place
        listing = list_tree(place)
        changes = unplanned_changes(
            work.row,
            listing,
            is_time_compared=is_time_compared,
            is_new_left=work.removal.seen is not None,
        )
        if changes:
            raise DirectoryChangedError(
                f"{place.uri} is not what was planned ({'; '.join(changes[:5])}); nothing more was "
                "touched: plan again",
                place.uri,
                changes,
            )
        return {file.path: file for file in listing}

    def _require_content(
        self, intent: ArchiveIntent, place: Location, found: Mapping[str, ListedFile]
    ) -> None:
        """Files that may have been written since the row was made still have their checksums."""
        for file in intent.archived_files:
            if file.path not in found or file.checksum is None:
                continue
            if place.child(file.path).checksum_like(file.checksum) != file.checksum:
                raise DirectoryChangedError(
                    f"{place.child(file.path).uri} was written anew since its removal was planned; "
                    "it was left alone: plan again",
                    place.uri,
                    (file.path,),
                )

    def _archive_files(
        self, work: RemovalWork, require_lease: Callable[[], None]
    ) -> tuple[KeptFile, ...]:
        intent, place = work.row, work.place
        if intent.cmroot is None:
            return ()
        if work.is_resumed:
            found = self._require_unchanged(work, is_time_compared=False)
            self._require_content(intent, place, found)
        return self._keeper(intent).keep(
            place,
            intent.archived_files,
            kind=RecycleKind.MOVE,
            is_remaining_in_trash=intent.is_remaining_in_trash,
            context=intent.context,
            require_lease=require_lease,
        )

    def _keeper(self, intent: ArchiveIntent) -> ChangeManager:
        archive = self.archive
        if archive is None or archive.cmroot.uri != intent.cmroot:
            raise ChangeManagerConfigError(
                f"the removal of {intent.victim} was begun with the cmroot {intent.cmroot}, which "
                "is not the configured one; set hive.repl.cmrootdir back until it is finished"
            )
        return archive

    def _look_again(self, work: RemovalWork) -> None:
        """The victim is what its row says, and all that must be kept of it is in the archive."""
        intent, place = work.row, work.place
        listing = self._require_unchanged(work, is_time_compared=intent.cmroot is None)
        # What was archived in this try was read in it: content is compared again only for a row
        # that was ARCHIVED before.
        if work.is_resumed and not work.is_archived_now and intent.cmroot is not None:
            self._require_content(intent, place, listing)
        # All copies before the first deletion: if one vanished, nothing is gone yet.
        for file in intent.files:
            if file.path in listing and file.archive_name is not None:
                self._require_archived(intent, place, file)
        work.listing = listing

    def _delete_files(self, work: RemovalWork, require_lease: Callable[[], None]) -> None:
        place = work.place
        present = [file for file in work.row.files if file.path in work.listing]
        with self._staying_whole(work):
            for file in present:
                require_lease()
                with suppress(FileNotFoundError):
                    place.volume.remove_file(place.child(file.path).path)
        work.deleted_count = len(present)

    def _delete_directories(self, work: RemovalWork, require_lease: Callable[[], None]) -> None:
        listing = work.listing
        with self._staying_whole(work):
            require_lease()
            remove_directories(work.place, list(listing.values()), work.removal.seen)
        planned = {file.path for file in work.row.files}
        work.is_deleted_now = True
        work.gone = (*listing, *planned)
        work.left = tuple(
            path
            for path, file in listing.items()
            if file.kind is not FileKind.DIRECTORY and path not in planned
        )

    @contextmanager
    def _staying_whole(self, work: RemovalWork) -> Iterator[None]:
        """Names that came meanwhile are the one thing that abandons; the rest is tried again."""
        try:
            yield
        except OSError as error:
            self._require_unchanged(work, is_time_compared=False)
            raise ChangeManagerError(
                f"cannot delete {work.place.uri}: {error}; what must be kept is in the archive, "
                "the rest is deleted when this runs again"
            ) from error

    def _require_archived(self, intent: ArchiveIntent, place: Location, file: IntentFile) -> None:
        copy = self._keeper(intent).cmroot.child(file.archive_name or "")
        status = copy.status()
        if status is None or status.size_bytes != file.size_bytes:
            raise ArchivedFileLostError(
                f"the archived copy {copy.uri} vanished; {place.child(file.path).uri} was not "
                "deleted: plan again, and it is archived anew",
                (copy.uri,),
            )


def _groups(works: Iterable[RemovalWork]) -> Iterator[list[RemovalWork]]:
    """In their order, each with few files; a work of many is one by itself."""
    group: list[RemovalWork] = []
    count = 0
    for work in works:
        files = max(1, len(work.row.files))
        if group and count + files > FILES_AT_ONCE:
            yield group
            group, count = [], 0
        group.append(work)
        count += files
    if group:
        yield group
