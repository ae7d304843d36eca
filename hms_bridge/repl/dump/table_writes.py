"""What the source still has of single writes to a table: their directories, or archived files.

A write's own directories go when a compaction has rewritten them and a cleaner came by. The archive
then has the files, and its manifest knows where they were. Where neither shows anything, the write
either put no files there (ALTER, ADD PARTITION, an UPDATE without a match), or its files were taken
away by a cleaner that does not record. The first is proven

* if nothing compacted stands there that covers the write id; nothing was taken away then;
* if what covers it was not cleaned after yet, as the compaction queue says;
* if the manifest has other files that the same clean-up took away: it would have this write's too.

Else it stays unknown. What wrote no file may have been an INSERT OVERWRITE with an empty result
all the same (``emptied``): it is taken for one where older rows went after it and the compacted
base that covers it has none either. Directories are listed first, then transactions, queue, open
intents and entries of the manifest are read, in this order: a cleaner makes an intent, moves the
file, records it and closes the intent, so what the list lacks is in one of those that are read
later.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from changemanager.filesystem.volume import FileKind
from changemanager.location import Location, Resolver, path_below
from changemanager.manifest import ArchiveCause, ArchiveEntry, ArchiveManifest, IntentState
from changemanager.uri import EncodedUri
from hms_bridge.acid.markers import METADATA_FILE, DataFormat, parse_metadata
from hms_bridge.acid.names import DirectoryName, is_hidden
from hms_bridge.errors import AcidFormatError
from hms_bridge.metastore import Metastore
from hms_bridge.model.catalog import Partition, Table
from hms_bridge.model.compaction import Compaction, CompactionState, ShowCompactionsRequest
from hms_bridge.model.ids import WriteId
from hms_bridge.model.partition_name import partition_name
from hms_bridge.model.target import Scope
from hms_bridge.repl.dump.external import places_of
from hms_bridge.repl.dump.partition_changes import PartitionKey, partition_key
from hms_bridge.repl.format.data_tree import visible_files
from hms_bridge.repl.format.emptied import is_emptied, oldest_row
from hms_bridge.repl.format.texts import read_text

_CLOCKS_APART_MS = 60_000
_MARKER_BYTES_MAX = 1 << 16
_NOT_CLEANED = frozenset({CompactionState.WORKING, CompactionState.READY_FOR_CLEANING})
_ENDED_BY_CLEANER = frozenset({CompactionState.SUCCEEDED, CompactionState.FAILED})


@dataclass(frozen=True, kw_only=True, slots=True)
class Archive:
    """The archive that dumps name. Without ``manifest`` nobody knows where its files came from."""

    cmroot: str | None
    manifest: ArchiveManifest | None = None

    @property
    def is_known(self) -> bool:
        """Whether one can look for files by where they were."""
        return self.cmroot is not None and self.manifest is not None


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenFiles:
    """What is known of one write to a table, or to a partition (``partition`` not None).

    ``is_emptied``: it left a base without a file. ``maybe_in`` is the compacted directory that may
    have taken up files that nobody knows any more.
    """

    partition: Partition | None
    files: tuple[EncodedUri, ...]
    maybe_in: str | None
    is_emptied: bool = False

    @property
    def is_nothing(self) -> bool:
        """Whether the write did nothing here, as far as anything shows."""
        return not (self.files or self.is_emptied) and self.maybe_in is None


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """A directory of a table or partition, as it was listed. ``own``: files of single writes by
    write id, paths below the place; a write without files has an empty list."""

    root: Location
    partition: Partition | None
    partition_name: str | None
    is_there: bool
    own: dict[WriteId, list[str]] = field(default_factory=dict)
    compacted: list[DirectoryName] = field(default_factory=list)

    def covering(self, write_id: WriteId) -> list[DirectoryName]:
        """The compacted directories that have the write's rows, if it wrote any."""
        return [name for name in self.compacted if _covers(name, write_id)]

    def written(
        self,
        files: tuple[EncodedUri, ...] = (),
        maybe_in: DirectoryName | None = None,
        *,
        is_emptied: bool = False,
    ) -> WrittenFiles:
        """What is known of one write here."""
        return WrittenFiles(
            partition=self.partition,
            files=files,
            maybe_in=None if maybe_in is None else f"{self.root.uri}/{maybe_in.format()}",
            is_emptied=is_emptied,
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Archived:
    """A file that a cleaner took away from a place; ``directory`` None: one of before ACID."""

    directory: DirectoryName | None
    file: EncodedUri
    is_data: bool


class TableWrites:
    """Everything about one table, looked up once."""

    def __init__(
        self, source: Metastore, resolve: Resolver, table: Table, archive: Archive
    ) -> None:
        self._source = source
        self._resolve = resolve
        self._archive = archive
        self._places = [
            _listed(resolve(location), table, partition)
            for partition, location in places_of(source, table)
        ]
        not_committed = frozenset(txn.id for txn in source.get_open_txns().txns)
        for place in self._places:
            # Nobody cleans after a compaction that has not committed.
            place.compacted[:] = [
                directory
                for directory in place.compacted
                if directory.visibility_txn_id not in not_committed
            ]
        is_compacted = any(listed.compacted for listed in self._places)
        self._queue = _queue(source, table) if is_compacted else ()
        self._victims = self._open_victims()
        self._root = resolve(table.storage.location or "")
        self._entries: dict[str, tuple[ArchiveEntry, ...]] = {}
        self._oldest: dict[str, WriteId | None] = {}

    def of(self, write_id: WriteId, committed_ms: int) -> Iterator[WrittenFiles]:
        """What there is of a committed write, for each place where there is something, or may have
        been."""
        for place in self._places:
            written = self._written(place, write_id, committed_ms)
            if not written.is_nothing:
                yield written

    def emptied(self, partition: PartitionKey, write_id: WriteId) -> WrittenFiles | None:
        """What a write that reported no files did to a partition (of that name now; of no values:
        the table). None: it was not there to be looked at."""
        place = next(
            (
                candidate
                for candidate in self._places
                if partition_key(candidate.partition_name or "") == partition
            ),
            None,
        )
        if place is None or not place.is_there:
            return None
        if place.own.get(write_id):
            return place.written()
        if is_emptied(place.root, write_id):
            return place.written(is_emptied=True)
        return self._overwritten(place, write_id)

    def _written(self, place: _Place, write_id: WriteId, committed_ms: int) -> WrittenFiles:
        """Its files; else that it left a base without any, now or before a compaction."""
        archived = list(self._archived(place, committed_ms))
        own = [file for file in archived if _is_single(file.directory, write_id)]
        is_seen = bool(own) or write_id in place.own
        taken_up = (
            name
            for name in place.covering(write_id)
            if not self._is_uncleaned(name, place, committed_ms)
            and not self._is_recorded(name, place, archived, is_seen=is_seen)
        )
        maybe_in = next(taken_up, None)
        files = self._files(place, place.own.get(write_id, ()), own)
        if files or is_emptied(place.root, write_id):
            return place.written(files, maybe_in, is_emptied=not files)
        if maybe_in is None and any(_is_older(file, write_id) for file in archived):
            return self._overwritten(place, write_id)
        return place.written(maybe_in=maybe_in)

    def _overwritten(self, place: _Place, write_id: WriteId) -> WrittenFiles:
        """Whether the newest compacted base has no row from before a write without files."""
        base = _newest_base(place.covering(write_id))
        if base is None:
            return place.written()
        try:
            oldest = self._oldest_row(place.root.child(base.format()))
        except AcidFormatError:
            # Files of insert-only tables do not say which write a row is of.
            return place.written(maybe_in=base)
        if not self._is_whole(place, base):
            return place.written(maybe_in=base)
        return place.written(is_emptied=oldest is None or oldest >= write_id)

    def _is_whole(self, place: _Place, base: DirectoryName) -> bool:
        """Whether a base that was read is there still, and nobody has a reason to take its files
        away one by one: what is missing looks as if it had been overwritten."""
        standing = dict(_directories(place.root))
        newer = [name for name in standing.values() if _newest_base((base, name)) != base]
        open_txns = self._source.get_open_txns().txns if newer else ()
        not_committed = {txn.id for txn in open_txns}
        return base.format() in standing and all(
            name.visibility_txn_id in not_committed or not name.visibility_txn_id for name in newer
        )

    def _oldest_row(self, base: Location) -> WriteId | None:
        if base.uri not in self._oldest:
            self._oldest[base.uri] = oldest_row(base)
        return self._oldest[base.uri]

    def _is_recorded(
        self, name: DirectoryName, place: _Place, archived: Sequence[_Archived], *, is_seen: bool
    ) -> bool:
        """Whether the archive would have the write's files, had a cleaner taken any away once the
        compacted directory stood."""
        is_busy = any(path_below(victim, place.root.uri) is not None for victim in self._victims)
        if is_busy or not self._archive.is_known:
            return False
        return is_seen or any(_is_input(file.directory, name) for file in archived)

    def _files(
        self, place: _Place, standing: Sequence[str], archived: Sequence[_Archived]
    ) -> tuple[EncodedUri, ...]:
        # These first: what was archived since the listing cannot be read where it stood.
        files = {taken.file.uri: taken.file for taken in archived if taken.is_data}
        for path in standing:
            file = place.root.child(path)
            if file.uri not in files:
                cmroot = self._archive.cmroot
                files[file.uri] = EncodedUri(
                    uri=file.uri,
                    checksum=None if cmroot is None else file.checksum(),
                    cmroot=cmroot,
                    sub_directory=path.rpartition("/")[0],
                )
        return tuple(files[uri] for uri in sorted(files))

    def _is_uncleaned(self, name: DirectoryName, place: _Place, committed_ms: int) -> bool:
        """Whether no cleaner has been here since the write, so that nothing was taken away."""
        own = [entry for entry in self._queue if entry.target.partition == place.partition_name]
        if any(_was_cleaned(entry, committed_ms) for entry in own):
            return False
        waiting = {entry.txn_id for entry in own if entry.state in _NOT_CLEANED}
        return bool(name.visibility_txn_id) and name.visibility_txn_id in waiting

    def _archived(self, place: _Place, since_ms: int) -> Iterator[_Archived]:
        """What a cleaner took away from a place after compactions; earlier tables of
        the name had the same directories, so only what came after the write counts."""
        is_in_table = path_below(place.root.uri, self._root.uri) is not None
        for entry in self._entries_below(self._root if is_in_table else place.root):
            for origin in entry.origins:
                if origin.context.cause is not ArchiveCause.OBSOLETE:
                    continue
                path = path_below(origin.uri, place.root.uri)
                if not path or origin.archived_at_ms < since_ms:
                    continue
                name = DirectoryName.parse(path.partition("/")[0])
                if name is None and "/" in path:
                    continue  # of a partition of the table, or of nothing that ACID knows
                yield _Archived(
                    directory=name,
                    file=EncodedUri(
                        uri=origin.uri,
                        checksum=entry.checksum,
                        cmroot=self._archive.cmroot,
                        sub_directory=path.rpartition("/")[0],
                    ),
                    is_data=not any(is_hidden(part) for part in path.split("/")),
                )

    def _open_victims(self) -> tuple[str, ...]:
        """What a cleaner is taking away, or was when it was killed."""
        manifest = self._archive.manifest
        if manifest is None:
            return ()
        states = [state for state in IntentState if state.is_open]
        return tuple(self._resolve(intent.victim).uri for intent in manifest.intents(states))

    def _entries_below(self, root: Location) -> tuple[ArchiveEntry, ...]:
        """Asked for once: a partition may lie anywhere, but most lie below their table."""
        if self._archive.cmroot is None or self._archive.manifest is None:
            return ()
        if root.uri not in self._entries:
            cmroot = self._resolve(self._archive.cmroot).uri
            self._entries[root.uri] = self._archive.manifest.archived_below(cmroot, root.uri)
        return self._entries[root.uri]


def _listed(root: Location, table: Table, partition: Partition | None) -> _Place:
    columns = table.partition_columns
    name = None if partition is None else partition_name(columns, partition.values)
    is_there = root.status() is not None
    place = _Place(root=root, partition=partition, partition_name=name, is_there=is_there)
    for path, parsed in _directories(root):
        if _is_compacted(parsed, root.child(path)):
            place.compacted.append(parsed)
            continue
        files = place.own.setdefault(parsed.max_write_id, [])
        files += (f"{path}/{file.path}" for file in visible_files(root.child(path)))
    return place


def _directories(root: Location) -> Iterator[tuple[str, DirectoryName]]:
    """The ACID directories of a place, each by the name that it has there."""
    if root.status() is None:
        return
    for child in root.volume.children(root.path):
        parsed = None if child.kind is FileKind.FILE else DirectoryName.parse(child.name)
        if parsed is not None:
            yield child.name, parsed


def _is_compacted(name: DirectoryName, directory: Location) -> bool:
    """Whether a compactor wrote it. Bases of Hive 3's, and those of a replica, have no suffix."""
    if name.visibility_txn_id or name.min_write_id != name.max_write_id:
        return True
    marker = directory.child(METADATA_FILE)
    if not name.is_base or marker.status() is None:
        return False
    content = read_text(marker, _MARKER_BYTES_MAX).encode()
    return parse_metadata(content, marker.uri) is DataFormat.COMPACTED


def _queue(source: Metastore, table: Table) -> tuple[Compaction, ...]:
    return source.show_compactions(
        ShowCompactionsRequest(scope=Scope(table.database_name, table.name))
    )


def _was_cleaned(entry: Compaction, committed_ms: int) -> bool:
    """Whether a cleaner may have been at a compaction's target since a time."""
    # A cleaner that failed leaves a retention (docs/hive/compaction.md §19), and may have deleted
    # some files before.
    if entry.cleaner_started_ms is not None or entry.retry_retention_ms:
        return True
    if entry.state not in _ENDED_BY_CLEANER:
        return False
    return entry.ended_ms is None or entry.ended_ms >= committed_ms - _CLOCKS_APART_MS


def _covers(name: DirectoryName, write_id: WriteId) -> bool:
    return name.max_write_id >= write_id and (name.is_base or name.min_write_id <= write_id)


def _newest_base(names: Sequence[DirectoryName]) -> DirectoryName | None:
    bases = [name for name in names if name.is_base]
    return max(bases, key=lambda base: (base.max_write_id, base.visibility_txn_id), default=None)


def _is_older(archived: _Archived, write_id: WriteId) -> bool:
    name = archived.directory
    return archived.is_data and (name is None or name.max_write_id < write_id)


def _is_single(name: DirectoryName | None, write_id: WriteId) -> bool:
    if name is None:
        return False
    return name.min_write_id == name.max_write_id == write_id and not name.visibility_txn_id


def _is_input(name: DirectoryName | None, compacted: DirectoryName) -> bool:
    """Whether a compaction took a directory up; files of before ACID do not count."""
    if name is None or name.max_write_id > compacted.max_write_id:
        return False
    return compacted.is_base or name.min_write_id >= compacted.min_write_id
