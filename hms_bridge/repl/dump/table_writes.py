"""What the source still has of single writes to a table: their directories, or archived files.

A write's own directories go when a compaction has rewritten them and a cleaner came by. The archive
then has the files, and its manifest knows where they were. Where neither shows anything, the write
either put no files there (ALTER, ADD PARTITION, an UPDATE without a match), or its files were taken
away by a cleaner that does not record. The first is proven

* if nothing compacted stands there that covers the write id; nothing was taken away then;
* if what covers it was not cleaned after yet, as the compaction queue tells;
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
from changemanager.location import Location, Resolver
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
from hms_bridge.repl.format.data_tree import list_data
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


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """A directory of a table or partition, as it was listed. ``own``: files of single writes by
    write id, paths below the place; a write without files has an empty list."""

    root: Location
    partition: Partition | None
    partition_name: str | None
    own: dict[WriteId, list[str]] = field(default_factory=dict)
    compacted: list[DirectoryName] = field(default_factory=list)


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
        self._resolve = resolve
        self._archive = archive
        self._places = [
            _listed(root, partition, name)
            for root, partition, name in _roots(source, resolve, table)
        ]
        not_committed = frozenset(one.id for one in source.get_open_txns().txns)
        for place in self._places:
            place.compacted[:] = [
                one for one in place.compacted if one.visibility_txn_id not in not_committed
            ]
        is_compacted = any(one.compacted for one in self._places)
        self._queue = _queue(source, table) if is_compacted else ()
        self._victims = self._open_victims()
        self._root = resolve(table.storage.location or "")
        self._entries: dict[str, tuple[ArchiveEntry, ...]] = {}
        self._oldest: dict[str, WriteId | None] = {}

    def of(self, write_id: WriteId, committed_ms: int) -> Iterator[WrittenFiles]:
        """What there is of a committed write, for each place where there is something, or may have
        been."""
        for place in self._places:
            covering = [one for one in place.compacted if _covers(one, write_id)]
            archived = list(self._archived(place, committed_ms))
            mine = [one for one in archived if _is_single(one.directory, write_id)]
            is_seen = bool(mine) or write_id in place.own
            is_busy = any(_is_below(one, place.root) for one in self._victims)
            can_tell = self._archive.is_known and not is_busy
            doubt = next(
                (
                    one.format()
                    for one in covering
                    if not self._is_uncleaned(one, place, committed_ms)
                    and not (can_tell and (is_seen or _is_told(one, archived)))
                ),
                None,
            )
            files = self._files(place, place.own.get(write_id, ()), mine)
            is_empty = not files and is_emptied(place.root, write_id)
            if not (files or is_empty) and doubt is None:
                older = (one for one in archived if _is_older(one, write_id))
                base = _newest_base(covering) if any(older) else None
                is_empty, doubt = self._hides_older(place, base, write_id)
            if files or is_empty or doubt is not None:
                yield WrittenFiles(
                    partition=place.partition,
                    files=files,
                    maybe_in=None if doubt is None else f"{place.root.uri}/{doubt}",
                    is_emptied=is_empty,
                )

    def emptied(self, partition: str, write_id: WriteId) -> WrittenFiles | None:
        """What a write that told of no files did to a partition ("": the table): None if nothing,
        or if the partition is gone."""
        place = next((one for one in self._places if (one.partition_name or "") == partition), None)
        if place is None or place.own.get(write_id):
            return None
        base = _newest_base([one for one in place.compacted if _covers(one, write_id)])
        is_empty, doubt = self._hides_older(place, base, write_id)
        if is_emptied(place.root, write_id):
            is_empty, doubt = True, None
        if not is_empty and doubt is None:
            return None
        return WrittenFiles(
            partition=place.partition,
            files=(),
            maybe_in=None if doubt is None else f"{place.root.uri}/{doubt}",
            is_emptied=is_empty,
        )

    def _hides_older(
        self, place: _Place, base: DirectoryName | None, write_id: WriteId
    ) -> tuple[bool, str | None]:
        """Whether a base has no row from before a write; its name, if it does not tell."""
        if base is None:
            return False, None
        directory = place.root.child(base.format())
        try:
            if directory.uri not in self._oldest:
                self._oldest[directory.uri] = oldest_row(directory)
        except AcidFormatError:
            return False, base.format()
        oldest = self._oldest[directory.uri]
        return oldest is None or oldest >= write_id, None

    def _files(
        self, place: _Place, standing: Sequence[str], archived: Sequence[_Archived]
    ) -> tuple[EncodedUri, ...]:
        found = {one.file.uri: one.file for one in archived if one.is_data}
        for path in standing:
            file = place.root.child(path)
            if file.uri not in found:
                cmroot = self._archive.cmroot
                found[file.uri] = EncodedUri(
                    uri=file.uri,
                    checksum=None if cmroot is None else file.checksum(),
                    cmroot=cmroot,
                    sub_directory=path.rpartition("/")[0],
                )
        return tuple(found[uri] for uri in sorted(found))

    def _is_uncleaned(self, name: DirectoryName, place: _Place, committed_ms: int) -> bool:
        """Whether no cleaner has been here since the write, so that nothing was taken away."""
        own = [one for one in self._queue if one.partition_name == place.partition_name]
        if any(_was_cleaned(one, committed_ms) for one in own):
            return False
        waiting = {one.txn_id for one in own if one.state in _NOT_CLEANED}
        return bool(name.visibility_txn_id) and name.visibility_txn_id in waiting

    def _archived(self, place: _Place, since_ms: int) -> Iterator[_Archived]:
        """What a cleaner took away from a place after compactions; earlier tables of
        the name had the same directories, so only what came after the write counts."""
        is_below = _is_below(place.root.uri, self._root)
        for entry in self._entries_below(self._root if is_below else place.root):
            for origin in entry.origins:
                path = _path_below(origin.uri, place.root)
                name = None if path is None else DirectoryName.parse(path.partition("/")[0])
                if (
                    path is not None
                    and (name is not None or "/" not in path)
                    and origin.context.cause is ArchiveCause.OBSOLETE
                    and origin.archived_at_ms >= since_ms
                ):
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
        return tuple(self._resolve(one.victim).uri for one in manifest.intents(states))

    def _entries_below(self, root: Location) -> tuple[ArchiveEntry, ...]:
        """Asked for once: a partition may lie anywhere, but most lie below their table."""
        if self._archive.cmroot is None or self._archive.manifest is None:
            return ()
        if root.uri not in self._entries:
            cmroot = self._resolve(self._archive.cmroot).uri
            self._entries[root.uri] = self._archive.manifest.archived_below(cmroot, root.uri)
        return self._entries[root.uri]


def _roots(
    source: Metastore, resolve: Resolver, table: Table
) -> Iterator[tuple[Location, Partition | None, str | None]]:
    if table.storage.location is None:
        return
    if not table.is_partitioned:
        yield resolve(table.storage.location), None, None
        return
    for one in source.get_partitions(table.database_name, table.name):
        if one.storage.location is not None:
            name = partition_name(table.partition_columns, one.values)
            yield resolve(one.storage.location), one, name


def _listed(root: Location, partition: Partition | None, name: str | None) -> _Place:
    place = _Place(root=root, partition=partition, partition_name=name)
    if root.status() is None:
        return place
    for child in root.volume.children(root.path):
        parsed = None if child.kind is FileKind.FILE else DirectoryName.parse(child.name)
        if parsed is None:
            continue
        if _is_compacted(parsed, root.child(child.name)):
            place.compacted.append(parsed)
            continue
        files = place.own.setdefault(parsed.max_write_id, [])
        files += (
            f"{child.name}/{one.path}"
            for one in list_data(root.child(child.name))
            if one.kind is FileKind.FILE and not any(is_hidden(x) for x in one.path.split("/"))
        )
    return place


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
        ShowCompactionsRequest(database_name=table.database_name, table_name=table.name)
    )


def _was_cleaned(entry: Compaction, committed_ms: int) -> bool:
    """Whether a cleaner may have been at a compaction's target since a time."""
    if entry.cleaner_started_ms is not None or entry.retry_retention_ms:
        return True
    if entry.state not in _ENDED_BY_CLEANER:
        return False
    return entry.ended_ms is None or entry.ended_ms >= committed_ms - _CLOCKS_APART_MS


def _covers(name: DirectoryName, write_id: WriteId) -> bool:
    return name.max_write_id >= write_id and (name.is_base or name.min_write_id <= write_id)


def _newest_base(names: Sequence[DirectoryName]) -> DirectoryName | None:
    bases = [one for one in names if one.is_base]
    return max(bases, key=lambda one: (one.max_write_id, one.visibility_txn_id), default=None)


def _is_older(archived: _Archived, write_id: WriteId) -> bool:
    name = archived.directory
    return archived.is_data and (name is None or name.max_write_id < write_id)


def _is_single(name: DirectoryName | None, write_id: WriteId) -> bool:
    if name is None:
        return False
    return name.min_write_id == name.max_write_id == write_id and not name.visibility_txn_id


def _is_told(covering: DirectoryName, archived: Sequence[_Archived]) -> bool:
    """Whether it is known what was taken away once the covering directory stood."""
    return any(
        one.directory is not None
        and one.directory.max_write_id <= covering.max_write_id
        and (covering.is_base or one.directory.min_write_id >= covering.min_write_id)
        for one in archived
    )


def _path_below(uri: str, root: Location) -> str | None:
    prefix = root.uri.rstrip("/") + "/"
    return uri.removeprefix(prefix) if uri.startswith(prefix) else None


def _is_below(uri: str, root: Location) -> bool:
    return uri == root.uri or _path_below(uri, root) is not None
