"""The data files of a table or partition as a snapshot sees them, for a bootstrap dump."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from changemanager.filesystem.volume import FileKind
from changemanager.location import Location
from changemanager.uri import EncodedUri
from hms_bridge.acid.directory import AcidState, resolve
from hms_bridge.acid.listing import DirectoryListing, ListedFile
from hms_bridge.acid.markers import DataFormat, parse_metadata
from hms_bridge.directories.known_ids import GivenIds, require_known_ids
from hms_bridge.errors import NotEnoughHistoryError, ReplError
from hms_bridge.model.catalog import Table
from hms_bridge.model.valid_ids import ValidTxnList, ValidWriteIdList
from hms_bridge.repl.format.data_tree import list_data, plain_files


@dataclass(frozen=True, kw_only=True, slots=True)
class TableSnapshot:
    """What a reader of one table sees. ``write_ids`` is None for tables without transactions.

    ``metastore``: who gave the numbers of the table's directories."""

    metastore: GivenIds
    table: Table
    txns: ValidTxnList
    write_ids: ValidWriteIdList | None


def snapshot_files(
    root: Location, snapshot: TableSnapshot, cm_root: str | None
) -> tuple[EncodedUri, ...]:
    """References to the files below a table's or partition's directory, in path order.

    Transactional tables: base, deltas and originals of the snapshot; others: every visible file
    that is not in another partition. Raises ReplError if the directory was compacted beyond the
    snapshot, FileNotFoundError if something vanishes meanwhile.
    """
    if snapshot.write_ids is None:
        paths = [file.path for file in plain_files(root)]
    else:
        paths = sorted(_acid_paths(root, snapshot, snapshot.write_ids))
    return tuple(_reference(root, path, cm_root) for path in paths)


def _reference(root: Location, path: str, cm_root: str | None) -> EncodedUri:
    location = root.child(path)
    return EncodedUri(
        uri=location.uri,
        checksum=None if cm_root is None else location.checksum(),
        cmroot=cm_root,
        sub_directory=path.rpartition("/")[0] or None,
    )


def _acid_paths(
    root: Location, snapshot: TableSnapshot, write_ids: ValidWriteIdList
) -> Iterator[str]:
    is_insert_only = snapshot.table.is_insert_only
    listing = _acid_listing(root, is_insert_only=is_insert_only)
    require_known_ids(snapshot.metastore, snapshot.table, listing, snapshot.txns, write_ids)
    state = _resolved(listing, snapshot.txns, write_ids)
    for directory in state.current:
        for file in (*directory.files, *directory.side_files):
            yield _below(directory.path, file.path)
    for original in state.originals:
        yield original.path


def _below(directory: str, path: str) -> str:
    return path if path.startswith(f"{directory}/") else f"{directory}/{path}"


def _acid_listing(root: Location, *, is_insert_only: bool) -> DirectoryListing:
    def data_format(path: str) -> DataFormat | None:
        marker = root.child(path)
        return parse_metadata(b"".join(marker.chunks()), marker.uri)

    tree = list_data(root)
    return DirectoryListing.build(
        root.uri,
        files=[
            ListedFile(path=file.path, size_bytes=file.size_bytes, modified_ms=file.mtime_ms)
            for file in tree
            if file.kind is FileKind.FILE
        ],
        directories=[directory.path for directory in tree if directory.kind is FileKind.DIRECTORY],
        data_format=data_format,
        is_insert_only=is_insert_only,
    )


def _resolved(
    listing: DirectoryListing, txns: ValidTxnList, write_ids: ValidWriteIdList
) -> AcidState:
    try:
        return resolve(listing, txns=txns, write_ids=write_ids)
    except NotEnoughHistoryError as error:
        raise ReplError(f"{error}; dump again") from error
