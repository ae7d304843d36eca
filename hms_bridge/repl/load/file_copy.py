"""Copy one dumped file to the target: verified before it gets its name, the same when repeated.

Threads of a load and tasks of a Spark job copy by this code; it needs neither a database nor
thrift.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from uuid import uuid4

from changemanager.directories_above import DirectoriesAbove
from changemanager.errors import ChecksumMismatchError, LocationError
from changemanager.filesystem.permissions import Permissions
from changemanager.filesystem.volume import FileKind
from changemanager.location import Location, Resolver
from changemanager.transfer import copy_verified
from changemanager.whereabouts import LocatedFile, Whereabouts, locate
from hms_bridge.errors import ReplError, SourceFileMissingError
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.load.full_storage import naming_full_storage

_ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyReport:
    """What was copied. ``kept`` files were already there with the same bytes. ``by_job``: of all
    files those that a job of other processes looked after."""

    source_files: int = 0
    archive_files: int = 0
    kept: int = 0
    bytes: int = 0
    by_job: int = 0

    def __add__(self, other: CopyReport) -> CopyReport:
        return CopyReport(
            source_files=self.source_files + other.source_files,
            archive_files=self.archive_files + other.archive_files,
            kept=self.kept + other.kept,
            bytes=self.bytes + other.bytes,
            by_job=self.by_job + other.by_job,
        )

    @property
    def copied_files(self) -> int:
        """From wherever they were."""
        return self.source_files + self.archive_files

    @property
    def files(self) -> int:
        """How many files are there now."""
        return self.copied_files + self.kept


@dataclass(frozen=True, kw_only=True, slots=True)
class FileCopy:
    """Copies files whose directories are there. ``sources`` resolves what the load may read.

    ``turn`` is given a file's size and its place, and what is done in its block copies it.
    ``on_copied`` is given bytes as they are read or found there, and a negative number where a copy
    begins again. ``on_read`` is given each piece that was read, before ``on_copied``; what it
    raises stops the copy. ``pace`` is given it, too, and returns when more may be read.
    """

    sources: Resolver
    turn: Callable[[int, Location], AbstractContextManager[None]] = lambda *_: nullcontext()
    on_copied: Callable[[int], None] = lambda _: None
    on_read: Callable[[int], None] = lambda _: None
    pace: Callable[[int], None] = lambda _: None
    above: DirectoriesAbove = field(default_factory=DirectoriesAbove)

    def __call__(self, file: DumpedFile, target: Location) -> CopyReport:
        """Afterwards the file is there, whole, under its own name.

        Raises SourceFileMissingError, or ReplError where the target holds other bytes under the
        name.
        """
        for attempt in range(_ATTEMPTS):
            if target.status() is not None:
                return self._keep(file, target)
            located = locate(file.encoded, self.sources, is_content_checked=attempt > 0)
            if located.location is None:
                raise SourceFileMissingError(
                    f"{file.uri} is lost: {located.reason}. Bring it back, then load again; if "
                    "that cannot be, the load names the way out before it changes anything",
                    missing=(file.uri,),
                )
            progress = _FileProgress(self)
            try:
                with naming_full_storage(target), self.turn(located.size_bytes or 0, target):
                    copy_verified(
                        located.location,
                        target,
                        file.checksum,
                        _part_name,
                        self._directories(file, located),
                        progress.read,
                    )
            # There already: of a load that lost its lease while it copied the same file.
            except (ChecksumMismatchError, FileNotFoundError, FileExistsError):
                self.on_copied(-progress.bytes)
                continue
            except OSError:
                self.on_copied(-progress.bytes)  # what was written of it is removed
                raise
            is_archived = located.whereabouts is Whereabouts.IN_CM
            return CopyReport(
                source_files=int(not is_archived),
                archive_files=int(is_archived),
                bytes=progress.bytes,
            )
        raise ReplError(
            f"{file.uri}: its bytes changed while it was copied, {_ATTEMPTS} times; load again"
        )

    def _directories(self, file: DumpedFile, located: LocatedFile) -> Iterable[Permissions]:
        """Those above the file at its source, of an archived one as far as they are still there:
        the archive's own say nothing of who could read it."""
        try:
            return self.above.of(self.sources(file.uri))
        except (LocationError, OSError):
            if located.whereabouts is not Whereabouts.IN_CM:
                raise
            return ()  # nobody may look there, or can; our cleaner archived it with a narrow mode

    def _keep(self, file: DumpedFile, target: Location) -> CopyReport:
        status = target.status()
        if status is not None and status.kind is FileKind.FILE:
            expected = file.checksum or self.sources(file.uri).checksum()
            if target.checksum_like(expected) == expected:
                self.on_copied(status.size_bytes)
                return CopyReport(kept=1, bytes=status.size_bytes)
        raise ReplError(
            f"{target.uri} is there with other content than {file.uri}; somebody wrote to the "
            "replica. Move it away if it is not wanted, then load again"
        )


class _FileProgress:
    """How many bytes of one file were read."""

    def __init__(self, copy: FileCopy) -> None:
        self._copy = copy
        self.bytes = 0

    def read(self, size_bytes: int) -> None:
        """Some more."""
        self._copy.on_read(size_bytes)
        self.bytes += size_bytes
        self._copy.on_copied(size_bytes)
        self._copy.pace(size_bytes)


def _part_name() -> str:
    """Of one try alone: a load that lost its lease, or a Spark task that counts as dead, may still
    write its own, and must not give the name to half of another one's."""
    return str(uuid4())
