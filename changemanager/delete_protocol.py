"""Archive, then delete: a write-ahead row makes it resumable after a crash at any point.

1. PLANNED: the victim is listed and read; the row names every file with length and checksum.
2. ARCHIVED: every file that must be kept is in the cmroot, verified and on the disk.
3. DELETED: the files of the row are removed one by one, then the directories, which must be empty.
4. DONE: whoever asked has recorded it.

Where a file is, is always looked up, never concluded from what an earlier call returned. A name
that the row does not know stops the protocol before anything more is touched (ABANDONED).

A row says what was to be deleted, not that it still may be: a table can be dropped and made again
in between. So nothing resumes by itself. Who calls `remove` knows, now, that the victim may go; an
interrupted row of the same victim is then taken up where it stopped.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from changemanager.archive import ChangeManager
from changemanager.clock import Clock
from changemanager.containment import require_contained
from changemanager.durable import settle_names
from changemanager.errors import (
    ArchivedFileLostError,
    ChangeManagerConfigError,
    ChangeManagerError,
    DirectoryChangedError,
    IntentError,
)
from changemanager.filesystem.volume import FileKind
from changemanager.journal import log_deed
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
from changemanager.seen import files_as_seen, names_only

_LOG = logging.getLogger(__name__)

_SOURCE_CHANGED = "whether the database is a replication source has changed"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeletionReport:
    """What became of one victim. `intent` is None if it was not there at all; `left` are files that
    stay because they were not seen."""

    victim: str
    intent: ArchiveIntent | None
    kept: tuple[KeptFile, ...] = ()
    deleted_count: int = 0
    is_resumed: bool = False
    left: tuple[str, ...] = ()

    @property
    def archived_count(self) -> int:
        """Files newly archived by this call."""
        return sum(file.is_new for file in self.kept)

    @property
    def size_bytes(self) -> int:
        """Bytes that the victim had when it was planned."""
        return sum(file.size_bytes for file in self.intent.files) if self.intent else 0


def unplanned_changes(
    intent: ArchiveIntent,
    listing: Iterable[ListedFile],
    *,
    is_time_compared: bool,
    is_new_left: bool = False,
) -> tuple[str, ...]:
    """How a victim differs from its row, except for files that are gone; pure.

    Times are compared only while nothing was archived: archiving sets them. With ``is_new_left``
    what is not in the row is no difference, because it stays.
    """
    known = {file.path: file for file in intent.files}
    changes = []
    for found in listing:
        planned = known.get(found.path)
        if found.kind is FileKind.DIRECTORY or (planned is None and is_new_left):
            continue
        if planned is None or found.kind is not FileKind.FILE:
            changes.append(f"{found.path} is new")
        elif planned.size_bytes != found.size_bytes:
            changes.append(f"{found.path} has {found.size_bytes} bytes, not {planned.size_bytes}")
        elif is_time_compared and planned.mtime_ms != found.mtime_ms:
            changes.append(f"{found.path} was written since")
    return tuple(changes)


def _log_deletion(intent: ArchiveIntent, deleted_count: int, *, is_resumed: bool) -> None:
    log_deed(
        _LOG,
        "deleted",
        path=intent.victim,
        files=deleted_count,
        bytes=sum(file.size_bytes for file in intent.files),
        **intent.context.facts,
        cmroot=intent.cmroot,
        removal=intent.intent_id,
        resumed=True if is_resumed else None,
    )


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

    def plan(
        self,
        victim: str,
        *,
        root: str,
        context: ArchiveContext,
        is_archived: bool,
        is_purge: bool = True,
        seen: Sequence[ListedFile] | None = None,
    ) -> ArchiveIntent | None:
        """What `remove` would do, without a trace; None if the victim is not there.

        Raises PathNotContainedError; ChangeManagerConfigError if files must be archived and the
        ChangeManager is off; ChangeManagerError if a file cannot be read.
        """
        place = self._resolve(victim)
        archive = self.archive
        require_contained(place, self._resolve(root), archive.spared if archive else ())
        if is_archived and archive is None:
            raise ChangeManagerConfigError(
                f"{place.uri} must be archived before it is deleted, but the ChangeManager is off; "
                "set hive.repl.cm.enabled=true and hive.repl.cmrootdir"
            )
        if place.status() is None:
            return None
        listing = list_tree(place)
        if seen is not None:
            listing = files_as_seen(listing, seen, self._archived_before(place))
        chosen = plan_recycle(place.uri, listing, kind=RecycleKind.MOVE, is_purge=is_purge)
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
            context=context,
            is_remaining_in_trash=chosen.is_remaining_in_trash and keeper is not None,
            state=IntentState.PLANNED,
            created_at_ms=now_ms,
            updated_at_ms=now_ms,
        )

    def _archived_before(self, place: Location) -> Callable[[ListedFile], bool]:
        """Whether an earlier try has archived a file with the content that it has: where there are
        links, that gave the file the time of its copy."""
        rows = self._intents.intents([IntentState.ABANDONED], victim=place.uri)
        known = {file.path: file.checksum for row in rows for file in row.archived_files}

        def is_archived(file: ListedFile) -> bool:
            checksum = known.get(file.path)
            found = place.child(file.path)
            return checksum is not None and found.checksum_like(checksum) == checksum

        return is_archived

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
        """Archive and delete a victim that, as the caller knows now, may go; with ``seen`` only
        what is still as it was seen then, and the directories that are empty without it.

        Takes up an interrupted row of the same victim; one that is out of date, or names what was
        not seen, is abandoned and a new one is made. Afterwards the row is DELETED. `require_lease`
        is called before each step, and raises if the caller may not go on. Besides the errors of
        `plan`: ArchiveBusyError, ArchiveUnwritableError, ArchiveCollisionError,
        ChecksumMismatchError (the row stays, call again later); DirectoryChangedError,
        ArchivedFileLostError (the row is ABANDONED, calling again plans anew).
        """
        place = self._resolve(victim)
        require_contained(place, self._resolve(root), self.archive.spared if self.archive else ())
        open_states = [state for state in IntentState if state.is_open]
        for intent in self._intents.intents(open_states, victim=place.uri):
            is_gone = place.status() is None
            is_same_kind = (intent.cmroot is not None) == is_archived
            # Also for a victim that is gone: it shows whether all that must be kept is archived.
            if is_gone or (is_same_kind and names_only(intent, seen)):
                return self._drive(intent, is_resumed=True, require_lease=require_lease, seen=seen)
            why = "it names other files" if is_same_kind else _SOURCE_CHANGED
            self.abandon(intent, why)
        planned = self.plan(
            victim,
            root=root,
            context=context,
            is_archived=is_archived,
            is_purge=is_purge,
            seen=seen,
        )
        if planned is None:
            return DeletionReport(victim=place.uri, intent=None)
        require_lease()
        intent = self._intents.add_intent(planned)
        return self._drive(intent, is_resumed=False, require_lease=require_lease, seen=seen)

    def settle(self, intent: ArchiveIntent) -> DeletionReport | None:
        """Bring an interrupted row to its end if its victim is gone; None (no change) if it is not.

        Raises ArchivedFileLostError if a file of it is in no archive (the row is ABANDONED).
        """
        if not intent.state.is_open or self._resolve(intent.victim).status() is not None:
            return None
        return self._drive(intent, is_resumed=True)

    def abandon(self, intent: ArchiveIntent, reason: str) -> None:
        """Stop an open row for a reason; what it has archived stays archived."""
        self._advance(intent, IntentState.ABANDONED, reason)

    def abandon_all(self, victim: str, reason: str) -> None:
        """Stop every open row of a victim."""
        open_states = [state for state in IntentState if state.is_open]
        for intent in self._intents.intents(open_states, victim=self._resolve(victim).uri):
            self.abandon(intent, reason)

    def finish(self, intents: Iterable[ArchiveIntent]) -> None:
        """Whoever asked has recorded the deletion: DELETED rows become DONE, others stay."""
        for intent in intents:
            self._intents.advance_intent(
                intent.intent_id, IntentState.DELETED, IntentState.DONE, self._clock.now_ms()
            )

    def _advance(
        self, intent: ArchiveIntent, to_state: IntentState, reason: str = ""
    ) -> ArchiveIntent:
        now_ms = self._clock.now_ms()
        if not self._intents.advance_intent(
            intent.intent_id, intent.state, to_state, now_ms, reason
        ):
            raise IntentError(
                f"the removal {intent.intent_id} of {intent.victim} is no longer "
                f"{intent.state.name}: another process works on it; try again later"
            )
        return replace(intent, state=to_state, updated_at_ms=now_ms, reason=reason)

    def _drive(
        self,
        intent: ArchiveIntent,
        *,
        is_resumed: bool,
        require_lease: Callable[[], None] = never_lost,
        seen: Sequence[ListedFile] | None = None,
    ) -> DeletionReport:
        kept: tuple[KeptFile, ...] = ()
        deleted_count = 0
        left: tuple[str, ...] = ()
        is_read_again = is_resumed
        try:
            require_lease()
            if intent.state is IntentState.PLANNED:
                kept = self._archive_files(
                    intent,
                    is_resumed=is_resumed,
                    is_rest_left=seen is not None,
                    require_lease=require_lease,
                )
                intent = self._advance(intent, IntentState.ARCHIVED)
                # Read in this try: content is compared again only for a row that was ARCHIVED
                # before.
                is_read_again = False
            if intent.state is IntentState.ARCHIVED:
                deleted_count, left = self._delete(
                    intent, is_read_again=is_read_again, require_lease=require_lease, seen=seen
                )
                intent = self._advance(intent, IntentState.DELETED)
                _log_deletion(intent, deleted_count, is_resumed=is_resumed)
        except (DirectoryChangedError, ArchivedFileLostError) as error:
            self.abandon(intent, str(error))
            raise
        return DeletionReport(
            victim=intent.victim,
            intent=intent,
            kept=kept,
            deleted_count=deleted_count,
            is_resumed=is_resumed,
            left=left,
        )

    def _require_unchanged(
        self,
        intent: ArchiveIntent,
        place: Location,
        *,
        is_time_compared: bool,
        is_rest_left: bool,
    ) -> Mapping[str, ListedFile]:
        """What is in the victim, planned files only if unchanged. Raises DirectoryChangedError."""
        listing = list_tree(place)
        changes = unplanned_changes(
            intent, listing, is_time_compared=is_time_compared, is_new_left=is_rest_left
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
        self,
        intent: ArchiveIntent,
        *,
        is_resumed: bool,
        is_rest_left: bool,
        require_lease: Callable[[], None],
    ) -> tuple[KeptFile, ...]:
        if intent.cmroot is None:
            return ()
        place = self._resolve(intent.victim)
        if is_resumed:
            found = self._require_unchanged(
                intent, place, is_time_compared=False, is_rest_left=is_rest_left
            )
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

    def _delete(
        self,
        intent: ArchiveIntent,
        *,
        is_read_again: bool,
        require_lease: Callable[[], None],
        seen: Sequence[ListedFile] | None,
    ) -> tuple[int, tuple[str, ...]]:
        place = self._resolve(intent.victim)
        is_rest_left = seen is not None
        found = self._require_unchanged(
            intent, place, is_time_compared=intent.cmroot is None, is_rest_left=is_rest_left
        )
        if is_read_again and intent.cmroot is not None:
            self._require_content(intent, place, found)
        present = [file for file in intent.files if file.path in found]
        # All copies before the first deletion: if one vanished, nothing is gone yet.
        for file in present:
            if file.archive_name is not None:
                self._require_archived(intent, place, file)
        try:
            for file in present:
                require_lease()
                with suppress(FileNotFoundError):
                    place.volume.remove_file(place.child(file.path).path)
            require_lease()
            self._remove_directories(place, list(found.values()), seen)
            _settle_removal(place, [*found, *(file.path for file in intent.files)])
        except OSError as error:
            # Names that came meanwhile are the one thing that abandons; the rest is tried again.
            self._require_unchanged(
                intent, place, is_time_compared=False, is_rest_left=is_rest_left
            )
            raise ChangeManagerError(
                f"cannot delete {place.uri}: {error}; what must be kept is in the archive, the "
                "rest is deleted when this runs again"
            ) from error
        planned = {file.path for file in intent.files}
        return len(present), tuple(
            path
            for path, file in found.items()
            if file.kind is not FileKind.DIRECTORY and path not in planned
        )

    def _require_archived(self, intent: ArchiveIntent, place: Location, file: IntentFile) -> None:
        copy = self._keeper(intent).cmroot.child(file.archive_name or "")
        status = copy.status()
        if status is None or status.size_bytes != file.size_bytes:
            raise ArchivedFileLostError(
                f"the archived copy {copy.uri} vanished; {place.child(file.path).uri} was not "
                "deleted: plan again, and it is archived anew",
                (copy.uri,),
            )

    def _remove_directories(
        self, place: Location, found: Sequence[ListedFile], seen: Sequence[ListedFile] | None
    ) -> None:
        """Remove directories that must be empty now, the deepest first, then the victim itself;
        with ``seen`` those of them in which nothing is left."""
        volume = place.volume
        if not volume.capabilities.has_directories:
            if seen is None and list_tree(place):
                raise FileExistsError(f"{place.uri} still has files")
            return
        going = {file.path for file in found if file.kind is FileKind.DIRECTORY} | {""}
        if seen is not None:
            going &= {file.path for file in seen if file.kind is FileKind.DIRECTORY} | {""}
            left = [file.path for file in list_tree(place) if file.path not in going]
            going -= _directories_above(left)
        for below in sorted(going - {""}, reverse=True):
            with suppress(FileNotFoundError):
                volume.remove_empty_directory(place.child(below).path)
        if "" in going and place.status() is not None:
            volume.remove_empty_directory(place.path)


def _settle_removal(place: Location, gone: Iterable[str]) -> None:
    """No loss of power brings back what went: each directory that lost a name, and stands still
    because somebody else has put something there, is on the disk without it."""
    within = sorted(_directories_above(gone) - {""})
    for directory in (place.parent, place, *map(place.child, within)):
        with suppress(FileNotFoundError):
            settle_names(place.volume, directory.path)


def _directories_above(paths: Iterable[str]) -> set[str]:
    """Every directory in which one of the relative paths lies; the empty text is the victim."""
    above: set[str] = set()
    for path in paths:
        levels = path.split("/")[:-1]
        above.update("/".join(levels[:count]) for count in range(len(levels) + 1))
    return above
