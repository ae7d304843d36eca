"""What one side has of a table: its files and rows as a snapshot sees them."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from changemanager.location import Location, Resolver
from hms_bridge.acid.directory import AcidState, resolve
from hms_bridge.acid.listing import ListedDirectory, ListedFile
from hms_bridge.directories.known_ids import require_known_ids
from hms_bridge.directories.listing import list_acid_directory
from hms_bridge.errors import AcidFormatError
from hms_bridge.model.ids import NO_TXN
from hms_bridge.model.valid_ids import ValidWriteIdList
from hms_bridge.orc.timestamps import TimestampForm
from hms_bridge.repl.compare.described import FoundDirectory, FoundFile, FoundFiles
from hms_bridge.repl.dump.table_files import TableSnapshot
from hms_bridge.repl.format.data_tree import plain_files
from hms_bridge.rows.reader import Projection, SnapshotReader, has_raw_rows
from hms_bridge.rows.row_sum import SeenRows, added_up, value_sums
from hms_bridge.rows.scan import row_type
from hms_bridge.snapshot.plan import ReadPlan, plan_files


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadPlace:
    """A directory that was listed. ``stored``: the path of each file below it, by the path under
    which it is compared. ``plan`` None: its rows cannot be read here."""

    root: Location
    found: FoundFiles
    stored: Mapping[str, str] = field(default_factory=dict)
    plan: ReadPlan | None = None

    @property
    def strays(self) -> tuple[str, ...]:
        """Files that have no name of the format, by their paths below the root; no reader opens
        them. What lies in another partition's directory is none of this root's."""
        paths = () if self.plan is None else self.plan.unread
        below = (path[len(self.root.path) :].lstrip("/") for path in paths)
        return tuple(path for path in below if "=" not in path)


def look(resolver: Resolver, snapshot: TableSnapshot, location: str) -> ReadPlace:
    """The files of a table or partition that a reader of the snapshot opens.

    Raises NotEnoughHistoryError if the directory was compacted beyond the snapshot,
    AcidFormatError, FileNotFoundError if something vanishes meanwhile.
    """
    root = resolver(location)
    if snapshot.write_ids is None:
        return _look_at_plain(root)
    listing = list_acid_directory(
        root.volume,
        root.path,
        has_raw_rows=functools.partial(has_raw_rows, root.volume),
        is_insert_only=snapshot.table.is_insert_only,
    )
    require_known_ids(
        snapshot.metastore, snapshot.table, listing, snapshot.txns, snapshot.write_ids
    )
    state = resolve(listing, txns=snapshot.txns, write_ids=snapshot.write_ids)
    plan = None
    if snapshot.table.is_full_acid:
        is_bucketed = bool(snapshot.table.storage.bucket_columns)
        plan = plan_files(state, snapshot.write_ids, is_bucketed=is_bucketed)
    files = {file.path: (file, stored) for file, stored in _files(state, snapshot.write_ids)}
    return ReadPlace(
        root=root,
        found=FoundFiles(
            files=tuple(file for file, _ in files.values()),
            directories=tuple(
                _directory(directory, snapshot.write_ids) for directory in state.current
            ),
        ),
        stored={path: stored for path, (_, stored) in files.items()},
        plan=plan,
    )


def _look_at_plain(root: Location) -> ReadPlace:
    listed = plain_files(root)
    return ReadPlace(
        root=root,
        found=FoundFiles(
            files=tuple(FoundFile(path=file.path, size_bytes=file.size_bytes) for file in listed)
        ),
        stored={file.path: file.path for file in listed},
    )


def _files(state: AcidState, write_ids: ValidWriteIdList) -> Iterator[tuple[FoundFile, str]]:
    for original in state.originals:
        yield FoundFile(path=original.path, size_bytes=original.size_bytes), original.path
    for listed in state.current:
        directory = _directory(listed, write_ids)
        for file in (*listed.files, *listed.side_files):
            yield _file(file, directory), file.path


def _file(file: ListedFile, directory: FoundDirectory) -> FoundFile:
    below = file.path.partition("/")[2]
    return FoundFile(
        path=f"{directory.name.format()}/{below}", size_bytes=file.size_bytes, directory=directory
    )


def _directory(listed: ListedDirectory, write_ids: ValidWriteIdList) -> FoundDirectory:
    """A delta without a statement may be a compactor's: what a load copied has no more of it."""
    name = listed.name
    is_wide = not name.is_base and name.statement_id is None
    return FoundDirectory(
        name=replace(name, visibility_txn_id=NO_TXN),
        is_compacted=listed.is_compacted or is_wide,
        is_own=name.visibility_txn_id > 0,
        is_ahead=name.max_write_id > write_ids.high_watermark
        or write_ids.has_open_between(name.min_write_id, name.max_write_id),
    )


def with_checksums(place: ReadPlace, like: FoundFiles | None = None) -> ReadPlace:
    """The same with a checksum of each file; of the kind that the other side's has, if that is
    given. Reads every byte where the file system keeps none."""
    wanted = {file.path: file.checksum for file in like.files} if like is not None else {}
    return replace(
        place,
        found=replace(
            place.found,
            files=tuple(
                replace(file, checksum=_checksum(place, file, wanted.get(file.path)))
                for file in place.found.files
            ),
        ),
    )


def _checksum(place: ReadPlace, file: FoundFile, like: str | None) -> str:
    location = place.root.child(place.stored[file.path])
    return location.checksum() if like is None else location.checksum_like(like)


def sum_rows(place: ReadPlace, snapshot: TableSnapshot) -> SeenRows:
    """The rows that the snapshot sees, with their ROW__IDs, summed. Memory: a stripe at a time.

    Raises AcidFormatError for what cannot be read, FileNotFoundError for what is gone.
    """
    plan = place.plan
    if plan is None:
        raise AcidFormatError("rows without identifiers are not read here", place.root.uri)
    projection = Projection(
        table=row_type(snapshot.table.storage.columns),
        has_row_id=True,
        timestamps=TimestampForm.PARTS,
    )
    reader = SnapshotReader(place.root.volume, plan.write_ids, projection)
    try:
        return added_up(
            (batch.num_rows, value_sums(_flat(batch)))
            for split in plan.file_splits()
            for batch in reader.read(split)
        )
    except (pa.ArrowException, ValueError) as error:
        raise AcidFormatError(f"its rows cannot be read ({error})", place.root.uri) from error


def _flat(batch: pa.RecordBatch) -> list[pa.Array]:
    """The table's columns, then the three numbers of ROW__ID."""
    *columns, row_ids = batch.columns
    return [*columns, *row_ids.flatten()]
