"""Copy a dumped file to the target: verified before it gets its name, the same when repeated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from changemanager.durable import settle_names
from changemanager.errors import ChecksumMismatchError
from changemanager.filesystem.volume import FileKind
from changemanager.location import Location, Resolver
from changemanager.transfer import PART_PREFIX, copy_verified
from changemanager.whereabouts import Whereabouts, locate
from hms_bridge.acid.markers import METADATA_FILE, DataFormat, format_metadata
from hms_bridge.acid.names import DirectoryName
from hms_bridge.errors import ReplError, SourceFileMissingError
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.format.texts import ensure_content
from hms_bridge.repl.format.untrusted import DumpedFile

_ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyReport:
    """What was copied. ``kept`` files were already there with the same bytes."""

    source_files: int = 0
    archive_files: int = 0
    kept: int = 0
    bytes: int = 0

    def __add__(self, other: CopyReport) -> CopyReport:
        return CopyReport(
            source_files=self.source_files + other.source_files,
            archive_files=self.archive_files + other.archive_files,
            kept=self.kept + other.kept,
            bytes=self.bytes + other.bytes,
        )


class Copier:
    """Brings dumped files below a table's or partition's directory.

    ``on_copied`` is told bytes as they are read or found there, from several threads, and a
    negative number where a copy begins again. ``before_each`` is called before a file is touched,
    and may raise. ``pace`` is told each piece that was read, and returns when more may be.
    """

    def __init__(
        self,
        resolve: Resolver,
        on_copied: Callable[[int], None] = lambda _: None,
        before_each: Callable[[], None] = lambda: None,
        pace: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._resolve = resolve
        self._on_copied = on_copied
        self.before_each = before_each
        self._pace = pace
        self._is_stopped = False

    def copy_all(self, files: tuple[DumpedFile, ...], root: Location) -> CopyReport:
        """Copy files below ``root``; see :meth:`copy_groups`."""
        return self.copy_groups([(files, root)])

    def copy_groups(self, groups: Sequence[tuple[tuple[DumpedFile, ...], Location]]) -> CopyReport:
        """Copy files below the root of each group, several at once; afterwards all are there,
        whole, under their own names.

        A base that a compactor made loses its visibility suffix on the way, so its marker says
        what it is: else a reader would judge it by the write id that it ends at. Raises
        SourceFileMissingError, or ReplError where the target holds other bytes under the name.
        """
        report = CopyReport()
        with FilePool() as pool, self._stopping():
            directories = tuple(
                directory for made in pool.each(_prepare, groups) for directory in made
            )
            for copied in pool.each(self._copy_one, self._checked(groups)):
                report += copied
            pool.all(_sync, directories)
        return report

    @contextmanager
    def _stopping(self) -> Iterator[None]:
        """Files that are half copied when the block fails stop at their next piece: the largest, or
        a throttle, would else keep the load from its end for hours."""
        self._is_stopped = False
        try:
            yield
        except BaseException:
            self._is_stopped = True
            raise

    def _checked(
        self, groups: Sequence[tuple[tuple[DumpedFile, ...], Location]]
    ) -> Iterator[tuple[DumpedFile, Location]]:
        for files, root in groups:
            for file in files:
                self.before_each()
                yield file, root.child(file.relative_path)

    def _copy_one(self, wanted: tuple[DumpedFile, Location]) -> CopyReport:
        return self._copy(*wanted)

    def _copy(self, file: DumpedFile, target: Location) -> CopyReport:
        _remove_if_there(target.parent.child(PART_PREFIX + target.name))
        if target.status() is not None:
            return self._keep(file, target)
        for attempt in range(_ATTEMPTS):
            located = locate(file.encoded, self._resolve, is_content_checked=attempt > 0)
            if located.location is None:
                raise SourceFileMissingError(
                    f"{file.uri} is lost: {located.reason}. Bring it back, then load again; if "
                    "that cannot be, the load names the way out before it changes anything",
                    missing=(file.uri,),
                )
            progress = _FileProgress(self._on_read)
            try:
                copy_verified(
                    located.location, target, file.checksum, lambda: target.name, progress.read
                )
            except (ChecksumMismatchError, FileNotFoundError):
                self._on_copied(-progress.bytes)
                continue
            is_archived = located.whereabouts is Whereabouts.IN_CM
            return CopyReport(
                source_files=int(not is_archived),
                archive_files=int(is_archived),
                bytes=progress.bytes,
            )
        raise ReplError(
            f"{file.uri}: its bytes changed while it was copied, {_ATTEMPTS} times; load again"
        )

    def _on_read(self, size_bytes: int) -> None:
        if self._is_stopped:
            raise InterruptedError("the copy was stopped, as another one failed")
        self._on_copied(size_bytes)
        self._pace(size_bytes)

    def _keep(self, file: DumpedFile, target: Location) -> CopyReport:
        status = target.status()
        if status is not None and status.kind is FileKind.FILE:
            expected = file.checksum or self._resolve(file.uri).checksum()
            if target.checksum_like(expected) == expected:
                self._on_copied(status.size_bytes)
                return CopyReport(kept=1, bytes=status.size_bytes)
        raise ReplError(
            f"{target.uri} is there with other content than {file.uri}; somebody wrote to the "
            "replica. Move it away if it is not wanted, then load again"
        )


class _FileProgress:
    """How many bytes of one file were read."""

    def __init__(self, on_read: Callable[[int], None]) -> None:
        self._on_read = on_read
        self.bytes = 0

    def read(self, size_bytes: int) -> None:
        """Some more."""
        self.bytes += size_bytes
        self._on_read(size_bytes)


def _prepare(group: tuple[tuple[DumpedFile, ...], Location]) -> tuple[Location, ...]:
    """Make the directories of a group, and the markers of its bases."""
    files, root = group
    directories = tuple(root.child(name) for name in sorted({file.sub_directory for file in files}))
    for directory in directories:
        directory.volume.make_directory(directory.path)
    for base in _compacted_bases(files):
        marker = root.child(base).child(METADATA_FILE)
        ensure_content(marker, format_metadata(DataFormat.COMPACTED))
    return directories


def _compacted_bases(files: tuple[DumpedFile, ...]) -> Iterator[str]:
    directories = {file.sub_directory.partition("/")[0] for file in files if file.is_compacted}
    for directory in sorted(directories):
        name = DirectoryName.parse(directory)
        if name is not None and name.is_base:
            yield directory


def _remove_if_there(location: Location) -> None:
    if location.status() is not None:
        location.volume.remove_file(location.path)


def _sync(directory: Location) -> None:
    settle_names(directory.volume, directory.path)
