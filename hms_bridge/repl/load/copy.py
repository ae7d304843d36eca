"""Copy dumped files to the target, those of all tables in one pool; publish what is whole."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from changemanager.durable import settle_names
from changemanager.location import Location, Resolver
from changemanager.transfer import PART_PREFIX
from hms_bridge.acid.markers import METADATA_FILE, DataFormat, format_metadata
from hms_bridge.acid.names import DirectoryName
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.format.texts import ensure_content
from hms_bridge.repl.format.untrusted import DumpedFile
from hms_bridge.repl.load.file_copy import CopyReport, FileCopy
from hms_bridge.repl.load.full_storage import naming_full_storage
from hms_bridge.repl.load.large_files import LargeFiles

CopyPlace = tuple[tuple[DumpedFile, ...], Location]
"""Files, and the directory of the table or partition below which they go."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyGroup:
    """Files that are published together: those of a table, or of some of its partitions.

    ``publish`` is called by the thread that copies the groups, once all files are there, whole,
    under names that a loss of power does not take.
    """

    places: tuple[CopyPlace, ...]
    publish: Callable[[], None] = lambda: None


class Copies(Protocol):
    """What brings dumped files below directories of tables and partitions."""

    def before_each(self) -> None:
        """Called before a file is touched; may raise."""
        ...

    def copy(self, groups: Iterable[CopyGroup]) -> CopyReport:
        """Copy the files of each group, and publish it once they are there, whole.

        Groups are taken, and published, by the caller's thread, and only so far ahead that what is
        in memory does not grow with them. A base that a compactor made loses its visibility suffix
        on the way, so its marker says what it is: else a reader would judge it by the write id that
        it ends at. Raises SourceFileMissingError, or ReplError where the target holds other bytes
        under the name; nothing more is published then.
        """
        ...


class Copier:
    """Threads of this process. ``sources`` resolves what the load may read.

    ``on_copied`` is given bytes as they are read or found there, from several threads, and a
    negative number where a copy begins again. ``before_each`` is called before a file is touched,
    and may raise. ``pace`` is given each piece that was read, and returns when more may be.
    """

    def __init__(
        self,
        sources: Resolver,
        on_copied: Callable[[int], None] = lambda _: None,
        before_each: Callable[[], None] = lambda: None,
        pace: Callable[[int], None] = lambda _: None,
    ) -> None:
        self._before_each = before_each
        self._copy_file = FileCopy(
            sources=sources,
            turn=LargeFiles().turn,
            on_copied=on_copied,
            on_read=self._stop_if_told,
            pace=pace,
        )
        self._is_stopped = False

    def copy(self, groups: Iterable[CopyGroup]) -> CopyReport:
        """As :meth:`Copies.copy`: several files at once, those of later groups while the largest of
        earlier ones are on their way. Groups are published in any order."""
        report = CopyReport()
        with FilePool() as pool, self._stopping():
            for wanted, copied in pool.as_done(self._copy_one, self._wanted(groups)):
                report += copied
                wanted.group.has_one_more()
        return report

    def before_each(self) -> None:
        """See :meth:`Copies.before_each`."""
        self._before_each()

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

    def _wanted(self, groups: Iterable[CopyGroup]) -> Iterator[_WantedFile]:
        for group in groups:
            count = sum(len(files) for files, _ in group.places)
            waiting = _WaitingGroup(group, count)
            for directory, files in directories_of(group.places):
                for file in files:
                    self._before_each()
                    yield _WantedFile(file=file, directory=directory, group=waiting)
            if not count:
                group.publish()

    def _copy_one(self, wanted: _WantedFile) -> CopyReport:
        directory = wanted.directory
        with naming_full_storage(directory.place):
            directory.make()
        report = self._copy_file(wanted.file, directory.place.child(wanted.file.name))
        with naming_full_storage(directory.place):
            directory.has_one_more()
        return report

    def _stop_if_told(self, _: int) -> None:
        if self._is_stopped:
            raise InterruptedError("the copy was stopped, as another one failed")


class _WaitingGroup:
    """A group whose files are on their way."""

    def __init__(self, group: CopyGroup, count: int) -> None:
        self._group = group
        self._missing = count

    def has_one_more(self) -> None:
        """A file is there; after the last the group is published."""
        self._missing -= 1
        if not self._missing:
            self._group.publish()


class TargetDirectory:
    """A directory that files go to: made before the first of them comes, settled after the last.
    For several threads.

    ``base``: that of a compactor in which it lies, or which it is.
    """

    def __init__(self, place: Location, base: Location | None, count: int) -> None:
        self.place = place
        self._base = base
        self._missing = count
        self._is_made = False
        self._lock = threading.Lock()

    def make(self) -> None:
        """Make it with its marker; what copies that were killed have left of a file goes."""
        with self._lock:
            if self._is_made:
                return
            volume = self.place.volume
            volume.make_directory(self.place.path)
            # Where an object store has no directories, one without files is not there.
            with suppress(FileNotFoundError):
                for child in volume.children(self.place.path):
                    if child.name.startswith(PART_PREFIX):
                        volume.remove_file(self.place.child(child.name).path)
            if self._base is not None:
                content = format_metadata(DataFormat.COMPACTED)
                ensure_content(self._base.child(METADATA_FILE), content)
            self._is_made = True

    def has_one_more(self) -> None:
        """A file is there under its name; after the last all names are brought to the disk."""
        with self._lock:
            self._missing -= 1
            is_whole = not self._missing
        if is_whole:
            settle_names(self.place.volume, self.place.path)


@dataclass(frozen=True, kw_only=True, slots=True)
class _WantedFile:
    file: DumpedFile
    directory: TargetDirectory
    group: _WaitingGroup


def directories_of(
    places: Iterable[CopyPlace],
) -> Iterator[tuple[TargetDirectory, tuple[DumpedFile, ...]]]:
    """The directories that files go to, with their files; one that several places name, once."""
    by_place: dict[str, tuple[Location, list[DumpedFile]]] = {}
    marked: dict[str, Location] = {}
    for files, root in places:
        bases = _compacted_bases(files)
        for file in files:
            place = root.child(file.sub_directory) if file.sub_directory else root
            base = file.sub_directory.partition("/")[0]
            if base in bases:
                marked[place.uri] = root.child(base)
            by_place.setdefault(place.uri, (place, []))[1].append(file)
    for uri, (place, files_there) in by_place.items():
        yield TargetDirectory(place, marked.get(uri), len(files_there)), tuple(files_there)


def _compacted_bases(files: tuple[DumpedFile, ...]) -> frozenset[str]:
    names = {file.sub_directory.partition("/")[0] for file in files if file.is_compacted}
    parsed = {name: DirectoryName.parse(name) for name in names}
    return frozenset(name for name, base in parsed.items() if base is not None and base.is_base)
