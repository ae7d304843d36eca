"""The archive: a file that is replaced gets a name in the cmroot before its place is given up.

As Hive's ReplChangeManager.recycle (docs/hive/replication.md §4): directories with everything
below, hidden files (`.x`) left out, `_x` kept; the same content twice is one file whose retention
starts again; the first origin stays in `user.original-loc`. Safer than it: a source goes only after
its copy is there, verified and on the disk; a name taken by other content is an error; a file of a
live table keeps its time.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress

from changemanager.archive_directory import hindrance, make_archive, warn_if_open
from changemanager.clock import Clock
from changemanager.config import ChangeManagerConfig
from changemanager.containment import require_contained, require_outside
from changemanager.directories_above import DirectoriesAbove
from changemanager.durable import settle_names
from changemanager.errors import (
    ArchiveCollisionError,
    ArchivedFileLostError,
    ArchiveUnwritableError,
    ChangeManagerError,
    DirectoryChangedError,
    LeaseLostError,
)
from changemanager.filesystem.volume import FileKind, Placement
from changemanager.journal import log_deed
from changemanager.lease import never_lost
from changemanager.location import ListedFile, Location, Resolver, is_within, list_tree, parse_uri
from changemanager.manifest import (
    ArchiveContext,
    ArchivedFile,
    ArchiveManifest,
    ArchiveOrigin,
    IntentFile,
    ReservedFile,
)
from changemanager.plausible_time import stamp_ms
from changemanager.recycle import KeptFile, RecycleKind, RecyclePlan, RecycleReport, plan_recycle
from changemanager.transfer import copy_verified, give_new_name
from changemanager.uri import archive_name

ORIGINAL_LOCATION = "user.original-loc"
"""Extended attribute: the first place that an archived file came from (Hive's)."""
REMAIN_IN_TRASH = "user.remain-in-trash"
"""Extended attribute: purge into the trash, not for good (Hive's); its value is one zero byte."""


_LOG = logging.getLogger(__name__)
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})


class ChangeManager:
    """The archive in one cmroot.

    `new_token` gives a text that nobody else has, for the names of unfinished copies.
    """

    def __init__(
        self,
        config: ChangeManagerConfig,
        resolve: Resolver,
        records: ArchiveManifest,
        clock: Clock,
        new_token: Callable[[], str],
    ) -> None:
        self.config = config
        self.resolve = resolve
        self.cmroot = resolve(config.cmroot)
        self.trash = resolve(config.trash) if config.trash else None
        if self.trash and self.trash.volume is self.cmroot.volume:
            require_outside(self.trash, self.cmroot)
        self._records = records
        self._clock = clock
        self.new_token = new_token
        self._has_attributes: bool | None = None

    @property
    def spared(self) -> tuple[Location, ...]:
        """Directories that are never recycled or deleted."""
        return (self.cmroot, self.trash) if self.trash else (self.cmroot,)

    def _stamp_ms(self) -> int:
        """When something is archived now; a clock that stepped back does not make it older."""
        return stamp_ms(self._clock.now_ms(), self._records.known_times())

    def require_beside(self, place: Location) -> None:
        """Raises ArchiveUnwritableError for a place on another file system, unless it is allowed.

        Hive's recycle renames, so its archive is never elsewhere; what looks so is mostly a path
        without its file system.
        """
        if place.volume is not self.cmroot.volume and not self.config.is_elsewhere_allowed:
            raise ArchiveUnwritableError(
                f"the archive {self.cmroot.uri} (hive.repl.cmrootdir) is on another file system "
                f"than {place.uri}; nothing was deleted. Set hive.repl.cmrootdir to a directory "
                "beside the warehouse, or hms.bridge.cm.other.file.system to true if it is meant",
                self.cmroot.uri,
            )

    def prepare(self) -> None:
        """Make the cmroot if it is not there. Raises ArchiveUnwritableError."""
        try:
            make_archive(self.cmroot)
            why = hindrance(self.cmroot)
            if self._has_attributes is None:
                warn_if_open(self.cmroot)
        except OSError as error:
            raise self._unwritable(error) from error
        if why is not None:
            raise self._unwritable(f"it {why}")
        if self._has_attributes is None:
            self._has_attributes = self.cmroot.volume.keeps_attributes(self.cmroot.path)

    def _unwritable(self, why: object) -> ArchiveUnwritableError:
        advice = "Let it be a directory that this user may write"
        if isinstance(why, OSError) and why.errno in _FULL:
            advice = (
                "Make room on that storage (hms-bridge cm purge removes what nobody needs any more)"
            )
        # Another directory would not have the files that dumps wait for.
        return ArchiveUnwritableError(
            f"cannot archive into {self.cmroot.uri}: {why}; the files stay in their places. "
            f"{advice}, then clean again (hms-bridge cleaner run --now); hive.repl.cmrootdir stays",
            self.cmroot.uri,
        )

    def plan(
        self, path: str, kind: RecycleKind, *, is_purge: bool, root: str
    ) -> tuple[Location, RecyclePlan]:
        """List a path below `root` and choose what to archive; nothing is changed.

        Raises PathNotContainedError, and DirectoryChangedError if the path is not there.
        """
        source = self.resolve(path)
        require_contained(source, self.resolve(root), self.spared)
        if source.status() is None:
            raise DirectoryChangedError(f"{source.uri} is not there any more", source.uri)
        listing = list_tree(source)
        return source, plan_recycle(source.uri, listing, kind=kind, is_purge=is_purge)

    def recycle(
        self,
        path: str,
        kind: RecycleKind,
        *,
        is_purge: bool,
        root: str,
        context: ArchiveContext,
    ) -> RecycleReport:
        """Archive a file, or a directory with everything below, as Hive's recycle does.

        MOVE leaves the empty directories, hidden files and files whose content was archived
        before; who calls deletes them. A crash leaves every file in its place or in the archive.
        """
        source, plan = self.plan(path, kind, is_purge=is_purge, root=root)
        kept = self.keep(
            source,
            self.fingerprint(source, plan.files),
            kind=kind,
            is_remaining_in_trash=plan.is_remaining_in_trash,
            context=context,
        )
        if kind is RecycleKind.MOVE:
            for kept_file in kept:
                if kept_file.placement in {Placement.LINKED, Placement.COPIED}:
                    self._remove_source(source.child(kept_file.file.path))
        return RecycleReport(plan=plan, kept=kept)

    def _remove_source(self, source: Location) -> None:
        with suppress(FileNotFoundError):
            source.volume.remove_file(source.path)

    def fingerprint(self, source: Location, files: Sequence[ListedFile]) -> tuple[IntentFile, ...]:
        """Read files for their checksums and name them. Raises DirectoryChangedError."""
        return tuple(self._fingerprint(source, file) for file in files)

    def _fingerprint(self, source: Location, file: ListedFile) -> IntentFile:
        place = source.child(file.path)
        try:
            checksum = place.checksum()
        except FileNotFoundError as error:
            raise DirectoryChangedError(
                f"{place.uri} vanished while it was read", source.uri, (file.path,)
            ) from error
        except OSError as error:
            raise ChangeManagerError(
                f"cannot read {place.uri} for its checksum: {error}; nothing was archived"
            ) from error
        return IntentFile(
            path=file.path,
            size_bytes=file.size_bytes,
            mtime_ms=file.mtime_ms,
            checksum=checksum,
            archive_name=archive_name(place.name, checksum, self.config.name_length_max),
        )

    def keep(
        self,
        source: Location,
        files: Sequence[IntentFile],
        *,
        kind: RecycleKind,
        is_remaining_in_trash: bool,
        context: ArchiveContext,
        require_lease: Callable[[], None] = never_lost,
    ) -> tuple[KeptFile, ...]:
        """Bring fingerprinted files into the archive: reserved, placed, verified, synced, recorded.

        Afterwards each is in the cmroot; sources are gone only where a rename took them. Raises
        ArchiveBusyError, ArchiveUnwritableError, ArchiveCollisionError, ChecksumMismatchError,
        DirectoryChangedError, ArchivedFileLostError; what was archived until then is recorded,
        the rest is untouched. A source that is gone is fine if its copy is in the archive.
        `require_lease` is called before each file, and raises LeaseLostError.
        """
        if not files:
            return ()
        self.require_beside(source)
        self.prepare()
        at_ms = self._stamp_ms()
        # Before the first file: a purge that was planned already finds the row changed and leaves
        # it.
        self._records.reserve(
            self.cmroot.uri,
            [
                ReservedFile(name=name, checksum=checksum, size_bytes=file.size_bytes)
                for file, name, checksum in map(_named, files)
            ],
            at_ms,
        )
        kept: list[KeptFile] = []
        above = DirectoriesAbove()
        try:
            for file in files:
                require_lease()
                placement = self._keep_one(
                    source.child(file.path), file, kind, is_remaining_in_trash, at_ms, above
                )
                kept.append(KeptFile(file=file, placement=placement))
        except LeaseLostError:  # the rest is reserved for who took over, too
            self._record(source, kept, is_remaining_in_trash, context, at_ms)
            raise
        except ChangeManagerError:
            self._record(source, kept, is_remaining_in_trash, context, at_ms)
            done = {kept_file.file.archive_name for kept_file in kept}
            names = {name for _, name, _ in map(_named, files)}
            # Nobody goes on with the rest: its rows would stay without files.
            self._records.withdraw(self.cmroot.uri, names - done)
            raise
        self._record(source, kept, is_remaining_in_trash, context, at_ms)
        return tuple(kept)

    def _record(
        self,
        source: Location,
        kept: Sequence[KeptFile],
        is_remaining_in_trash: bool,
        context: ArchiveContext,
        at_ms: int,
    ) -> None:
        if not kept:
            return
        # On the disk before a row says so: sources are deleted on its word.
        settle_names(self.cmroot.volume, self.cmroot.path)
        self._records.record_archived(
            self.cmroot.uri,
            [
                ArchivedFile(
                    name=name,
                    origin=ArchiveOrigin(
                        uri=source.child(file.path).uri,
                        directory=directory_below(source.child(file.path), context.location),
                        context=context,
                        archived_at_ms=at_ms,
                    ),
                    is_remaining_in_trash=is_remaining_in_trash,
                )
                for file, name, _ in map(_named, [kept_file.file for kept_file in kept])
            ],
            at_ms,
        )
        for kept_file in kept:
            if kept_file.is_new:
                log_deed(
                    _LOG,
                    "archived",
                    path=source.child(kept_file.file.path).uri,
                    name=kept_file.file.archive_name,
                    cmroot=self.cmroot.uri,
                    bytes=kept_file.file.size_bytes,
                    **context.facts,
                )

    def _keep_one(
        self,
        source: Location,
        file: IntentFile,
        kind: RecycleKind,
        is_remaining_in_trash: bool,
        at_ms: int,
        above: DirectoriesAbove,
    ) -> Placement | None:
        _, name, checksum = _named(file)
        target = self.cmroot.child(name)
        placement: Placement | None = None
        try:
            if target.status() is None:
                self._require_size(source, file)
                # Somebody may archive the same content at this moment; then it is compared below.
                with suppress(FileExistsError):
                    placement = self._bring(source, target, checksum, kind, at_ms, above)
            if placement is None:
                self._require_same(source, target, file, checksum)
                self._touch(target, at_ms)
            self._tag(source, target, is_remaining_in_trash)
        except OSError as error:
            if source.status() is None and target.status() is None:
                raise ArchivedFileLostError(
                    f"{source.uri} is gone and {target.uri} is not there: someone else took it "
                    "away before it was archived",
                    (source.uri,),
                ) from error
            raise self._unwritable(error) from error
        return placement

    def _bring(
        self,
        source: Location,
        target: Location,
        checksum: str,
        kind: RecycleKind,
        at_ms: int,
        above: DirectoriesAbove,
    ) -> Placement:
        """Give a file its name in the archive. FileExistsError if the name came into being."""
        directories = above.of(source)
        # A copy inside an object store has bytes of its own, so it serves COPY as well.
        if kind is RecycleKind.COPY and source.volume.capabilities.has_atomic_rename:
            copy_verified(source, target, checksum, self.new_token, directories)
            self._touch(target, at_ms)
            return Placement.COPIED
        # Before it is there: a purge by Hive goes by the modification time alone.
        self._touch(source, at_ms)
        placement = give_new_name(source, target, checksum, self.new_token, directories)
        if placement is Placement.COPIED:
            self._touch(target, at_ms)
        return placement

    def _require_same(
        self, source: Location, target: Location, file: IntentFile, checksum: str
    ) -> None:
        """What has the name in the archive is the same content."""
        status = target.status()
        is_same = (
            status is not None
            and status.kind is FileKind.FILE
            and status.size_bytes == file.size_bytes
            and target.checksum_like(checksum) == checksum
        )
        if not is_same:
            raise ArchiveCollisionError(
                f"{target.uri} has other content than {source.uri}, which stays in its place: "
                "check the archived file and move it away, then try again",
                source=source.uri,
                archived=target.uri,
            )

    def _require_size(self, source: Location, file: IntentFile) -> None:
        """A source that is there is as long as it was when it was read."""
        status = source.status()
        if status is not None and status.size_bytes != file.size_bytes:
            raise DirectoryChangedError(
                f"{source.uri} has {status.size_bytes} bytes, not {file.size_bytes} as planned; "
                "it was not archived: plan again",
                source.uri,
                (file.path,),
            )

    def _touch(self, place: Location, at_ms: int) -> None:
        """Start the retention that a Hive beside us sees."""
        if place.volume.capabilities.can_set_mtime:
            place.volume.set_mtime(place.path, at_ms)

    def _tag(self, source: Location, target: Location, is_remaining_in_trash: bool) -> None:
        if not self._has_attributes:
            return
        volume = target.volume
        if volume.attribute(target.path, ORIGINAL_LOCATION) is None:
            volume.set_attribute(target.path, ORIGINAL_LOCATION, source.uri.encode())
        if is_remaining_in_trash:
            volume.set_attribute(target.path, REMAIN_IN_TRASH, b"\0")


def _named(file: IntentFile) -> tuple[IntentFile, str, str]:
    """A file that is to be archived, its name and its checksum."""
    if file.archive_name is None or file.checksum is None:
        raise ChangeManagerError(f"{file.path} has no checksum and cannot be archived")
    return file, file.archive_name, file.checksum


def directory_below(file: Location, table: str | None) -> str:
    """The directory of a file below its table, such as `delta_1_1`; empty if it is not below."""
    if table is None:
        return ""
    above, outer = parse_uri(file.parent.uri).path, parse_uri(table).path
    return above[len(outer) :].strip("/") if is_within(above, outer) else ""
