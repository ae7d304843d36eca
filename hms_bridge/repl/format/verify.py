"""Prove that every file of a dump can still be had, before anything is loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from changemanager.errors import OutsideRootsError
from changemanager.location import Resolver
from changemanager.whereabouts import Whereabouts, locate
from hms_bridge.acid.names import DirectoryName
from hms_bridge.errors import SourceFileMissingError
from hms_bridge.model.counted import counted
from hms_bridge.model.ids import EventId
from hms_bridge.model.target import Target
from hms_bridge.repl.file_pool import FilePool
from hms_bridge.repl.format.dump_metadata import DumpType
from hms_bridge.repl.format.layout import DumpPaths
from hms_bridge.repl.format.reader import DumpedFunction, DumpedTable, DumpReader
from hms_bridge.repl.format.untrusted import DumpedFile, DumpRules
from hms_bridge.repl.remedies import begin_anew, bring_anew

_NAMED_IN_MESSAGE = 5
_TYPES_WITH_FILES = frozenset({DumpType.CREATE_TABLE.value, DumpType.ADD_PARTITION.value})


class Reading(Enum):
    """Of which files the bytes are read to see whether they are what a dump names."""

    ALL = "all"
    WHERE_NAMES_ARE_USED_AGAIN = "where names are used again"
    """Directories of ACID tables have a number that is given once, so a file there of the right
    name is the right one, or damaged; elsewhere an INSERT OVERWRITE writes the old names anew.
    Where the file system keeps checksums nothing needs to be read: there all are compared."""
    NONE = "none"

    def is_asked(self, file: DumpedFile, *, has_native_checksum: bool) -> bool:
        """Whether a file's bytes, or its file system's checksum of them, are to be looked at."""
        if self is not Reading.WHERE_NAMES_ARE_USED_AGAIN or has_native_checksum:
            return self is not Reading.NONE
        return DirectoryName.parse(file.sub_directory.partition("/")[0]) is None


@dataclass(frozen=True, kw_only=True, slots=True)
class NamedFile:
    """A file that a dump names, and what for: a table or partition, or a function.
    ``event_id`` None: a bootstrap dump."""

    file: DumpedFile
    target: Target
    event_id: EventId | None
    is_of_function: bool = False


SourcesFor = Callable[[DumpReader, Sequence[NamedFile]], Resolver]
"""What resolves the places that may be looked at, of a dump and the files that it names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifiedFile:
    """The verdict on one file. ``size_bytes`` None: not found, and no list of a dump has sizes.

    ``expires_at_ms``: when a purge may take it from the archive, if its retention is known.
    ``outside``: places where it may be, and nobody may look.
    """

    named: NamedFile
    place: Whereabouts
    size_bytes: int | None
    archived_at_ms: int | None = None
    expires_at_ms: int | None = None
    reason: str = ""
    outside: tuple[str, ...] = ()

    @property
    def is_found(self) -> bool:
        """Whether a load gets it."""
        return self.place not in (Whereabouts.MISSING, Whereabouts.NOT_LOOKED_FOR)


@dataclass(frozen=True, kw_only=True, slots=True)
class VerifyReport:
    """The verdict on a dump: one entry for each file that it names."""

    directory: str
    dump_type: str
    files: tuple[VerifiedFile, ...]

    def count(self, place: Whereabouts) -> int:
        """How many files are there."""
        return sum(file.place is place for file in self.files)

    @property
    def missing(self) -> tuple[VerifiedFile, ...]:
        """Files that nobody can bring back."""
        return tuple(file for file in self.files if file.place is Whereabouts.MISSING)

    @property
    def unlooked(self) -> tuple[VerifiedFile, ...]:
        """Files that were found nowhere, and that may be where nobody may look."""
        return tuple(file for file in self.files if file.place is Whereabouts.NOT_LOOKED_FOR)

    @property
    def unfound(self) -> tuple[VerifiedFile, ...]:
        """Both: files that a load does not get."""
        return self.missing + self.unlooked

    @property
    def size_bytes(self) -> int:
        """What a load has to copy, without what was not found."""
        return sum(file.size_bytes or 0 for file in self.files)

    @property
    def foreign_archives(self) -> tuple[str, ...]:
        """Archives that hold files of the dump for a time that only their owners know."""
        return tuple(
            sorted(
                {
                    file.named.file.cmroot or ""
                    for file in self.files
                    if file.place is Whereabouts.IN_CM and file.expires_at_ms is None
                }
            )
        )

    @property
    def load_before_ms(self) -> int | None:
        """Until when a load finds everything, if nobody pins the archive; None: no such limit."""
        return min((file.expires_at_ms for file in self.files if file.expires_at_ms), default=None)

    @property
    def exit_code(self) -> int:
        """1 if any file is missing, 3 if any was not looked for."""
        if self.missing:
            return 1
        return 3 if self.unlooked else 0

    def _way_out(self, target_database: str | None) -> str:
        lost = [file.named for file in self.unfound]
        source = lost[0].target.database
        has_function = any(named.is_of_function for named in lost)
        if has_function or self.dump_type == DumpType.BOOTSTRAP.value:
            return begin_anew(source, target_database)
        return bring_anew(source, sorted({named.target.table for named in lost}), target_database)

    def require_complete(self, target_database: str | None = None) -> None:
        """Raises SourceFileMissingError unless each file was found, with the commands that lead
        on."""
        lost = self.unfound
        if not lost:
            return
        named = [f"{file.named.file.uri} ({file.reason})" for file in lost[:_NAMED_IN_MESSAGE]]
        more = len(lost) - len(named)
        tail = f"; and {more} more" if more else ""
        raise SourceFileMissingError(
            f"lost of {self.directory}: {len(lost)} of {counted(len(self.files), 'file')}: "
            f"{'; '.join(named)}{tail}. Nothing was changed on the target. Bring the files back "
            f"and load again, and raise hive.repl.cm.retain. {self._way_out(target_database)}",
            missing=tuple(file.named.file.uri for file in lost),
        )


def verify_dump(
    resolve: Resolver,
    directory: str,
    *,
    retain_ms: int | None = None,
    own_archive: str | None = None,
    rules: DumpRules | None = None,
    sources_for: SourcesFor | None = None,
    is_quick: bool = False,
    on_looked: Callable[[VerifiedFile], None] = lambda _: None,
) -> VerifyReport:
    """Look for every file of a dump. ``directory`` is the dump's own, above ``hive/``.

    ``retain_ms`` is the retention of ``own_archive``; that of another one is not known. None: of
    every archive. ``sources_for`` gives what resolves the places that may be looked at; None: all
    that the dump names. ``on_looked`` is given each verdict. Changes nothing. Raises
    DumpIncompleteError for an unfinished dump, ReplError for a damaged one.
    """
    reader = DumpReader(resolve, DumpPaths(resolve(directory).uri), rules or DumpRules())
    return verify_reader(
        resolve,
        reader,
        sources_for=sources_for,
        retain_ms=retain_ms,
        own_archive=own_archive,
        reading=Reading.NONE if is_quick else Reading.ALL,
        on_looked=on_looked,
    )


def verify_reader(
    resolve: Resolver,
    reader: DumpReader,
    *,
    sources_for: SourcesFor | None = None,
    after: EventId | None = None,
    retain_ms: int | None = None,
    own_archive: str | None = None,
    reading: Reading = Reading.ALL,
    on_looked: Callable[[VerifiedFile], None] = lambda _: None,
) -> VerifyReport:
    """The same for an open dump; events up to ``after`` are left out, as they are loaded."""
    reader.check_texts()
    all_named = tuple(named_files(reader, after))
    places = resolve if sources_for is None else sources_for(reader, all_named)
    own = None if own_archive is None else resolve(own_archive).uri
    first: dict[_Key, NamedFile] = {}
    for named in all_named:
        first.setdefault(_key(named), named)

    def look(named: NamedFile) -> VerifiedFile:
        cmroot = named.file.cmroot
        is_known = own is None or cmroot is None or _uri(places, cmroot) == own
        return _verdict(places, named, retain_ms if is_known else None, reading)

    seen: dict[_Key, VerifiedFile] = {}
    with FilePool() as pool:
        for key, verdict in zip(first, pool.each(look, first.values()), strict=True):
            seen[key] = verdict
            on_looked(verdict)
    files = [replace(seen[_key(named)], named=named) for named in all_named]
    return VerifyReport(
        directory=reader.paths.root, dump_type=reader.metadata.type, files=tuple(files)
    )


def _uri(sources: Resolver, cmroot: str) -> str | None:
    """Of an archive that may be looked at; nothing connects to another one."""
    try:
        return sources(cmroot).uri
    except OutsideRootsError:
        return None


_Key = tuple[str, str | None, str | None]


def _key(named: NamedFile) -> _Key:
    return named.file.uri, named.file.checksum, named.file.cmroot


def _verdict(
    sources: Resolver, named: NamedFile, retain_ms: int | None, reading: Reading
) -> VerifiedFile:
    is_read = reading.is_asked(named.file, has_native_checksum=_has_checksum(sources, named.file))
    located = locate(named.file.encoded, sources, is_content_checked=is_read)
    archived_at_ms = None
    if located.whereabouts is Whereabouts.IN_CM and located.location is not None:
        # The archive sets a file's time as it takes it, and the purge goes by that time
        # (docs/hive/replication.md §4, §6).
        status = located.location.status()
        archived_at_ms = None if status is None else status.mtime_ms
    expires = None if archived_at_ms is None or retain_ms is None else archived_at_ms + retain_ms
    return VerifiedFile(
        named=named,
        place=Whereabouts.NOT_LOOKED_FOR if located.outside else located.whereabouts,
        size_bytes=located.size_bytes,
        archived_at_ms=archived_at_ms,
        expires_at_ms=expires,
        reason=located.reason,
        outside=located.outside,
    )


def _has_checksum(sources: Resolver, file: DumpedFile) -> bool:
    """Whether its file system has checksums of its own; one that may not be read counts as none."""
    try:
        return sources(file.uri).volume.capabilities.has_native_checksum
    except OutsideRootsError:
        return False


def named_files(reader: DumpReader, after: EventId | None = None) -> Iterator[NamedFile]:
    """Every file that a dump names, in the order of the dump."""
    if reader.is_bootstrap:
        for name in reader.table_names():
            yield from _files_of((reader.table(name),), None)
        for function in reader.functions():
            yield from _files_of_function(function, None)
        return
    for event in reader.events():
        if after is not None and event.id <= after:
            continue
        if event.type == DumpType.COMMIT_TXN.value:
            yield from _files_of(reader.commit_tables(event), event.id)
        elif event.type in _TYPES_WITH_FILES:
            yield from _files_of((reader.event_table(event),), event.id)
        elif event.type == DumpType.CREATE_FUNCTION.value and _is_wanted(reader, event.type):
            yield from _files_of_function(reader.event_function(event), event.id)
    yield from _files_of(reader.tables_anew(), None)


def _is_wanted(reader: DumpReader, event_type: str) -> bool:
    return event_type not in reader.rules.passed_kinds


def _files_of_function(dumped: DumpedFunction, event_id: EventId | None) -> Iterator[NamedFile]:
    function = dumped.function
    for file in dumped.files:
        target = Target(function.database_name, function.name)
        yield NamedFile(file=file, target=target, event_id=event_id, is_of_function=True)


def _files_of(tables: Iterable[DumpedTable], event_id: EventId | None) -> Iterator[NamedFile]:
    for dumped in tables:
        groups = [(None, dumped.files), *((part.name, part.files) for part in dumped.partitions)]
        for partition_name, files in groups:
            for file in files:
                yield NamedFile(
                    file=file,
                    target=Target(dumped.table.database_name, dumped.table.name, partition_name),
                    event_id=event_id,
                )
